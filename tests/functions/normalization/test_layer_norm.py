"""Layer normalisation: values, gradients and errors beside PyTorch's, and threads."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error
from elements import SEEDS
from hypothesis import given
from hypothesis import strategies as st
from norms import DTYPES, FORMATS, TOLERANCE, laid_out, numbers
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.engine.layers.norm import layer_norm
from convcore.nn import functional as F


@examples(30)
@given(
    DTYPES,
    st.sampled_from([(5,), (3, 7), (2, 4, 33), (2, 3, 4, 5)]),
    FORMATS,
    st.integers(1, 4),
    st.booleans(),
    SEEDS,
)
def test_layer_norm_agrees_with_pytorch(torch, dtype, shape, form, axes, affine, seed):
    sizes = shape[-axes:]
    rng = np.random.default_rng(seed)
    x, w, b = numbers(rng, dtype, shape, sizes, sizes)

    def function(lib, x, *affine):
        return lib.nn.functional.layer_norm(x, sizes, *affine, eps=1e-3)

    args = (w, b) if affine else ()
    agree(torch, function, laid_out(x, form), *args, nodes=1, rtol=TOLERANCE[dtype], seed=seed)


def test_layer_norm_has_gradients_that_gradcheck_finds(rng):
    x, w, b = (
        convcore.from_numpy(array).requires_grad_()
        for array in numbers(rng, "float64", (3, 2, 2), (2, 2), (2, 2))
    )
    assert gradcheck(lambda x, w, b: F.layer_norm(x, (2, 2), w, b), (x, w, b))
    assert gradgradcheck(lambda x: F.layer_norm(x, (2, 2)), (x,))


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", [(6, 48, 30, 31), (4, 5, 90, 91)])
def test_bits_do_not_depend_on_threads(rng, threads, shape, form):
    x, g = (laid_out(a, form) for a in numbers(rng, "f4", shape, shape))
    bits = set()
    for count in (1, 2, 3, 7):
        threads(count)
        y, statistics = layer_norm.forward(x, None, None, 1e-5, 2)
        found = [y, *layer_norm.backward(g, x, None, 1e-5, 2, statistics)]
        bits.add(b"".join(array.tobytes() for array in found))
    assert len(bits) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x, v, m: F.layer_norm(x, 5),
        lambda F, x, v, m: F.layer_norm(x, (4, 5)),
        lambda F, x, v, m: F.layer_norm(x, (5,), v),
        lambda F, x, v, m: F.layer_norm(x, (5,), None, v),
        lambda F, x, v, m: F.layer_norm(x, ()),
    ],
)
def test_errors_are_pytorchs(torch, function, rng):
    x, v = numbers(rng, "float32", (4, 6, 5, 5), 6)
    same_error(
        torch, lambda lib, x, v: function(lib.nn.functional, x, v.detach(), lib.nn), x, np.abs(v)
    )


@pytest.mark.parametrize("value", ["x", [1]])
def test_arguments_of_another_kind_are_named(value):
    x, kind = convcore.ones(2, 3, 4, 4), type(value).__name__
    for wanted, arguments in (("Number", ["eps"]), ("Tensor", ["weight", "bias"])):
        for argument in arguments:
            message = f"layer_norm.*'{argument}' must be {wanted}, not {kind}"
            with pytest.raises(TypeError, match=message):
                F.layer_norm(x, (4,), **{argument: value})
