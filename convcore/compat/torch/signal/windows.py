"""Windows of signals by their number of values; SciPy computes them.

Each function takes ``M``, the number of values, and by keyword ``sym``, whether the window is
symmetric or one period, and the options of all functions that make tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import convcore
from convcore import Tensor

__all__ = [
    *("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine"),
    *("general_hamming", "hamming", "hann", "kaiser", "nuttall"),
]


def _checks(name: str, M: int, dtype: Any, layout: Any) -> None:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if repr(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (convcore.float32, convcore.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")


def _window(name: str, only: Callable[..., None] | None = None, **defaults: Any) -> Callable:
    """Return a window's function with its own parameters, checked by ``only``, by keyword."""

    def window(
        M: int,
        *,
        sym: bool = True,
        dtype: Any = None,
        layout: Any = convcore.strided,
        device: Any = None,
        requires_grad: bool = False,
        **own: Any,
    ) -> Tensor:
        from scipy.signal import windows

        unknown = own.keys() - defaults.keys()
        if unknown:
            raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
        dtype = dtype or convcore.get_default_dtype()
        _checks(name, M, dtype, layout)
        own = {**defaults, **own}
        if only is not None:
            only(sym=sym, **own)
        values = getattr(windows, name)(M, sym=sym, **own)
        return convcore.tensor(values, dtype=dtype, device=device, requires_grad=requires_grad)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"Return the {name} window of M values."
    return window


def _positive(text: str) -> Callable[..., None]:
    def check(sym: bool, center: float | None = None, **value: float) -> None:
        (number,) = value.values()
        if number < 0 or (number == 0 and "positive" in text):
            raise ValueError(f"{text}, got: {number} instead.")
        if sym and center is not None:
            raise ValueError("Center must be None for symmetric windows")

    return check


bartlett, blackman, cosine = _window("bartlett"), _window("blackman"), _window("cosine")
hamming, hann, nuttall = _window("hamming"), _window("hann"), _window("nuttall")
exponential = _window("exponential", _positive("Tau must be positive"), center=None, tau=1.0)
gaussian = _window("gaussian", _positive("Standard deviation must be positive"), std=1.0)
kaiser = _window("kaiser", _positive("beta must be non-negative"), beta=12.0)
general_hamming = _window("general_hamming", alpha=0.54)


def general_cosine(M: int, *, a: Any, **options: Any) -> Tensor:
    """Return a sum of cosines with the coefficients ``a``, their signs alternating."""
    if not isinstance(a, list | tuple):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", a=a)(M, **options)
