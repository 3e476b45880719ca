"""Comparison of tensors in tests: assert_close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from convcore._errors import names as _names
from convcore._tensor import Tensor, creation
from convcore._tensor.dtypes import dtype as _dtype
from convcore.engine.runtime.errstate import quiet

__all__ = ["assert_close"]

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


_names.explain_names(__name__)
