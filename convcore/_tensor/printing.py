"""Printing of tensors, character by character as in PyTorch; set_printoptions.

All numbers of a tensor share one `_Style`: a width, and whether they are written as integers with
a point, with a fixed number of digits, or in scientific notation.  A tensor of more than
``threshold`` elements is summarised by the first and last ``edgeitems`` of each axis, and only
those determine the style.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from convcore._tensor import dtypes

__all__ = ["set_printoptions"]


class _Options(NamedTuple):
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=math.inf),
}
_options = _PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set the options of printing tensors, for all threads.

    Parameters
    ----------
    precision : digits after the point.
    threshold : the number of elements above which a tensor is summarised.
    edgeitems : how many items a summary shows at each end of an axis.
    linewidth : characters a line.
    profile : 'default', 'short' or 'full'; the other arguments then modify it.
    sci_mode : always or never use scientific notation; None, also by default, lets the numbers
        decide.
    """
    global _options
    chosen = _options
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, but got {profile!r}")
        chosen = _PROFILES[profile]
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    given = {name: value for name, value in given.items() if value is not None}
    _options = chosen._replace(**given, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """Return the options by name, as arguments of `set_printoptions`."""
    return _options._asdict()


def tensor_str(tensor: Any) -> str:
    """Return the text that ``print(tensor)`` shows."""
    array = tensor._array
    name = type(tensor).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    suffixes = []
    unseen = array.ndim != 1 if array.size == 0 else not _options.edgeitems
    if tensor.is_meta:
        suffixes.append("device='meta'")
    if unseen or tensor.is_meta:
        suffixes.append(f"size={tuple(array.shape)}")
    if not _has_default_dtype(array):
        suffixes.append(f"dtype={dtypes.of(array.dtype)}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    text = "..." if tensor.is_meta else array_str(array, len(prefix))
    return _with_suffixes(prefix + text, suffixes, len(prefix))


def array_str(array: np.ndarray, indent: int = 0) -> str:
    """Return the text of an array's numbers in brackets, starting in column ``indent``."""
    if array.size == 0:
        return "[]"
    if array.size <= _options.threshold:
        return _block(array, _styles(array), indent, array.size)
    return _block(array, _styles(_edges(array)), indent, _options.edgeitems)


def _has_default_dtype(array: np.ndarray) -> bool:
    """Return whether the dtype is a default one, which is not printed."""
    default = dtypes.get_default_dtype().numpy
    if array.size == 0:
        return array.dtype == default
    return array.dtype in (default, dtypes.default_complex()) or array.dtype in (np.int64, np.bool_)


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append the suffixes, on a new line if the line would be too long."""
    # Two more columns than the last line has: for the comma and the bracket that may follow.
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > _options.linewidth:
            text += f",\n{' ' * indent}{suffix}"
            used = indent + len(suffix)
        else:
            text += f", {suffix}"
            used += len(suffix) + 2
    return text + ")"


# Numbers


class _Style(NamedTuple):
    """The format of a tensor's numbers; shorter ones are padded to ``width``."""

    width: int = 1
    spec: str = ""
    point: bool = False  # whole numbers, with a point behind

    def write(self, number: Any) -> str:
        text = format(number, self.spec) if self.spec else str(number)
        if self.point and math.isfinite(number):
            text += "."
        return text.rjust(self.width)


def _styles(array: np.ndarray) -> tuple[_Style, ...]:
    """Return the style of the numbers; that of the real and of the imaginary parts if complex."""
    if array.dtype.kind == "c":
        return _float_style(array.real), _float_style(array.imag)
    if array.dtype.kind in "fV":
        return (_float_style(array),)
    return (_Style(max((len(str(number)) for number in array.ravel().tolist()), default=1)),)


def _float_style(array: np.ndarray) -> _Style:
    """Choose a style by the finite non-zero numbers: whether they are whole, and their range."""
    shown = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    if shown.size == 0:
        return _Style(1, ".0f", True)
    sizes = np.abs(shown)
    largest, smallest = float(sizes.max()), float(sizes.min())
    scientific = _options.sci_mode
    if scientific is None:
        scientific = largest / smallest > 1000.0 or largest > 1.0e8 or smallest < 1.0e-4
    if scientific:
        style = _Style(1, f".{_options.precision}e")
    elif (shown == np.ceil(shown)).all():
        style = _Style(1, ".0f", True)
    else:
        style = _Style(1, f".{_options.precision}f")
    return style._replace(width=max(len(style.write(number)) for number in shown.tolist()))


def _complex_str(number: complex, real: _Style, imag: _Style) -> str:
    """Write 'a+bj': the imaginary part is not padded, but has a sign."""
    imaginary = imag.write(number.imag).lstrip() + "j"
    sign = "" if imaginary[0] in "+-" else "+"
    return real.write(number.real) + sign + imaginary


# Axes


def _edges(array: np.ndarray) -> np.ndarray:
    """Return the elements that a summary shows."""
    if not array.ndim:
        return array
    edge = _options.edgeitems
    shown = [
        [*range(edge), *range(size - edge, size)] if size > 2 * edge else range(size)
        for size in array.shape
    ]
    return array[np.ix_(*shown)]  # take() would first copy all of an array with other strides


def _block(array: np.ndarray, styles: tuple[_Style, ...], indent: int, edge: int) -> str:
    """Write an array; of an axis longer than 2 * ``edge`` only the ends."""
    if array.ndim == 0:
        return _number_str(array.item(), styles)
    cut = len(array) > 2 * edge
    head, tail = (array[:edge], array[len(array) - edge :]) if cut else (array, array[:0])
    if array.ndim == 1:
        items = [_number_str(number, styles) for number in head.tolist()]
        items += [" ..." if edge else "..."] if cut else []
        items += [_number_str(number, styles) for number in tail.tolist()]
        return _wrapped(items, styles, indent)
    items = [_block(part, styles, indent + 1, edge) for part in head]
    items += ["..."] if cut else []
    items += [_block(part, styles, indent + 1, edge) for part in tail]
    between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return f"[{between.join(items)}]"


def _number_str(number: Any, styles: tuple[_Style, ...]) -> str:
    return styles[0].write(number) if len(styles) == 1 else _complex_str(number, *styles)


def _wrapped(items: list[str], styles: tuple[_Style, ...], indent: int) -> str:
    """Write a row of numbers, with line breaks."""
    # A number takes its width and ", "; a complex one also the "j".
    taken = sum(style.width for style in styles) + 1 + len(styles)
    in_line = max(1, (_options.linewidth - indent) // taken)
    lines = [", ".join(items[i : i + in_line]) for i in range(0, len(items), in_line)]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(lines)}]"
