"""Maxima, minima, medians, sorting and topk: functions that pick elements by their order.

NaN counts as larger than everything.  An element that was picked gets the whole gradient; where
nothing says which of several equal ones was picked (`max` of a whole tensor), they share it.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.meta import MetaArray, meta
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.engine.integers import as_dim, as_int
from convcore.engine.runtime.checks import plain
from convcore.functions._support.arguments import check_kind, check_tensor, refuse_complex
from convcore.functions._support.axes import axes, expand_to, with_numpy_names, wrap_dim
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.results import Extremes, Picked
from convcore.functions._support.sorting import sortable
from convcore.functions.elementwise.arithmetic import add, div
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.piecewise import masked, maximum, minimum
from convcore.functions.shapes.shape import unsqueeze

__all__ = [
    "amax",
    "amin",
    "aminmax",
    "argmax",
    "argmin",
    "argsort",
    "max",
    "median",
    "min",
    "sort",
    "topk",
]


def _return_type(name: str, *fields: str) -> Any:
    """Return a class of named tuples that print as PyTorch's do."""
    typed: dict[tuple[str, ...], Any] = {base._fields: base for base in (Picked, Extremes)}

    def shown(self: Any) -> str:
        parts = [f"{field}={value!r}" for field, value in zip(fields, self, strict=True)]
        return f"torch.return_types.{name}(\n" + ",\n".join(parts) + ")"

    def reduced(self: Any, protocol: int) -> Any:
        return _restored, (name, tuple(self))  # the class has the name of the function here

    members = {"__slots__": (), "__repr__": shown, "__reduce_ex__": reduced}
    cls = type(name, (typed.get(fields) or namedtuple(name, fields),), members)
    _RETURN_TYPES[name] = cls
    return cls


_RETURN_TYPES: dict[str, Any] = {}


def _restored(name: str, fields: tuple) -> Any:
    """Unpickle a result."""
    return _RETURN_TYPES[name](*fields)


_AMINMAX = _return_type("aminmax", "min", "max")
_MAX = _return_type("max", "values", "indices")
_MEDIAN = _return_type("median", "values", "indices")
_MIN = _return_type("min", "values", "indices")
_SORT = _return_type("sort", "values", "indices")
_TOPK = _return_type("topk", "values", "indices")


# Elements at indices along an axis, and the gradient


def _pick(x: Tensor, index: np.ndarray, along: int) -> np.ndarray:
    return np.take_along_axis(x._array, index, along) if x._array.ndim else x._array.copy()


def _picked(x: Tensor, index: Tensor, along: int) -> Tensor:
    """Return the elements at ``index`` along an axis; no two are the same one."""
    shape = x._array.shape
    out = wrap(_pick(x, index._array, along))
    backward = lambda needs, grad, index: _put(grad, index, along, shape)  # noqa: E731
    record("GatherBackward0", (x,), out, backward, (index,))
    return out


def _put(grad: Tensor, index: Tensor, along: int, shape: tuple[int, ...]) -> Tensor:
    """Return zeros with the gradient at ``index`` along an axis: the adjoint of `_picked`."""
    array = np.zeros(shape, grad._array.dtype)
    if shape:
        np.put_along_axis(array, index._array, grad._array, along)
    else:
        array[...] = grad._array
    out = wrap(array)
    backward = lambda needs, grad, index: _picked(grad, index, along)  # noqa: E731
    record("ScatterBackward0", (grad,), out, backward, (index,))
    return out


def _choose(
    kind: Any, node: str, x: Tensor, index: np.ndarray, along: int, keepdim: bool = True
) -> Any:
    """Return (values, indices) of the elements at ``index``, which has x's number of axes."""
    shape = x._array.shape
    dropped = bool(shape) and not keepdim
    values, index = _pick(x, index, along), np.asarray(index, np.int64)
    if isinstance(values, MetaArray):  # without elements, or with one: no order was asked for
        index = meta(index.shape, index.dtype)
    if dropped:
        values, index = values.squeeze(along), index.squeeze(along)
    out = kind(wrap(values), wrap(index))

    def backward(needs: tuple[bool, ...], grads: tuple, indices: Tensor) -> Tensor | None:
        grad = grads[0]
        if grad is None:
            return None
        if dropped:
            indices = unsqueeze(indices, along)
            grad = expand_to(grad, (along,), indices._array.shape)
        return _put(grad, indices, along, shape)

    if mode.enabled:
        record(node, (x,), tuple(out), backward, (out[1],))
    return out


def _share(x: Tensor, y: Tensor, over: tuple[int, ...], grad: Tensor) -> Tensor:
    """Return the gradient, in equal parts, at the elements of ``x`` that equal ``y``."""
    value = y._array
    if value.ndim != x._array.ndim:
        value = np.expand_dims(value, over)
    equal = x._array == value
    if value.dtype.kind in "fV":
        equal |= np.isnan(value) & np.isnan(x._array)
    number = np.count_nonzero(equal, axis=over, keepdims=True)
    shared = masked(expand_to(grad, over, x._array.shape), equal)
    if np.all(number == 1):
        return shared
    return div(shared, wrap(np.asarray(number, grad._array.dtype)))


