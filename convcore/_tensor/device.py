"""device: the CPU, meta (shapes without memory), and the names of devices that are not there."""

from __future__ import annotations

import re
from typing import Any

from convcore._errors import hinted, hints
from convcore.engine.runtime._restoring import Restoring

__all__ = ["device", "get_default_device", "set_default_device"]

# The names that PyTorch knows.  Tensors are on the CPU, or have no memory (meta).
_TYPES = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga"),
    *("maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone"),
)


class device(Restoring):
    """A device, as PyTorch names it; tensors can be on 'cpu' and on 'meta'.

    Others may be named and compared, and are an error where a tensor is to be put there.  In a
    ``with`` block the device is the default of the functions that make tensors.

    Parameters
    ----------
    type : 'cpu', 'cuda:0' ..., or a device.
    index : the number after the colon, where ``type`` has none.

    Raises
    ------
    RuntimeError
        A string that is not a device's name.

    Examples
    --------
    >>> device("cpu"), device("cuda:1")
    (device(type='cpu'), device(type='cuda', index=1))
    """

    __slots__ = ("index", "type")

    index: int | None
    type: str

    def __init__(self, type: str | device, index: int | None = None):
        if isinstance(type, device):
            index = type.index
            type = type.type
        elif isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        elif not isinstance(type, str):
            raise hinted(
                TypeError(
                    f"device() takes a string or a device, but got {type.__class__.__name__}"
                ),
                hints.of_pytorch(type),
            )
        elif index is None and type not in _TYPES:
            type, index = _parsed(type)
        self.type = type
        self.index = _checked(type, index)

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def _enter(self) -> device:
        _defaults.append(self)
        return self

    def _back(self) -> tuple:
        return ((_defaults.__setitem__, (slice(None), tuple(_defaults))),)

    def __reduce__(self) -> tuple:
        return device, (self.type, self.index)


# The default devices, the present one last.
_defaults: list[device] = []
_CPU = device.__new__(device)
_CPU.type, _CPU.index = "cpu", None


def get_default_device() -> device:
    """Return the device of new tensors: the CPU, unless `set_default_device` changed it."""
    return _defaults[-1] if _defaults else _CPU


def set_default_device(device: Any) -> None:
    """Set the device of new tensors; None is the CPU.

    Raises
    ------
    RuntimeError
        Tensors cannot be there.
    """
    check_device(device)
    _defaults[:] = [] if device is None else [_as_device(device)]


def check_device(given: Any, layout: Any = None) -> None:
    """Raise unless ``given`` is None or names a device where tensors, strided ones, can be."""
    if layout is not None and repr(layout) != "torch.strided":
        raise NotImplementedError(f"layout must be torch.strided, got {layout!r}")
    if given is None or given == "cpu":
        return
    named = _as_device(given)
    if named.type not in ("cpu", "meta"):
        raise unavailable(named)


def unavailable(named: Any) -> RuntimeError:
    """Return the error of a device where no tensor can be."""
    error = RuntimeError(f"device '{named}' is not available: convcore computes on the CPU")
    return hinted(error, hints.ON_CPU)


def is_meta(given: Any) -> bool:
    """Return whether a device, or for None the default one, is 'meta'."""
    if given is None:
        return bool(_defaults) and _defaults[-1].type == "meta"
    return _as_device(given).type == "meta"


def _as_device(given: Any) -> device:
    return given if given.__class__ is device else device(given)


def _parsed(name: str) -> tuple[str, int]:
    """Split 'cpu:0'."""
    found = re.fullmatch(r"(\w+):(0|[1-9]\d*)", name)
    if found is None and name.partition(":")[0] in _TYPES:
        raise RuntimeError(f"Invalid device string: '{name}'")
    if not name:
        raise RuntimeError("Device string must not be empty")
    if found is None or found[1] not in _TYPES:
        raise hinted(
            RuntimeError(
                f"Expected one of {', '.join(_TYPES)} device type at start of device string: "
                f"{name.partition(':')[0]}"
            ),
            hints.dtype_name(name) or hints.ON_CPU,
        )
    return found[1], int(found[2])


def _checked(type: str, index: int | None) -> int | None:
    if type not in _TYPES:
        _parsed(type)
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    return index
