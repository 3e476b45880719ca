"""Conversion of a module's parameters and buffers: dtype, device, memory format, shared memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from convcore._tensor import Tensor
from convcore._tensor.creation import empty_like
from convcore._tensor.device import check_device
from convcore._tensor.device import device as _device
from convcore._tensor.dtypes import as_numpy, of
from convcore._tensor.dtypes import dtype as _dtype
from convcore.autograd.grad_mode import no_grad
from convcore.nn.parameter import Parameter

Self = TypeVar("Self", bound="Conversion")


class Conversion:
    """The part of Module that replaces its parameters and buffers by converted ones."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    children: Callable[[], Iterator[Any]]

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of all parameters, gradients and buffers by ``fn`` of them.

        Parameters stay the same objects, because optimizers refer to them.
        """
        for module in self.children() if recurse else ():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                _replace_data(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self: Self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Convert parameters and buffers in place.

        Parameters
        ----------
        dtype : dtype, optional
            For those of floating-point or complex dtype; others keep theirs.
        device : device or str, optional
            The CPU, or 'meta'.
        memory_format : memory_format, optional
            For those with four axes; keyword only.
        tensor : Tensor, optional
            In the place of ``dtype``: the dtype of this tensor.
        non_blocking : bool
            Has no effect on the CPU.

        Raises
        ------
        RuntimeError
            The device is not there.
        NotImplementedError
            From 'meta' to the CPU, for which there are no values; see `to_empty`.
        TypeError
            The dtype is neither floating-point nor complex.
        """
        device, dtype, memory_format = _parse_to(
            *args, device=device, dtype=dtype, memory_format=memory_format
        )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may "
                "change, and some modules might not work as expected when using complex tensors as "
                "parameters or buffers.",
                stacklevel=3,  # of who calls it through `hinting`
            )
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(tensor: Tensor) -> Tensor:
            if device is not None:
                tensor = _moved(tensor, device)
            if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()):
                tensor = tensor.to(dtype)
            if memory_format is not None and tensor.dim() == 4:
                tensor = tensor.to(memory_format=memory_format)
            return tensor

        return self._apply(convert)

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Replace parameters and buffers by uninitialised ones on a device, in place.

        Parameters
        ----------
        device : device or str
            'cpu' for modules built on 'meta', which then get their values by `load_state_dict`.
        recurse : bool
            Whether those of descendants are replaced too.
        """
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse=recurse)

    def share_memory(self: Self) -> Self:
        """Move parameters and buffers to memory that child processes share."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def type(self: Self, dst_type: Any) -> Self:
        """Convert all parameters and buffers in place to a dtype, also integer ones."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: Self) -> Self:
        """Convert floating-point parameters and buffers in place to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: Self) -> Self:
        """Convert floating-point parameters and buffers in place to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: Self) -> Self:
        """Convert floating-point parameters and buffers in place to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: Self) -> Self:
        """Convert floating-point parameters and buffers in place to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self: Self) -> Self:
        """Do nothing: everything is on the CPU."""
        return self

    def cuda(self: Self, device: Any = None) -> Self:
        """Raise RuntimeError: this library computes on the CPU."""
        return self.to(_device("cuda"))


def _replace_data(parameter: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Replace the data of a parameter and of its gradient by ``fn`` of them."""
    with no_grad():
        changed = fn(parameter)
        if changed is not parameter:
            parameter.data = changed
        grad = parameter.grad
        if grad is not None:
            changed = fn(grad)
            if changed is not grad:
                grad.data = changed


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> tuple[Any, Any, Any]:
    """Return the device, the dtype and the memory format from the arguments of `Module.to`."""
    for place, value in enumerate(args):
        if isinstance(value, _dtype) and dtype is None:
            dtype = value
        elif isinstance(value, Tensor) and place == 0:
            dtype = value.dtype
        elif isinstance(value, (_device, str)) and place == 0:
            device = value
        elif value is not None and not (isinstance(value, bool) and (dtype or place > 1)):
            raise TypeError(f"to() received an invalid combination of arguments - got {value!r}")
    if device is not None:
        check_device(device)
    if dtype is not None and not isinstance(dtype, _dtype):
        dtype = of(as_numpy(dtype))  # refuses strings
    return device, dtype, memory_format


def _moved(tensor: Tensor, device: Any) -> Tensor:
    """Return a tensor on a device."""
    try:
        return tensor.to(device)
    except NotImplementedError:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
            "instead of torch.nn.Module.to() when moving module from meta to a different device."
        ) from None
