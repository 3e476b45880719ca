"""Distributions written into arrays: uniform, normal, integers, Bernoulli.

Elements are drawn in the order in which they lie in memory.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from convcore._tensor import dtypes, scalar_name
from convcore._tensor.creation.arguments import checked_number
from convcore._tensor.limits import finfo, iinfo
from convcore._tensor.meta import MetaArray
from convcore.engine.runtime.errstate import quiet
from convcore.engine.runtime.layout import real_parts
from convcore.random.generator import BLOCK, Generator, resolve


def _memory_order(array: np.ndarray) -> list[int]:
    """Return the axes from the largest stride to the smallest."""
    return np.argsort([-abs(step) for step in array.strides], kind="stable").tolist()


def _fill(array: np.ndarray, generator: Generator, draw: Any, in_blocks: bool = True) -> None:
    """Write what ``draw(count)`` returns, cast, into the elements in the order of memory."""
    if isinstance(array, MetaArray):
        return
    is_plain = array.flags.c_contiguous
    ordered = array if is_plain else array.transpose(_memory_order(array))
    with generator._lock:
        quiet(_write, ordered, draw, in_blocks)


def _write(ordered: np.ndarray, draw: Any, in_blocks: bool) -> None:
    if in_blocks and ordered.flags.c_contiguous and ordered.size > BLOCK:
        flat = ordered.reshape(-1)
        for start in range(0, ordered.size, BLOCK):
            block = flat[start : start + BLOCK]
            block[...] = draw(block.size)
    else:
        ordered[...] = draw(ordered.size).reshape(ordered.shape)


def check_floating(function: str, array: np.ndarray) -> None:
    """Raise NotImplementedError for an array of integers or bools."""
    if array.dtype.kind not in dtypes.INEXACT:
        raise NotImplementedError(
            f'"{function}" draws floating-point numbers, not {dtypes.of(array.dtype)}'
        )


def fill_uniform(
    array: np.ndarray, low: float = 0.0, high: float = 1.0, generator: Generator | None = None
) -> None:
    """Write uniform numbers from [low, high) into an array of a floating or complex dtype.

    Raises
    ------
    RuntimeError
        ``low`` is above ``high``.
    NotImplementedError
        The array holds integers.
    """
    check_floating("uniform_", array)
    low = checked_number("uniform_", low, "from", real=True)
    high = checked_number("uniform_", high, "to", real=True)
    if not low <= high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    array = real_parts(array) if array.dtype.kind == "c" else array
    if float(high - low) > _limits(array.dtype).max:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(array.dtype)}>::max(), "
            f"but found to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )
    generator = resolve(generator)
    kind = np.float64 if array.dtype == np.float64 else np.float32
    first, last = kind(low), kind(high)
    span = float(last - first)

    def draw(count: int) -> np.ndarray:
        drawn = generator._uniform(count, np.dtype(kind))
        if first != 0 or span != 1.0:
            # The product is exact in float64: only the sum is rounded.
            drawn = span * drawn.astype(np.float64) + float(first)
        drawn = drawn.astype(array.dtype)
        drawn[drawn == array.dtype.type(last)] = first  # rounding reached the end
        return drawn

    _fill(array, generator, draw)


def fill_normal(
    array: np.ndarray, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> None:
    """Write normal numbers into an array of a floating or complex dtype.

    A complex number has standard deviation ``std``, each of its parts std / sqrt(2).

    Raises
    ------
    RuntimeError
        ``std`` is negative.
    NotImplementedError
        The array holds integers.
    """
    check_floating("normal_", array)
    mean = checked_number("normal_", mean, "mean", real=array.dtype.kind != "c")
    std = checked_number("normal_", std, "std", real=True)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if array.dtype.kind == "c":
        fill_normal(real_parts(array), 0.0, std / np.sqrt(2.0), generator)
        array += mean
        return
    generator = resolve(generator)
    in_blocks = array.size >= 16 and array.flags.c_contiguous

    def draw(count: int) -> np.ndarray:
        if in_blocks:
            drawn = generator._normal_blocks(count, array.dtype)
            if mean == 0.0 and std == 1.0:
                return drawn
            scale, shift = float(drawn.dtype.type(std)), float(drawn.dtype.type(mean))
            return _scaled(drawn, scale, shift, array.dtype)
        return generator._normals(count) * std + mean

    _fill(array, generator, draw, in_blocks=False)  # the last ones depend on the whole size


def _scaled(drawn: np.ndarray, scale: float, shift: float, dtype: np.dtype) -> np.ndarray:
    """Multiply and add in float64 and round once, without a float64 copy of it all."""
    out = drawn if drawn.dtype == dtype else np.empty(drawn.size, dtype)
    for start in range(0, drawn.size, BLOCK):
        stop = start + BLOCK
        out[start:stop] = scale * drawn[start:stop].astype(np.float64) + shift
    return out


def fill_random(
    array: np.ndarray, low: int = 0, high: int | None = None, generator: Generator | None = None
) -> None:
    """Write integers, uniform over [low, high), into an array of any real dtype.

    Without ``high`` the range is from 0 to the largest integer that the dtype holds exactly.

    Raises
    ------
    RuntimeError
        The range is empty, or exceeds that of the dtype.
    """
    if array.dtype.kind == "c":
        raise NotImplementedError(f'"random_" draws real numbers, not {dtypes.of(array.dtype)}')
    if high is None:
        low, high = 0, count_of(array.dtype)
        is_long = array.dtype in (np.int64, np.float64)
    else:
        _check_range(array.dtype, low, high)
        is_long = high - low >= 2**28
    generator = resolve(generator)
    span = np.uint64(min(high - low, 2**64 - 1)) if is_long else np.uint32(high - low)

    def draw(count: int) -> np.ndarray:
        words = generator._uint64(count) if is_long else generator._uint32(count)
        if high - low == 2**64:
            return words.view(np.int64)
        drawn = words % span
        if low == 0:
            return drawn
        return (drawn.astype(np.uint64) + np.uint64(low % 2**64)).astype(np.int64)

    _fill(array, generator, draw)


def count_of(dtype: np.dtype) -> int:
    """Return the number of integers from 0 up that a dtype holds exactly, as `random_` counts."""
    if dtype.kind in dtypes.FLOATING:
        return int(2 / _limits(dtype).eps) + 1
    return 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


def _limits(dtype: np.dtype) -> Any:
    kind = dtypes.of(dtype)
    return finfo(kind) if dtype.kind in dtypes.FLOATING else iinfo(kind)


def _check_range(dtype: np.dtype, low: int, high: int) -> None:
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.kind == "b":
        least, most = 0, 1
    else:
        limits = _limits(dtype)
        # Integers are drawn as int64, also for floats that reach further.
        least, most = max(limits.min, -(2**63)), min(limits.max, 2**63 - 1)
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= most:
            kind = dtype if -(2**63) <= bound < 2**63 else np.dtype(np.int64)
            raise RuntimeError(f"{name} is out of bounds for {dtypes.of(kind)}")
        if dtype.kind in dtypes.FLOATING and abs(bound) >= count_of(dtype):
            warnings.warn(
                f"{name} is out of bounds [-{count_of(dtype) - 1}, {count_of(dtype) - 1}]: of "
                f"larger integers {dtypes.of(dtype)} holds only some",
                stacklevel=4,
            )


def fill_bernoulli(
    array: np.ndarray, p: float | np.ndarray = 0.5, generator: Generator | None = None
) -> None:
    """Write 1 with probability ``p`` and else 0 into an array of any dtype.

    Parameters
    ----------
    p : one probability, compared with uniform numbers of 53 bits; or an array of them that
        broadcasts, compared with uniform numbers of its dtype (24 bits for float32).

    Raises
    ------
    RuntimeError
        A probability is not within [0, 1].
    """
    generator = resolve(generator)
    if not isinstance(p, np.ndarray):
        if not 0.0 <= checked_number("bernoulli_", p, "p", real=True) <= 1.0:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        _fill(array, generator, lambda n: generator._uniform(n, np.dtype(np.float64)) < p)
        return
    if not np.all(quiet(lambda: (p >= 0) & (p <= 1))):  # NaN in bfloat16 warns
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    order = _memory_order(array)
    ordered, chances = array.transpose(order), np.broadcast_to(p, array.shape).transpose(order)
    with generator._lock:
        drawn = generator._uniform(array.size, p.dtype)
    ordered[...] = drawn.reshape(ordered.shape) < chances
