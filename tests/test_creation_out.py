"""``out=`` of the functions that make tensors."""

import numpy as np
import pytest

import convcore

MAKERS = {
    "zeros": lambda lib, **how: lib.zeros(3, **how),
    "ones": lambda lib, **how: lib.ones(3, **how),
    "full": lambda lib, **how: lib.full((3,), 2.5, **how),
    "eye": lambda lib, **how: lib.eye(3, **how),
    "arange": lambda lib, **how: lib.arange(3.0, **how),
    "linspace": lambda lib, **how: lib.linspace(0, 1, 3, **how),
    "logspace": lambda lib, **how: lib.logspace(0, 1, 3, **how),
    "rand": lambda lib, **how: lib.rand(3, **how),
    "randn": lambda lib, **how: lib.randn(3, **how),
    "randint": lambda lib, **how: lib.randint(0, 9, (3,), **how),
    "randperm": lambda lib, **how: lib.randperm(3, **how),
    "normal": lambda lib, **how: lib.normal(0.0, 2.0, (3,), **how),
}
DRAW_FLOATS = ("rand", "randn", "normal")


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("name", MAKERS)
def test_out_gets_what_pytorch_writes_into_it(torch, name, dtype):
    if dtype == "int32" and name in DRAW_FLOATS:
        dtype = "float16"
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(3)
        out = lib.zeros(2, dtype=getattr(lib, dtype))
        out.resize_(0)
        assert MAKERS[name](lib, out=out) is out
        assert out.dtype is getattr(lib, dtype)
        found.append(out.tolist())
    np.testing.assert_allclose(*found, rtol=0 if dtype == "int32" else 1e-3)


@pytest.mark.parametrize("name", MAKERS)
def test_out_is_written_in_place_and_checked(name):
    make = MAKERS[name]
    out = convcore.zeros(make(convcore).shape)
    part = out[:2]
    convcore.manual_seed(0)
    make(convcore, out=out)
    convcore.manual_seed(0)
    assert out.equal(make(convcore, dtype=out.dtype)) and part.equal(out[:2])
    with pytest.raises(RuntimeError, match=r"Double does not match dtype of out parameter .Float"):
        make(convcore, out=out, dtype=convcore.float64)
    with pytest.raises(TypeError, match=f"{name}..: argument 'out' must be Tensor, not int"):
        make(convcore, out=3)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        make(convcore, out=out.clone().requires_grad_())
    if out.ndim == 1:
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element"):
            make(convcore, out=convcore.zeros(1).expand(3))


def test_empty_leaves_an_out_of_its_size():
    out = convcore.ones(2, 3)
    assert convcore.empty(2, 3, out=out).sum() == 6
    assert convcore.empty(4, out=out).shape == (4,)


def test_bernoulli_draws_into_out(torch):
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(1)
        out = lib.zeros(9, dtype=lib.int64)
        lib.bernoulli(lib.full((9,), 0.5), out=out)
        found.append(out.tolist())
    assert found[0] == found[1] and set(found[0]) == {0, 1}


def test_normal_around_tensors_draws_into_out():
    out = convcore.zeros(0, dtype=convcore.float64)
    convcore.normal(convcore.full((3,), 5.0), 0.0, out=out)
    assert out.tolist() == [5, 5, 5] and out.dtype is convcore.float64
    with pytest.raises(RuntimeError, match=r"expects std >= 0.0, but found std -1"):
        convcore.normal(out, -1.0)


def test_logspace_between_complex_limits():
    found = convcore.logspace(0, 1j, 3, base=2.718281828459045)
    assert found.dtype is convcore.complex64
    assert (found.abs() - 1).abs().max() < 1e-6
