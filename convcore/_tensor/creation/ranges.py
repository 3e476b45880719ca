"""arange, linspace, logspace: tensors of evenly spaced numbers."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from convcore._tensor import Tensor, dtypes, scalar_name
from convcore._tensor.creation.arguments import (
    DtypeLike,
    checked_int,
    checked_number,
    counted,
    leaf,
)
from convcore._tensor.creation.out import laid_out, out_dtype
from convcore._tensor.device import check_device
from convcore._tensor.dtype_names import C_NAMES
from convcore.engine.runtime.errstate import quiet


def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return start, start + step, ... below ``end``; a single number is the end.

    The dtype is int64 if all three are integers, else the default.

    Raises
    ------
    RuntimeError
        The step is zero or leads away from the end, or a limit is not finite.

    Examples
    --------
    >>> arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    check_device(device, layout)
    if start is None or end is None:
        start, end = 0, start if end is None else end
    given = (("start", start), ("end", end), ("step", step))
    limits = [checked_number("arange", number, name, real=True) for name, number in given]
    whole = all(isinstance(number, int | np.integer) for number in limits)
    if out is not None:
        target = out_dtype("arange", out, dtype)
    else:
        target = dtypes.as_numpy((dtypes.int64 if whole else None) if dtype is None else dtype)
    if target.kind in "bc":
        raise NotImplementedError(f"arange() cannot count in {target.name}")
    if target.kind not in dtypes.FLOATING:
        array = _integer_range(target, *limits)
        return leaf(laid_out(array, out), requires_grad, device, out)
    first, last, stride = map(float, limits)
    count = _range_length(first, last, stride)
    array = dtypes.cast(first + stride * counted(count), target)
    return leaf(laid_out(array, out), requires_grad, device, out)


def _integer_range(target: np.dtype, start: Any, end: Any, step: Any) -> np.ndarray:
    """Return an integer range; fractional limits are truncated once they have given the length."""
    if target.itemsize == 8:
        try:
            start, end, step = map(int, (start, end, step))
        except (OverflowError, ValueError):  # of NaN and infinity: the length says what is wrong
            _range_length(start, end, step)
            raise
    count = _range_length(start, end, step)
    first, stride = int(start), int(step) if count > 1 else 0
    return dtypes.cast(first + stride * counted(count), target)


def _range_length(start: Any, end: Any, step: Any) -> int:
    """Return how many numbers lie in the half-open range."""
    if step == 0 or step != step:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if all(isinstance(number, int) for number in (start, end, step)):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end`` inclusive."""
    check_device(device, layout)
    if out is not None:
        dtype = out_dtype("linspace", out, dtype)
    array = _spaced("linspace", start, end, steps, dtype)
    return leaf(laid_out(array, out), requires_grad, device, out)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return ``base`` to the powers that `linspace` gives; complex limits give complex."""
    check_device(device, layout)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("logspace", out, dtype)
    given = (
        checked_number("logspace", one, name) for one, name in ((start, "start"), (end, "end"))
    )
    is_complex = any(isinstance(one, builtins.complex) for one in given)
    if is_complex and dtype is None and out is None:
        kind = dtypes.default_complex()
    if is_complex and kind.kind != "c":
        _refuse_complex("logspace", kind)
    wide = dtypes.complex128 if is_complex else dtypes.float64
    base = float(checked_number("logspace", base, "base", real=True))
    powers = np.power(base, _spaced("logspace", start, end, steps, wide))
    array = dtypes.cast(powers, kind)
    return leaf(laid_out(array, out), requires_grad, device, out)


def _refuse_complex(function: str, target: np.dtype) -> None:
    found = C_NAMES[dtypes.default_complex().name]
    raise RuntimeError(
        f"torch.{function}(): inferred dtype {found} can't be safely cast to passed dtype "
        f"{scalar_name(target)}"
    )


def _spaced(function: str, start: Any, end: Any, steps: int, dtype: DtypeLike) -> np.ndarray:
    """Step from both ends towards the middle, so that both ends are met exactly."""
    steps = checked_int(function, "steps", steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    first, last = checked_number(function, start, "start"), checked_number(function, end, "end")
    is_complex = any(isinstance(limit, builtins.complex) for limit in (first, last))
    if dtype is None and is_complex:
        target = dtypes.default_complex()
    else:
        target = dtypes.as_numpy(dtype)
    if is_complex and target.kind != "c":
        _refuse_complex(function, target)
    if target.kind == "b":
        raise NotImplementedError(f"{function}() cannot count in bool")
    places = counted(steps)
    if target.kind in "fc":  # the step is rounded to target, products and sums only at the end
        first, last = quiet(target.type, first), quiet(target.type, last)
        step = quiet(lambda: (last - first) / target.type(max(steps - 1, 1)))
        first, last, step = first.item(), last.item(), step.item()
    else:
        first, last = int(first), int(last)
        step = (last - first) / max(steps - 1, 1)
    rising, falling = first + step * places, last - step * places[::-1]
    return dtypes.cast(np.where(places < max(steps // 2, steps == 1), rising, falling), target)
