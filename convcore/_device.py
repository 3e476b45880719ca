"""device: always the CPU; the class exists for programs that name a device."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["device"]


class device:
    """The CPU, as PyTorch names it.

    Parameters
    ----------
    type : 'cpu', 'cpu:0', or a device.
    index : the number after the colon, where ``type`` has none.

    Raises
    ------
    RuntimeError
        Any other device, or a string that is not a device's name.

    Examples
    --------
    >>> device("cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")

    index: int | None
    type: str

    def __init__(self, type: str | device, index: int | None = None):
        if isinstance(type, device):
            index = type.index
            type = type.type
        elif isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError(f"device {type} is an accelerator's: convcore computes on the CPU")
        elif not isinstance(type, str):
            raise TypeError(
                f"device() takes a string or a device, but got {type.__class__.__name__}"
            )
        elif ":" in type and index is None:
            type, index = _parsed(type)
        if type != "cpu":
            raise RuntimeError(f"device '{type}' is not available: convcore computes on the CPU")
        self.type = type
        self.index = index

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

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __reduce__(self) -> tuple:
        return device, (self.type, self.index)


def check_device(given: Any) -> None:
    """Raise what `device` raises unless ``given`` is None or names the CPU."""
    if given is not None and given != "cpu" and given.__class__ is not device:
        device(given)


def _parsed(name: str) -> tuple[str, int]:
    """Split 'cpu:0'."""
    found = re.fullmatch(r"(\w+):(0|[1-9]\d*)", name)
    if found is None:
        raise RuntimeError(f"Invalid device string: '{name}'")
    return found[1], int(found[2])
