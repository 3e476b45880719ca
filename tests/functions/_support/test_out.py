"""`out=`: where results go, what is resized, and what is refused, as in PyTorch."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore.functions._support.out import NAMES

X = np.array([[0.25, 0.5], [0.75, 0.125]])


def call(lib, name, out):
    """Call one of the functions of floating-point numbers on two tensors, with `out`."""
    x = lib.from_numpy(X.copy())
    pairs = {"add", "sub", "mul", "div", "maximum", "matmul", "pow", "atan2", "lt", "hypot"}
    args = (x, x.clone()) if name in pairs else (x,)
    return getattr(lib, name)(*args, out=out)


@pytest.mark.parametrize(
    "name", ["add", "mul", "matmul", "lt", "exp", "sigmoid", "abs", "round", "tril", "hypot"]
)
def test_results_are_written_as_in_pytorch(torch, name):
    for shape in ((2, 2), (0,)):
        ours, theirs = (lib.empty(shape, dtype=lib.float64) for lib in (convcore, torch))
        assert call(convcore, name, ours) is ours
        assert call(torch, name, theirs) is theirs
        np.testing.assert_allclose(ours.numpy(), theirs.numpy())


def test_several_results_are_written_into_several_tensors():
    values, indices = convcore.empty(0), convcore.empty(0, dtype=convcore.int64)
    found = convcore.max(convcore.tensor([[1.0, 5.0]]), 1, out=(values, indices))
    assert found.values is values
    assert (values.tolist(), indices.tolist()) == ([5], [1])
    with pytest.raises(TypeError, match="tuple of 2"):
        convcore.max(convcore.ones(1, 2), 1, out=values)


def test_another_shape_is_resized_with_a_warning(torch):
    for lib in (convcore, torch):
        out = lib.ones(3)
        with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
            lib.exp(lib.zeros(2), out=out)
        assert out.tolist() == [1, 1]


def test_what_cannot_be_written_is_refused_and_left_as_it_was(torch):
    same_error(torch, lambda m, x: m.exp(x, out=m.empty(2, 2)), X)
    same_error(torch, lambda m, x: m.exp(x.detach(), out=m.empty(2, 2, dtype=m.int64)), X)
    out = convcore.zeros(2, dtype=convcore.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        convcore.exp(convcore.ones(2), out=out)
    assert out.tolist() == [0, 0]
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not list"):
        convcore.exp(convcore.ones(2), out=[[1]])


def test_an_operand_may_be_the_output():
    x = convcore.tensor([1.0, 2.0])
    version = x._version
    convcore.add(x, x, out=x)
    assert x.tolist() == [2, 4]
    assert x._version > version


def test_every_name_of_the_table_is_a_function_that_can_be_pickled():
    assert {name for name in NAMES if not hasattr(convcore, name)} == set()
    functions = [getattr(convcore, name) for name in NAMES]
    for function in (*functions, convcore.linalg.inv, convcore.linalg.cholesky_ex):
        assert pickle.loads(pickle.dumps(function)) is function


OTHER_DTYPES = {
    "neg": lambda lib, x: lib.neg(x, out=lib.empty(4)),
    "floor": lambda lib, x: lib.floor(x, out=lib.empty(4, dtype=lib.int64)),
    "all": lambda lib, x: lib.all(x, out=lib.empty((), dtype=lib.int64)),
    "complex": lambda lib, x: lib.complex(x, x, out=lib.empty(4)),
    "cat": lambda lib, x: lib.cat([x, x], out=lib.empty(0, dtype=lib.uint8)),
}


@pytest.mark.parametrize("name", OTHER_DTYPES)
def test_some_functions_write_only_their_own_dtype(torch, name):
    same_error(torch, lambda lib, x: OTHER_DTYPES[name](lib, x.detach()), X[0])


def test_nonzero_and_max_say_which_dtype_they_write():
    x = convcore.tensor([1.0, 0.0])
    with pytest.raises(RuntimeError, match="to have scalar type Long but got scalar type Float"):
        convcore.nonzero(x, out=convcore.empty(2, 1))
    with pytest.raises(RuntimeError, match="to have dtype long int, but got int"):
        convcore.max(x, 0, out=(convcore.empty(()), convcore.empty((), dtype=convcore.int32)))
    truth = convcore.empty((), dtype=convcore.uint8)
    assert convcore.any(x, out=truth) is truth and truth.item() == 1


LINALG = [name for name in convcore.linalg.__all__ if name not in convcore.linalg._WITHOUT]


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra_takes_it_too(torch, name):
    square = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = []
    for lib in (convcore, torch):
        x = lib.from_numpy(square.copy())
        args = (x, x.clone()) if name in ("solve", "solve_ex", "solve_triangular") else (x,)
        options = {"upper": False} if name == "solve_triangular" else {}
        if name == "cross":
            args = (lib.ones(3).double(), lib.arange(3.0).double())
        function = getattr(lib.linalg, name)
        results = function(*args, **options)
        several = isinstance(results, tuple)
        outs = [lib.empty(0, dtype=r.dtype) for r in (results if several else [results])]
        out = tuple(outs) if several else outs[0]
        again = function(*args, **options, out=out)
        assert all(a is b for a, b in zip(again if several else [again], outs, strict=True))
        assert all(
            lib.equal(a, b) for a, b in zip(outs, results if several else [results], strict=True)
        )
        found.append([tuple(one.shape) for one in outs])
    assert found[0] == found[1]


def test_wrapped_functions_of_linear_algebra_can_be_pickled():
    assert pickle.loads(pickle.dumps(convcore.linalg.inv)) is convcore.linalg.inv


def test_normalize_takes_it(torch):
    for lib in (convcore, torch):
        out = lib.empty(2, dtype=lib.float64)
        given = lib.tensor([3.0, 4.0], dtype=lib.float64)
        assert lib.nn.functional.normalize(given, dim=0, out=out) is out
        assert out.tolist() == pytest.approx([0.6, 0.8])
