"""Copies and conversions: clone, contiguous, to, copy_, fill_, detach_, new_zeros.

A copy keeps the order of the axes in memory unless it is told otherwise, as in PyTorch; so
channels_last stays channels_last.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    creation,
    dtypes,
    memory_format,
    preserve_format,
    wrap,
)
from convcore._tensor.creation.arguments import checked_number, element
from convcore._tensor.creation.memory import check_format, empty_array, empty_preserving
from convcore._tensor.device import check_device, is_meta, unavailable
from convcore._tensor.device import device as _device
from convcore._tensor.meta import MetaArray, meta
from convcore.autograd.node import describe, record
from convcore.autograd.views import check_fits, write
from convcore.engine.runtime import casts
from convcore.functions._support.arguments import check_optional, check_tensor
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.piecewise import zeros_like
from convcore.functions.shapes.broadcast import broadcast_shape, fit

__all__ = ["clone"]

_Format = memory_format


# Copies of a whole tensor


def clone(input: Tensor, *, memory_format: _Format = preserve_format) -> Tensor:
    """Return a copy, through which gradients flow back.

    Parameters
    ----------
    input : Tensor
    memory_format : the format of the copy; by default that of ``input``, where its elements lie
        densely.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(2, requires_grad=True)
    >>> x.clone()
    tensor([1., 1.], grad_fn=<CloneBackward0>)
    """
    check_tensor("clone", input)
    out = wrap(copied(input._array, input._array.dtype, memory_format))
    record("CloneBackward0", (input,), out, _pass_on)
    describe(out, forward=lambda array: copied(array, array.dtype, memory_format))
    return out


def _pass_on(needs: tuple[bool, ...], grad: Tensor) -> Tensor:
    return grad


def copied(array: np.ndarray, dtype: np.dtype, memory_format: _Format) -> np.ndarray:
    """Return a copy of an array in a dtype and a memory format.

    Complex numbers lose their imaginary part in a real dtype, floats are cut in an integer one.
    """
    if isinstance(array, MetaArray):
        return meta(array.shape, dtype)
    if memory_format is preserve_format or memory_format is None:
        # One-pixel maps are contiguous in both formats; only their strides tell which they are in.
        plain = array.flags.c_contiguous and (array.ndim < 4 or 1 not in array.shape)
        if plain and array.dtype is dtype:
            return array.copy()
        out = np.empty(array.shape, dtype) if plain else empty_preserving(array, dtype)
    else:
        out = empty_array(array.shape, dtype, memory_format)
    store(out, array)
    return out


def store(out: np.ndarray, values: np.ndarray) -> None:
    """Write values of any dtype into an array; they may broadcast.

    Raises
    ------
    NotImplementedError
        The values are on the meta device, where there are none, and the array is not.
    """
    if isinstance(values, MetaArray) and not isinstance(out, MetaArray):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if values.dtype.kind == "c" and out.dtype.kind not in "cb":
        values = values.real
    if values.dtype is out.dtype:
        out[...] = values
    else:
        ignore_errstate(casts.copyto, out, values)


_told: list[str] = []


def _tell_of_lost(before: np.dtype, after: np.dtype) -> None:
    """Warn, once in a process as PyTorch does, of imaginary parts that a conversion leaves out."""
    if before.kind == "c" and after.kind not in "cb" and not _told:
        text = "Casting complex values to real discards the imaginary part"
        _told.append(text)
        warnings.warn(text, stacklevel=4)


def contiguous(input: Tensor, memory_format: _Format = contiguous_format) -> Tensor:
    """Return the tensor contiguous in a memory format; itself if it already is.

    Raises
    ------
    RuntimeError
        The format is one for tensors of another rank.
    """
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    _check_rank(input, memory_format)
    if input.is_contiguous(memory_format):
        return input
    return clone(input, memory_format=memory_format)


def _check_rank(x: Tensor, memory_format: _Format) -> None:
    check_format(memory_format)
    rank = {channels_last: 4, channels_last_3d: 5}.get(memory_format)
    if rank is not None and x._array.ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {memory_format._name} format")


# Other dtypes


def to(
    self: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: _Format = preserve_format,
) -> Tensor:
    """Return the tensor in another dtype or memory format; itself if it already is.

    Called as ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(other)``, which takes the
    dtype of another tensor; ``non_blocking`` and ``copy`` may follow.

    Parameters
    ----------
    dtype : the type of the elements
    device : 'cpu' or 'meta'
    non_blocking : ignored
    copy : copy even if nothing changes
    memory_format : by default the tensor's own

    Raises
    ------
    RuntimeError
        A device that is not there; a format for tensors of another rank.

    Examples
    --------
    >>> import convcore
    >>> convcore.tensor([1.7, -1.7]).to(convcore.int64)
    tensor([ 1, -1])
    """
    if args:
        first, *rest = args
        if isinstance(first, Tensor):
            other = first
        elif first is None or isinstance(first, str | _device):
            device = first
            if rest and not isinstance(rest[0], bool):
                dtype = rest.pop(0)
        elif isinstance(first, int) and not isinstance(first, bool):
            device = _device(first)  # type: ignore[arg-type]  # raises
        else:
            dtype = first
        flags = (*rest, *(non_blocking, copy)[len(rest) :])
        if len(flags) > 2:
            raise TypeError("to() received an invalid combination of arguments")
        non_blocking, copy = flags
    check_device(device)
    if other is not None:
        check_optional("to", other=other)
        dtype = other._array.dtype
    target = self._array.dtype if dtype is None else dtypes.as_numpy(dtype)
    if device is not None and is_meta(device) is not self.is_meta:
        if self.is_meta:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return wrap(meta(self._array.shape, target))
    return _converted(self, target, copy, memory_format)


def _converted(
    x: Tensor, dtype: np.dtype, copy: bool = False, memory_format: _Format = preserve_format
) -> Tensor:
    array = x._array
    if array.dtype == dtype and not copy:
        if memory_format is preserve_format or memory_format is None:
            return x
        _check_rank(x, memory_format)
        # Not whether it is contiguous: a batch of one-channel images is that in both formats, and
        # whoever asks for one by name wants the strides that say so.
        if x._suggested_format() is memory_format:
            return x
    _tell_of_lost(array.dtype, dtype)
    return _cast(x, dtype, memory_format)


def _cast(x: Tensor, dtype: np.dtype, memory_format: _Format = preserve_format) -> Tensor:
    out = wrap(copied(x._array, dtype, memory_format))
    if dtype.kind in dtypes.INEXACT:
        before = x._array.dtype
        record("ToCopyBackward0", (x,), out, lambda needs, grad: _cast_back(grad, before))
    return out


def _cast_back(grad: Tensor, dtype: np.dtype) -> Tensor:
    return grad if grad._array.dtype == dtype else _cast(grad, dtype)


def _conversion(target: dtypes.dtype, name: str) -> Callable[..., Tensor]:
    """Return the method that converts to one dtype, such as `Tensor.double`."""

    def method(self: Tensor, memory_format: _Format = preserve_format) -> Tensor:
        return _converted(self, target.numpy, memory_format=memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return the tensor in {target}; itself if that is its dtype."
    return method


@names_arguments
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of another."""
    return _converted(input, other._array.dtype)


