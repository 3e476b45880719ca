"""Interpolation: textbook formulas along each axis, weights that sum to one, and the adjoint."""

import numpy as np
import pytest
from draws import is_channels_last, lay_out

from convcore import engine
from convcore.engine.layers.interpolation.interpolation import MODES

SIZES = [((7,), (12,)), ((6, 9), (13, 4)), ((5, 5), (5, 10)), ((3, 4, 5), (6, 3, 5))]


def ways(rank):
    """Yield every (mode, align_corners, antialias) for so many axes."""
    for mode in MODES:
        for align in (False, True):
            for antialias in (False, True):
                if antialias and (mode.startswith("nearest") or align):
                    continue
                if mode == "lanczos" and not (antialias and rank == 2):
                    continue
                yield mode, align, antialias


@pytest.mark.parametrize(("sizes", "outs"), SIZES)
def test_the_gradient_is_the_adjoint_and_weights_sum_to_one(sizes, outs, rng):
    x, grad = rng.standard_normal((2, 3, *sizes)), rng.standard_normal((2, 3, *outs))
    for mode, align, antialias in ways(len(sizes)):
        how = {"mode": mode, "align_corners": align, "antialias": antialias}
        y = engine.interpolate(x, outs, **how)
        back = engine.interpolate_grad(grad, sizes, **how)
        assert y.shape == grad.shape
        assert back.shape == x.shape
        np.testing.assert_allclose((y * grad).sum(), (x * back).sum(), rtol=1e-10, err_msg=str(how))
        ones = engine.interpolate(np.ones_like(x), outs, **how)
        np.testing.assert_allclose(ones, 1, rtol=1e-12, err_msg=str(how))


@pytest.mark.parametrize(("size", "out"), [(7, 12), (12, 7), (5, 15), (4, 4), (1, 3)])
def test_nearest_takes_the_input_before_or_under_the_centre(size, out, rng):
    x, j = rng.standard_normal((1, 1, size)), np.arange(out)
    before = engine.interpolate(x, (out,))
    np.testing.assert_array_equal(before, x[..., j * size // out])
    centre = engine.interpolate(x, (out,), "nearest-exact")
    np.testing.assert_array_equal(centre, x[..., (2 * j + 1) * size // (2 * out)])


@pytest.mark.parametrize(("size", "out"), [(7, 12), (12, 7), (5, 15), (4, 4), (3, 1)])
def test_linear_lies_on_the_line_between_neighbours(size, out, rng):
    x, j = rng.standard_normal(size), np.arange(out)
    edges = np.interp((j + 0.5) * size / out - 0.5, np.arange(size), x)
    found = engine.interpolate(x[None, None], (out,), "linear")
    np.testing.assert_allclose(found[0, 0], edges, atol=1e-13)
    corners = np.interp(j * (size - 1) / max(out - 1, 1), np.arange(size), x)
    found = engine.interpolate(x[None, None], (out,), "linear", align_corners=True)
    np.testing.assert_allclose(found[0, 0], corners, atol=1e-13)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_places_on_the_inputs_give_the_inputs(mode, rng):
    """Of 3 outputs an input, with corners aligned, every third is an input."""
    x = rng.standard_normal((1, 2, 5, 7))
    y = engine.interpolate(x, (13, 19), mode, align_corners=True)
    np.testing.assert_allclose(y[..., ::3, ::3], x, atol=1e-12)


def test_antialiasing_by_a_whole_factor_weighs_by_triangles(rng):
    x = rng.standard_normal(12)
    y = engine.interpolate(x[None, None], (4,), "linear", antialias=True)[0, 0]
    for j in range(4):
        weight = np.maximum(1 - np.abs(np.arange(12) + 0.5 - 3 * (j + 0.5)) / 3, 0)
        np.testing.assert_allclose(y[j], (x * weight).sum() / weight.sum(), atol=1e-13)


def test_a_scale_replaces_the_ratio_of_the_sizes():
    x = np.arange(10.0)[None, None]
    assert engine.interpolate(x, (4,), scales=(0.5,))[0, 0].tolist() == [0, 2, 4, 6]
    assert engine.interpolate(x, (4,))[0, 0].tolist() == [0, 2, 5, 7]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "strided"])
def test_results_keep_dtype_and_format(layout, dtype, rng):
    x = lay_out(rng.standard_normal((2, 3, 6, 7)).astype(dtype), layout, rng)
    y = engine.interpolate(x, (9, 4), "linear")
    assert y.dtype == dtype
    assert is_channels_last(y) == is_channels_last(x)
    exact = engine.interpolate(x.astype("f8"), (9, 4), "linear")
    np.testing.assert_allclose(y, exact, atol=8 * np.finfo(dtype).eps * np.abs(x).max())


@pytest.mark.parametrize(
    ("outs", "mode", "words"),
    [
        ((0, 3), "nearest", r"greater than 0, but got input \[6, 7\] and output \[0, 3\]"),
        ((3, 3), "quadratic", "mode must be one of .* got 'quadratic'"),
        ((3,), "nearest", "one to three spatial axes"),
    ],
)
def test_errors_name_sizes_and_modes(outs, mode, words):
    with pytest.raises(ValueError, match=words):
        engine.interpolate(np.zeros((2, 3, 6, 7)), outs, mode)
