"""finfo and iinfo: the limits of floating-point and integer dtypes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from convcore._tensor.dtypes import dtype, get_default_dtype

__all__ = ["finfo", "iinfo"]


def _checked(function: str, type: Any) -> dtype:
    """Return a dtype; TypeError for what is none."""
    if not isinstance(type, dtype):
        kind = type.__class__.__name__
        raise TypeError(
            f"{function}(): argument 'type' (position 1) must be torch.dtype, not {kind}"
        )
    return type


class finfo:
    """The limits of a floating-point dtype, or of the parts of a complex one.

    Attributes
    ----------
    bits, dtype : the size in bits, and the name.
    min, max, eps : the lowest and highest finite number; the step after 1.
    tiny, smallest_normal : the smallest positive number of full precision.
    resolution : 10 to the power of minus the number of exact decimal digits.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None):
        type = get_default_dtype() if type is None else _checked("finfo", type)
        if not type.is_floating_point and not type.is_complex:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        limits = _limits_of(type)
        self.bits = limits.bits
        self.dtype = type.to_real()._name
        self.eps = float(limits.eps)
        self.max = float(limits.max)
        self.min = float(limits.min)
        self.tiny = self.smallest_normal = float(limits.smallest_normal)
        self.resolution = 10.0**-limits.precision

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        parts = [f"{name}={getattr(self, name):g}" for name in shown]
        return f"finfo({', '.join(parts)}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)


def _limits_of(type: dtype) -> Any:
    """Return NumPy's finfo of a dtype; for bfloat16, which NumPy has not, its own limits.

    bfloat16 is the upper half of float32: the same exponents, and 7 bits of fraction.
    """
    if type._name != "bfloat16":
        return np.finfo(type.numpy)
    most = (2.0 - 2.0**-7) * 2.0**127
    return SimpleNamespace(
        bits=16, eps=2.0**-7, max=most, min=-most, smallest_normal=2.0**-126, precision=2
    )


class iinfo:
    """The limits of an integer dtype.

    Attributes
    ----------
    bits, dtype : the size in bits, and the name.
    min, max : the lowest and highest number.
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype):
        if _checked("iinfo", type).is_floating_point or type.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        if type._name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        limits = np.iinfo(type.numpy)
        self.bits = limits.bits
        self.dtype = type._name
        self.max = limits.max
        self.min = limits.min

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)