def cpu(self: Tensor, memory_format: _Format = preserve_format) -> Tensor:
    """Return the tensor itself: it is on the CPU, or on 'meta', whence nothing can be copied."""
    if self.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return _converted(self, self._array.dtype, memory_format=memory_format)


def cuda(self: Tensor, device: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    """Raise RuntimeError: there is no other device than the CPU."""
    raise unavailable("cuda")


# In-place copies and fills


@names_arguments
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Replace the values by those of another tensor, or a number, which broadcast to them.

    They are converted to this tensor's dtype.  Gradients flow to ``src``; to what this tensor was
    before flow zeros.

    Raises
    ------
    RuntimeError
        ``src`` does not broadcast to this tensor's shape; this tensor cannot be written to.
    """
    if not isinstance(src, Tensor):
        if not isinstance(src, int | float | complex | np.generic):
            raise TypeError(
                f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}"
            )
        src = wrap(np.asarray(src, dtypes.number_dtype(src)))
    values = src._array
    _tell_of_lost(values.dtype, self._array.dtype)
    shape = self._array.shape
    if values.shape != shape:
        check_fits(shape, broadcast_shape(shape, values.shape))
    like = values.shape, values.dtype
    return write(
        self,
        lambda array: store(array, values),
        "CopyBackwards",
        (forgotten(self), src),
        lambda needs, grad: (
            zeros_like(grad) if needs[0] else None,
            fit(grad, like) if needs[1] and like[1].kind in dtypes.INEXACT else None,
        ),
    )


def forgotten(x: Tensor) -> Tensor | None:
    """Return the input that stands for ``x`` in the node of an operation that overwrites it.

    In PyTorch a leaf behind such a tensor gets a gradient of zeros, not none at all.  Where ``x``
    is a view its base passes them on already.
    """
    return x if x._view is None else None


def fill_(self: Tensor, value: Any) -> Tensor:
    """Replace every value by a number, or by that of a tensor without axes.

    Raises
    ------
    RuntimeError
        The tensor has axes; the number does not fit into this tensor's dtype.
    """
    if not isinstance(value, Tensor):
        number = checked_number("fill_", value, "value")
        return _overwrite(self, element(number, self._array.dtype), "FillBackward2")
    if value._array.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value._array.ndim} dimensions."
        )
    like = (), value._array.dtype
    _tell_of_lost(value._array.dtype, self._array.dtype)
    return write(
        self,
        lambda array: store(array, value._array),
        "FillBackward3",
        (forgotten(self), value),
        lambda needs, grad: (
            zeros_like(grad) if needs[0] else None,
            fit(grad, like) if needs[1] else None,
        ),
    )


def zero_(self: Tensor) -> Tensor:
    """Replace every value by zero."""
    return _overwrite(self, 0, "ZeroBackward0")


def _overwrite(x: Tensor, number: Any, name: str) -> Tensor:
    backward = lambda needs, grad: zeros_like(grad)  # noqa: E731
    try:
        return write(x, lambda array: array.fill(number), name, (forgotten(x),), backward)
    except RuntimeError:
        if x.requires_grad or 0 not in x._array.strides:
            raise
    # An expanded tensor: each element that lies in memory once.
    places = (*[slice(None) if step else 0 for step in x._array.strides], ...)
    once = wrap(x._array[places])
    once._counter = x._counter
    write(once, lambda array: array.fill(number), name, (), backward)
    return x


# The graph


def detach_(self: Tensor) -> Tensor:
    """Detach the tensor from the graph in place; it becomes a leaf.

    Raises
    ------
    RuntimeError
        It is a view.
    """
    if self._view is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._grad_fn, self._output_nr, self._requires_grad = None, 0, False
    return self


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether operations on this leaf are recorded; return it.

    Raises
    ------
    RuntimeError
        It is no leaf and would stop requiring grad, or is of integers.
    TypeError
        ``requires_grad`` is no bool.
    """
    if not isinstance(requires_grad, bool):
        kind = type(requires_grad).__name__
        raise TypeError(f"requires_grad_(): argument 'requires_grad' must be bool, not {kind}")
    if self.is_leaf or not requires_grad:
        self.requires_grad = requires_grad
    return self


# New tensors of this one's dtype


def new_tensor(self: Tensor, data: Any, **kwargs: Any) -> Tensor:
    """Copy ``data`` into a new tensor, of this tensor's dtype and device unless given."""
    return creation.tensor(data, **as_of(self, kwargs))


def new_zeros(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of zeros, of this tensor's dtype and device unless given."""
    return creation.zeros(*size, **as_of(self, kwargs))


def new_ones(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of ones, of this tensor's dtype and device unless given."""
    return creation.ones(*size, **as_of(self, kwargs))


def new_empty(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Return an uninitialised tensor, of this tensor's dtype and device unless given."""
    return creation.empty(*size, **as_of(self, kwargs))


def new_full(self: Tensor, size: Any, fill_value: Any, **kwargs: Any) -> Tensor:
    """Return a tensor of one number, of this tensor's dtype and device unless given."""
    return creation.full(size, fill_value, **as_of(self, kwargs))


def as_of(x: Tensor, kwargs: dict) -> dict:
    """Return arguments of a function that makes tensors, with a tensor's dtype and device."""
    for name, value in (("dtype", x._array.dtype), ("device", x.device)):
        if kwargs.get(name) is None:
            kwargs[name] = value
    return kwargs


_CONVERSIONS = {
    **{"bool": dtypes.bool, "byte": dtypes.uint8, "char": dtypes.int8, "short": dtypes.int16},
    **{"int": dtypes.int32, "long": dtypes.int64, "half": dtypes.float16, "float": dtypes.float32},
    **{"double": dtypes.float64, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128},
    "bfloat16": dtypes.bfloat16,
}
_METHODS_ONLY = (
    *(contiguous, copy_, cpu, cuda, detach_, fill_, requires_grad_, to, type_as, zero_),
    *(new_empty, new_full, new_ones, new_tensor, new_zeros),
)
METHODS = {
    **{name: _conversion(dtype, name) for name, dtype in _CONVERSIONS.items()},
    **{function.__name__: function for function in _METHODS_ONLY},
}
