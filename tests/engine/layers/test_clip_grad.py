"""Clipping of gradients by kernels, against PyTorch."""

import numpy as np
import pytest

import convcore
from convcore.engine.layers.optimizers import clip_grad


def parameters(lib, arrays):
    made = []
    for array in arrays:
        parameter = lib.nn.Parameter(lib.from_numpy(np.zeros_like(array)))
        parameter.grad = lib.from_numpy(array.copy(order="K"))
        made.append(parameter)
    return made


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("norm_type", [2.0, 1.0, np.inf])
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_clip_grad_norm_is_pytorchs(dtype, norm_type, max_norm, torch, rng):
    shapes = [(3, 4, 5), (), (20000,), (7, 3000), (0, 3)]
    arrays = [np.asarray(rng.standard_normal(shape), dtype) for shape in shapes]
    arrays = arrays[:4] if norm_type == np.inf else arrays  # there is no largest of nothing
    ours, theirs = parameters(convcore, arrays), parameters(torch, arrays)
    found = convcore.nn.utils.clip_grad_norm_(ours, max_norm, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    tolerance = 1e-5 if dtype == "f4" else 1e-12
    assert found.numpy().dtype == expected.numpy().dtype
    assert found.item() == pytest.approx(expected.item(), rel=tolerance)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), tolerance, tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2"])
def test_clip_grad_value_is_pytorchs(dtype, torch, rng):
    array = rng.standard_normal((5, 9000)).astype(dtype)
    array[0, :3] = np.nan, np.inf, -np.inf
    for bound in (0.7, 0.0):
        ours, theirs = parameters(convcore, [array]), parameters(torch, [array])
        before = ours[0].grad._version
        convcore.nn.utils.clip_grad_value_(ours, bound)
        torch.nn.utils.clip_grad_value_(theirs, bound)
        np.testing.assert_array_equal(ours[0].grad.numpy(), theirs[0].grad.numpy())
        assert ours[0].grad._version > before


def test_gradients_with_gaps_and_of_both_dtypes_are_clipped(rng):
    a = rng.standard_normal((4, 6)).astype("f4")[:, ::2]
    b = rng.standard_normal((5,))
    made = [convcore.nn.Parameter(convcore.from_numpy(x * 0)) for x in (a, b)]
    made[0].grad, made[1].grad = convcore.from_numpy(a), convcore.from_numpy(b)
    length = np.sqrt((a.astype("f8") ** 2).sum() + (b**2).sum())
    total = convcore.nn.utils.clip_grad_norm_(made, 1.0)
    assert total.item() == pytest.approx(length, rel=1e-5)
    clipped = sum((p.grad.numpy().astype("f8") ** 2).sum() for p in made)
    assert clipped == pytest.approx(1, rel=1e-4)


def test_length_has_the_same_bits_for_any_number_of_threads(rng, threads):
    arrays = [rng.standard_normal(n).astype("f4") for n in (1, 3 << 20, 777)]
    found = set()
    for n in (1, 2, 3, 7):
        threads(n)
        found.add(clip_grad.global_norm(arrays))
    assert len(found) == 1
    assert found.pop() == pytest.approx(np.sqrt(sum((a.astype("f8") ** 2).sum() for a in arrays)))
