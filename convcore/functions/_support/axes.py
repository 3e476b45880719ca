"""Reductions: the axes that ``dim`` means, sums over them, and the gradients of sums."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from convcore._errors.calls import UNNAMED, explained
from convcore._tensor import Tensor, wrap
from convcore.autograd.node import record
from convcore.autograd.views import view
from convcore.engine.integers import as_dim
from convcore.engine.layers.reduce.reduce import total as total_by_kernel

__all__: list[str] = []

Function = TypeVar("Function", bound=Callable)


def wrap_dim(dim: Any, rank: int) -> int:
    """Return the axis, counted from the front, that ``dim`` means; a number without axes has one.

    Raises
    ------
    IndexError
        There is no such axis.
    TypeError
        ``dim`` is no int.
    """
    if dim.__class__ is not int:
        dim = as_dim(dim)
    limit = rank or 1
    if not -limit <= dim < limit:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got "
            f"{dim})"
        )
    return dim % limit


def axes(dim: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that ``dim`` means: an int, several, or None (and no ints) for all.

    Raises
    ------
    RuntimeError
        An axis is named twice.
    """
    if dim is None:
        return tuple(range(rank))
    dims = (dim,) if hasattr(dim, "__index__") else dim
    if not isinstance(dims, tuple | list | range):
        raise TypeError(f"argument 'dim' must be int or tuple of ints, not {type(dim).__name__}")
    chosen = [wrap_dim(one, rank) for one in dims]
    for one in chosen:
        if chosen.count(one) > 1:
            raise RuntimeError(f"dim {one} appears multiple times in the list of dims")
    if rank == 0:
        return ()
    return tuple(chosen) if chosen else tuple(range(rank))


def expand_to(x: Tensor, over: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Return a view of ``x`` repeated over axes ``over`` of ``shape``: the adjoint of their sum.

    Those axes are missing in ``x``, or of size 1.
    """
    array = x._array
    before = array.shape
    kept = len(before) == len(shape)
    own = iter(array.strides)
    strides = []
    for position in range(len(shape)):
        if position in over:
            strides.append(0)
            if kept:
                next(own)
        else:
            strides.append(next(own))
    if array.flags.c_contiguous:  # as_strided costs more than a small operation
        repeated = np.ndarray(shape, array.dtype, array, 0, strides)
    else:
        repeated = np.lib.stride_tricks.as_strided(array, shape, strides)
    return view(x, repeated, "ExpandBackward0", lambda needs, grad: gather_sum(grad, over, before))


def gather_sum(x: Tensor, over: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Return the sum of ``x`` over some axes in ``shape``, which has them as 1 or not at all."""
    before = x._array.shape
    total = total_of(x._array, over, keepdims=len(shape) == len(before))
    out = wrap(total)
    record("SumBackward1", (x,), out, lambda needs, grad: expand_to(grad, over, before))
    return out


# Additions one after another up to which float32 keeps what PyTorch's sums keep.
_CHAIN = 128

_WIDER = str.maketrans("fF", "dD")


def total_of(array: np.ndarray, over: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """Return the sum over some axes, in the array's dtype; see `wide_total_of`."""
    return np.asarray(wide_total_of(array, over, keepdims), array.dtype)


def wide_total_of(array: np.ndarray, over: tuple[int, ...], keepdims: bool) -> np.ndarray:
    """Return the sum over some axes, accurate where there is much to add.

    NumPy adds pairwise along the axis that runs fastest in memory, and one after another along the
    others: rounding then grows with their length.  Long chains are added in a wider type, and the
    sum is returned in that.  Where the engine has a kernel, it adds, and in float64.
    """
    total = total_by_kernel(array, over, keepdims)
    if total is not None:
        return total
    dtype = wide = array.dtype
    if dtype.char in "fF" and _chain(array, over) > _CHAIN:
        wide = np.dtype(dtype.char.translate(_WIDER))
    elif dtype.char in "eE":  # float16, and bfloat16 as ml_dtypes names it
        wide = np.dtype("d" if _chain(array, over) > _CHAIN else "f")
    reduce: Any = np.add.reduce  # its types know keepdims as a literal only
    return np.asarray(reduce(array, axis=over, dtype=wide, keepdims=keepdims))


def _chain(array: np.ndarray, over: tuple[int, ...]) -> int:
    """Return how many numbers are added one after another; those of the fastest axis are not."""
    shape = array.shape
    count = 1
    for one in over:
        count *= shape[one]
    if count <= _CHAIN:
        return count
    # The run of reduced axes, neighbours in memory, that the fastest axis begins.
    run = 1
    order = sorted(range(array.ndim), key=lambda k: (abs(array.strides[k]), -k))
    for one in order:
        if shape[one] == 1:
            continue
        if one not in over or abs(array.strides[one]) != run * array.itemsize:
            break
        run *= shape[one]
    return count // max(run, 1)


def with_numpy_names(function: Function) -> Function:
    """Let a reduction be called with NumPy's ``axis`` and ``keepdims``, as PyTorch's can be.

    An ``out`` that is None is passed over: NumPy's own functions, such as ``np.sum``, give it.
    Errors name the argument, as by `names_arguments`.
    """

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        if "out" in kwargs and kwargs["out"] is None:
            del kwargs["out"]
        try:
            if kwargs and kwargs.get("dim").__class__ is bool:  # var(x, True) means unbiased
                raise TypeError("argument 'dim' must be int or tuple of ints, not bool")
            return function(*args, **kwargs)
        except UNNAMED as error:
            better = explained(function.__name__, function, error, args, kwargs)
            if better is error:
                raise
        raise better

    return renamed  # type: ignore[return-value]