def _shared(name: str, input: Tensor, value: np.ndarray) -> Tensor:
    """Return one of the elements, whose gradient goes to all that equal it."""
    out = wrap(value)
    if mode.enabled:
        over = tuple(range(input._array.ndim))
        backward = lambda needs, grad, x, y: _share(x, y, over, grad)  # noqa: E731
        record(name, (input,), out, backward, (input, out))
    return out


# Maxima and minima


@with_numpy_names
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element; along an axis, with its index; or the larger of two tensors.

    Parameters
    ----------
    input : Tensor
    dim : int, Tensor or None
        None: the largest of all, a Tensor.  An int: (values, indices) along that axis.  A Tensor:
        `maximum` of it and input.
    keepdim : bool
        Keep the axis, with size 1.

    Raises
    ------
    RuntimeError, IndexError
        There are no elements, of all or along the axis.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([[1, 5], [7, 3]]).max(1)
    torch.return_types.max(
    values=tensor([5, 7]),
    indices=tensor([1, 0]))
    """
    check_tensor("max", input)
    if other is not None or isinstance(dim, Tensor):
        return maximum(input, dim if other is None else other)
    if dim is None:
        check_kind("max_all", input, "fViub")
        return _largest("max", "MaxBackward1", np.maximum, input)
    refuse_complex("max(): does not support complex input", input)
    along = _non_empty_axis("max", input, dim)
    index = np.argmax(input._array, axis=along if input._array.ndim else None, keepdims=True)
    return _choose(_MAX, "MaxBackward0", input, index, along, keepdim)


@with_numpy_names
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; along an axis, with its index; or the smaller of two tensors.

    The arguments, and the errors, are those of `max`.
    """
    check_tensor("min", input)
    if other is not None or isinstance(dim, Tensor):
        return minimum(input, dim if other is None else other)
    if dim is None:
        check_kind("min_all", input, "fViub")
        return _largest("min", "MinBackward1", np.minimum, input)
    refuse_complex("min(): does not support complex input", input)
    along = _non_empty_axis("min", input, dim)
    index = np.argmin(input._array, axis=along if input._array.ndim else None, keepdims=True)
    return _choose(_MIN, "MinBackward0", input, index, along, keepdim)


def _largest(function: str, node: str, ufunc: np.ufunc, x: Tensor) -> Tensor:
    if x._array.size == 0:
        _refuse_empty(function, x, None)
    return _extreme(function, node, ufunc, x, None, False)


