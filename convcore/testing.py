"""Comparison of tensors in tests: assert_close, and make_tensor for their input."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from convcore._errors import names as _names
from convcore._tensor import Tensor, channels_last, creation, wrap
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.dtypes import bfloat16
from convcore._tensor.dtypes import dtype as _dtype
from convcore._tensor.dtypes import of as dtype_of
from convcore._tensor.limits import finfo
from convcore.engine.runtime.errstate import quiet
from convcore.random import fill

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# Tolerances by dtype: (rtol, atol). Others are compared exactly.
_TOLERANCES = {
    "bfloat16": (1.6e-2, 1e-5),
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that tensors, numbers, or sequences and mappings of them, are close.

    They are if |actual - expected| <= atol + rtol * |expected| for every element.

    Parameters
    ----------
    actual, expected
        Tensors, arrays, numbers, or containers of them.
    rtol, atol : float, optional
        Given both or none; by default those of the less exact dtype: (1.3e-6, 1e-5) for float32,
        (1e-7, 1e-7) for float64, 0 for integers.
    equal_nan : bool
        Whether NaN is close to NaN.
    check_dtype, check_stride : bool
        Whether dtypes, strides have to be equal.
    allow_subclasses : bool
        Whether the types may differ where both are tensors.
    check_device, check_layout : bool
        Accepted; all tensors are dense.
    msg : str, or a function of the message, optional

    Raises
    ------
    AssertionError
        They are not close; the text says how many elements differ, by how much, and where.
    ValueError
        One of rtol and atol is given.

    Examples
    --------
    >>> import convcore
    >>> assert_close(convcore.tensor([1.0, 2.0]), convcore.tensor([1.0, 2.0]))
    """
    if (rtol is None) is not (atol is None):
        raise ValueError(
            "Both 'rtol' and 'atol' must be either specified or unspecified, but got no "
            f"{'rtol' if rtol is None else 'atol'}"
        )
    options = {
        "tolerance": None if rtol is None else (rtol, atol),
        "equal_nan": equal_nan,
        "check_dtype": check_dtype,
        "check_stride": check_stride,
        "same_type": not allow_subclasses,
    }
    fault = _fault(actual, expected, options)
    if fault:
        raise AssertionError(msg(fault) if callable(msg) else msg or fault)


def _fault(actual: Any, expected: Any, options: Mapping[str, Any]) -> str:
    """Return what is wrong with a pair; '' if nothing is."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match: {list(actual)} != {list(expected)}"
        pairs = ((f"[{key!r}]", actual[key], expected[key]) for key in actual)
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        pairs = ((f"[{i}]", *pair) for i, pair in enumerate(zip(actual, expected, strict=True)))
    else:
        return _leaf_fault(actual, expected, options)
    for where, a, b in pairs:
        fault = _fault(a, b, options)
        if fault:
            return f"{fault}\n\nThe failure occurred for item {where}"
    return ""


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _leaf_fault(actual: Any, expected: Any, options: Mapping[str, Any]) -> str:
    if actual is None or expected is None:
        return "" if actual is expected else f"None mismatch: {actual} is not {expected}"
    both = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    if options["same_type"] and type(actual) is not type(expected):
        return f"The types differ: {type(actual)} != {type(expected)}"
    a, b = (x if isinstance(x, Tensor) else creation.as_tensor(x) for x in (actual, expected))
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}."
    if both and options["check_dtype"] and a.dtype != b.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}."
    if both and options["check_stride"] and a.stride() != b.stride():
        return f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}."
    rtol, atol = options["tolerance"] or max(_tolerance(a.dtype), _tolerance(b.dtype))
    return _value_fault(a._array, b._array, rtol, atol, options["equal_nan"])


def _tolerance(dtype: _dtype) -> tuple[float, float]:
    return _TOLERANCES.get(str(dtype).removeprefix("torch."), (0.0, 0.0))


def _value_fault(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> str:
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if close.all():
        return ""
    common = np.promote_types(a.dtype, b.dtype)
    x, y = (one.astype(common if common.kind in "fc" else np.int64) for one in (a, b))
    absolute = quiet(lambda: np.where(close, 0, np.abs(x - y)))
    relative = quiet(lambda: np.where(close, 0, absolute / np.abs(y)))
    kind = "Scalars" if a.ndim == 0 else "Tensor-likes"
    lines = [f"{kind} are not {'equal' if rtol == atol == 0 else 'close'}!", ""]
    if a.ndim == 0:
        lines.append(f"Expected {b.item()} but got {a.item()}.")
    else:
        wrong = a.size - int(close.sum())
        share = 100 * wrong / a.size
        lines.append(f"Mismatched elements: {wrong} / {a.size} ({share:.1f}%)")
    for name, found, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        place = np.unravel_index(np.argmax(found), found.shape)  # NaN counts as the largest
        where = f" at index {tuple(map(int, place))}" if a.ndim else ""
        largest = found[place].item()
        lines.append(f"Greatest {name} difference: {largest}{where} (up to {allowed} allowed)")
    return "\n".join(lines)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Assert closeness without a look at dtypes; `assert_close` is the newer way."""
    options = {"equal_nan": equal_nan, "check_dtype": False, "msg": msg or None}
    assert_close(actual, expected, rtol=rtol, atol=atol, **options)  # type: ignore[arg-type]


def make_tensor(
    *shape: Any,
    dtype: _dtype,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of uniform numbers from [low, high), by default [-9, 9), or integers to 9.

    Parameters
    ----------
    shape : ints, or one sequence of them
    dtype : dtype
    low, high : float
        Brought within the numbers that the dtype holds: to 0 for unsigned integers, say.
    requires_grad : bool
    noncontiguous : bool
        Whether the elements lie two apart.
    exclude_zero : bool
        Whether zeros are replaced by the smallest number.
    memory_format : memory_format, optional

    Raises
    ------
    ValueError
        The interval is empty, or the dtype holds none of its numbers.
    """
    check_device(device)
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    spread = noncontiguous and math.prod(sizes) > 1
    if spread:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    array = np.empty(sizes, np.float32 if dtype is bfloat16 else dtype.numpy)
    floating = array.dtype.kind in "fc"
    low, high = _limits(array.dtype, low, high)
    if floating:
        fill.fill_uniform(array, low, high)
    else:
        fill.fill_random(array, math.ceil(low), math.ceil(high))
    if dtype is bfloat16:
        array = wrap(array).to(dtype)._array
    array = array[..., 1::2] if spread else array
    if exclude_zero:
        array[array == 0] = finfo(dtype).tiny if floating else 1
    made = wrap(array).to("meta") if is_meta(device) else wrap(array)
    if memory_format is channels_last:
        made = made.to(memory_format=channels_last)
    made.requires_grad = requires_grad
    return made


def _limits(dtype: np.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return where to draw: what is asked, or the default, within what the dtype holds."""
    least, most = (0, 2) if dtype.kind == "b" else (-9, 9 if dtype.kind in "fc" else 10)
    low, high = (least if low is None else low), (most if high is None else high)
    if not low <= high or (low == high and dtype.kind not in "fc"):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if dtype.kind in "fc":
        smallest, end = float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    else:
        info = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
        smallest, end = int(info.min), 2 if dtype.kind == "b" else int(info.max) + 1
    if high < smallest or low >= end:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but "
            f"{dtype_of(dtype)} only supports [{smallest}, {end})"
        )
    return min(max(low, smallest), end), min(max(high, smallest), end)


_names.explain_names(__name__)
