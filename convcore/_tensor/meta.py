"""Tensors on the meta device: a shape and a dtype, without values and without memory for them.

Modules are built there to be filled later: by `Module.to_empty`, or by `load_state_dict` with
``assign=True``.  What is written is forgotten.  Copies, conversions, and what is computed element
by element have a shape and a dtype, and so are on meta again; anything else that computes with
tensors that have no values is an error.  So operands are copied by `np.copyto`, which asks them:
assigned to a subscript of an array that has values they would be zeros.

Sums, products of matrices and layers are errors too, though shapes alone say what theirs are.  No
one place knows it: each kernel finds its result's shape where it computes it, so that each would
have a second way through, with tests of its own.  To compute with zeros instead would take the
memory and the time that the device is there to save.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import numpy as np


class NoValuesError(NotImplementedError):
    """Something was to be computed from values that are not there."""


class MetaArray(np.ndarray):
    """An array of which all elements are one and the same, and mean nothing."""

    def __setitem__(self, index: Any, values: Any) -> None:
        """Forget the values."""

    def fill(self, value: Any) -> None:
        """Forget the value."""

    def copy(self, order: Any = "C") -> MetaArray:
        """Return an array of the same shape and dtype."""
        return meta(self.shape, self.dtype)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> MetaArray:
        """Return an array of the same shape."""
        return meta(self.shape, np.dtype(dtype))

    def view(self, dtype: Any = None) -> MetaArray:  # type: ignore[override]
        """Return an array of as many bytes in another dtype."""
        if dtype is None:
            return super().view()
        target = np.dtype(dtype)
        last = [size * self.itemsize // target.itemsize for size in self.shape[-1:]]
        return meta((*self.shape[:-1], *last), target)

    def item(self, *args: Any) -> NoReturn:
        """Raise RuntimeError: there is no value."""
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    def tolist(self) -> NoReturn:
        """Raise NotImplementedError: there are no values."""
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Forget what is written in place; anything else is an error."""
        if any(isinstance(out, MetaArray) for out in kwargs.get("out", ())):
            return self
        return self.refuse()

    def __array_function__(
        self, function: Callable, types: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Answer what only arranges elements; anything else is an error."""
        first, *others = *args, None
        if isinstance(first, MetaArray):
            if function in _VIEWS:
                return super().__array_function__(function, types, args, kwargs)
            if function in _SHAPES:
                return meta(_SHAPES[function](first.shape, *others), first.dtype)
            if function is np.copyto:
                return None
        return self.refuse()

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: there are no values to compute with; kernels call it."""
        raise NoValuesError(
            "tensors on the device 'meta' have no values to compute with; "
            "Module.to_empty(device='cpu') gives a module memory"
        )


def _same(shape: tuple[int, ...], *args: Any) -> tuple[int, ...]:
    return shape


def _tiled(shape: tuple[int, ...], times: tuple[int, ...], *args: Any) -> tuple[int, ...]:
    rank = max(len(shape), len(times))
    shape, times = ((1,) * (rank - len(one)) + one for one in (shape, times))
    return tuple(size * count for size, count in zip(shape, times, strict=True))


# NumPy's functions that show or arrange the elements of their first argument.
_VIEWS = {np.atleast_1d, np.expand_dims, np.flip, np.moveaxis, np.rot90, np.transpose}
_SHAPES: dict[Callable, Callable] = {
    np.roll: _same,
    np.tile: _tiled,
    np.tril: _same,
    np.triu: _same,
}


def meta(shape: tuple[int, ...], dtype: np.dtype) -> MetaArray:
    """Return an array of a shape and dtype that needs no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape).view(MetaArray)


def empty_beside(array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a new array on the device of another, not initialised."""
    return meta(shape, dtype) if isinstance(array, MetaArray) else np.empty(shape, dtype)


def check_together(*values: Any) -> None:
    """Raise RuntimeError if some arrays are on meta, and others, with axes, on the CPU.

    Numbers, and arrays without axes on the CPU, go with both.
    """
    found = ["meta" if isinstance(one, MetaArray) else "cpu" for one in values if _is_placed(one)]
    other = next((name for name in found if name != found[0]), None)
    if other:
        raise RuntimeError(f"Tensor on device {other} is not on the expected device {found[0]}!")


def _is_placed(value: Any) -> bool:
    return isinstance(value, MetaArray) or (isinstance(value, np.ndarray) and value.ndim > 0)


def of_elements(function: Callable, shape: tuple[int, ...], *operands: Any) -> MetaArray:
    """Return what a function of each element gives of operands, some of them on meta.

    Parameters
    ----------
    function : callable
        It is called with no elements, for the dtype of its result.
    shape : ints
        That of the result.
    operands : arrays and numbers
    """
    check_together(*operands)
    few = [_few(one) for one in operands]
    return meta(shape, np.asarray(function(*few)).dtype)


def _few(operand: Any) -> Any:
    """Return an array of no elements in the place of one with axes; of one element for others."""
    if not isinstance(operand, np.ndarray):
        return operand
    return np.ones((0,) * bool(operand.ndim), operand.dtype)