def _refuse_empty(function: str, x: Tensor, dim: int | None) -> None:
    if dim is None:
        raise RuntimeError(
            f"{function}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    _non_empty_axis(function, x, dim)


def _non_empty_axis(function: str, x: Tensor, dim: Any) -> int:
    shape = x._array.shape
    along = wrap_dim(dim, len(shape))
    if shape and shape[along] == 0:
        raise IndexError(f"{function}(): Expected reduction dim {along} to have non-zero size.")
    return along


@with_numpy_names
def amax(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the largest element over some axes; equal ones share the gradient."""
    check_tensor("amax", input)
    check_kind("max_values_cpu", input, "fViub")
    return _extreme("amax", "AmaxBackward0", np.maximum, input, dim, keepdim)


@with_numpy_names
def amin(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    """Return the smallest element over some axes; equal ones share the gradient."""
    check_tensor("amin", input)
    check_kind("min_values_cpu", input, "fViub")
    return _extreme("amin", "AminBackward0", np.minimum, input, dim, keepdim)


def _extreme(
    function: str, node: str, ufunc: np.ufunc, x: Tensor, dim: Any, keepdim: bool
) -> Tensor:
    array = x._array
    over = axes(dim, array.ndim)
    for one in over:
        if array.shape[one] == 0:
            _non_empty_axis(function, x, one)
    out = wrap(np.asarray(ignore_errstate(ufunc.reduce, array, axis=over, keepdims=keepdim)))
    if mode.enabled:
        backward = lambda needs, grad, x, y: _share(x, y, over, grad)  # noqa: E731
        record(node, (x,), out, backward, (x, out))
    return out


@names_arguments
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return the smallest and the largest element, of all or along an axis, as (min, max)."""
    check_tensor("aminmax", input)
    check_kind("aminmax_cpu", input, "fViub")
    array = input._array
    over = axes(() if dim is None else as_dim(dim), array.ndim)
    if array.size == 0:
        _refuse_empty("aminmax", input, dim)
    least, most = (
        wrap(np.asarray(ignore_errstate(ufunc.reduce, array, axis=over, keepdims=keepdim)))
        for ufunc in (np.minimum, np.maximum)
    )
    out = _AMINMAX(least, most)
    if mode.enabled:

        def backward(needs: tuple[bool, ...], grads: tuple, x: Tensor, *ys: Tensor) -> Any:
            parts = [
                _share(x, y, over, grad)
                for y, grad in zip(ys, grads, strict=True)
                if grad is not None
            ]
            return add(*parts) if len(parts) == 2 else parts[0]

        record("AminmaxBackward0", (input,), tuple(out), backward, (input, least, most))
    return out


@with_numpy_names
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the largest element, the first of equal ones, of all or along an axis.

    Raises
    ------
    IndexError
        There are no elements, of all or along the axis.
    """
    check_tensor("argmax", input)
    return _arg("argmax", np.argmax, input, dim, keepdim)


@with_numpy_names
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the smallest element, the first of equal ones, of all or along an axis.

    Raises
    ------
    IndexError
        There are no elements, of all or along the axis.
    """
    check_tensor("argmin", input)
    return _arg("argmin", np.argmin, input, dim, keepdim)


def _arg(function: str, find: Any, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    array = x._array
    if array.dtype.kind == "b":
        raise RuntimeError(f"{function}(): does not support bool input")
    refuse_complex(f"{function}(): does not support complex input", x)
    if dim is None and array.size == 0:
        raise IndexError(
            f"{function}(): Expected reduction dim to be specified for input.numel() == 0."
        )
    along = None if dim is None else _non_empty_axis(function, x, dim)
    index = find(array, axis=along if array.ndim else None, keepdims=keepdim)
    return wrap(np.asarray(index, np.int64))


@in_float32
@with_numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the median, the lower one of two; along an axis, with its index.

    Where there is NaN, the median is NaN.
    """
    check_tensor("median", input)
    check_kind("median_cpu" if dim is None else "median_out", input, "fiub")
    array = input._array
    if dim is None:
        if array.size == 0:
            return wrap(undefined(plain(array).dtype))
        value = array.ravel()[_median_index(array.reshape(-1), 0)[0]]
        return _shared("MedianBackward0", input, np.asarray(value))
    along = _non_empty_axis("median", input, dim)
    index = _median_index(array, along) if array.ndim else np.asarray(0)
    return _choose(_MEDIAN, "MedianBackward1", input, index, along, keepdim)


def undefined(dtype: np.dtype) -> np.ndarray:
    """Return what stands for the median of nothing: NaN, or the least integer."""
    if dtype.kind in "iu":
        return np.asarray(np.iinfo(dtype).min, dtype)
    return np.asarray(np.nan, dtype)


def _median_index(array: np.ndarray, along: int) -> np.ndarray:
    middle = (array.shape[along] - 1) // 2
    index = np.take(np.argsort(array, axis=along, kind="stable"), [middle], axis=along)
    if array.dtype.kind != "f":
        return index
    nan = np.isnan(array)
    first = np.argmax(nan, axis=along, keepdims=True)
    return np.where(np.any(nan, axis=along, keepdims=True), first, index)


# Sorting

_UNSORTED = "Sort does not support complex dtypes on CPU"


def _order(array: np.ndarray, along: int, descending: bool) -> np.ndarray:
    """Return the indices of a stable sort along an axis."""
    if array.ndim == 0:
        return np.zeros((), np.int64)
    array = sortable(array)
    if not descending:
        return np.argsort(array, axis=along, kind="stable")
    backwards = np.argsort(np.flip(array, along), axis=along, kind="stable")
    return array.shape[along] - 1 - np.flip(backwards, along)


@names_arguments
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Picked:
    """Return the elements sorted along an axis, and their indices, as (values, indices).

    Parameters
    ----------
    input : Tensor
    dim : int
    descending : bool
    stable : bool
        Of no effect: equal elements always keep their order.
    """
    check_tensor("sort", input)
    along = wrap_dim(dim, input._array.ndim)
    refuse_complex(_UNSORTED, input)
    index = _order(input._array, along, descending)
    return _choose(_SORT, "SortBackward0", input, index, along)


@names_arguments
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Return the indices that sort the elements along an axis; the rest as for `sort`."""
    check_tensor("argsort", input)
    along = wrap_dim(dim, input._array.ndim)
    refuse_complex(_UNSORTED, input)
    return wrap(np.asarray(_order(plain(input._array), along, descending), np.int64))


@names_arguments
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Picked:
    """Return the ``k`` largest elements along an axis, and their indices, as (values, indices).

    Parameters
    ----------
    input : Tensor
    k : int
    dim : int
    largest : bool
        False: the smallest.
    sorted : bool
        Of no effect: they are always sorted.

    Raises
    ------
    RuntimeError
        The axis has fewer than ``k`` elements.
    """
    check_tensor("topk", input)
    array = input._array
    along = wrap_dim(dim, array.ndim)
    refuse_complex("topk does not support complex dtypes on CPU", input)
    k = as_int(k)
    if not 0 <= k <= (array.shape[along] if array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    index = _order(array, along, largest)
    if array.ndim:
        index = np.take(index, np.arange(k), axis=along)
    return _choose(_TOPK, "TopkBackward0", input, index, along)
