"""Random tensors of a size, or in the size and memory format of another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._errors.calls import hinting
from convcore._tensor import Tensor, dtypes, memory_format, preserve_format
from convcore._tensor.creation.arguments import (
    DtypeLike,
    allocated,
    checked_int,
    checked_number,
    leaf,
    shape,
)
from convcore._tensor.creation.memory import array_like
from convcore._tensor.creation.out import out_dtype
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.meta import meta
from convcore.engine.runtime.errstate import quiet
from convcore.random.fill import fill_normal, fill_random, fill_uniform
from convcore.random.generator import Generator

__all__ = ["normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"]


def _empty(size: tuple[int, ...], dtype: np.dtype, device: Any) -> np.ndarray:
    """Return the array to draw into, on 'meta' one for which nothing is drawn."""
    return allocated(meta if is_meta(device) else np.empty, size, dtype)


@hinting
def rand(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform numbers from [0, 1); the size is several ints or one sequence of ints."""
    check_device(device, layout)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("rand", out, dtype)
    array = _empty(shape("rand", sizes, size), kind, device)
    fill_uniform(array, generator=generator)
    return leaf(array, requires_grad, device, out)


@hinting
def randn(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return standard normal numbers; the size is several ints or one sequence of ints.

    Examples
    --------
    >>> import convcore
    >>> _ = convcore.manual_seed(0)
    >>> randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    check_device(device, layout)
    kind = dtypes.as_numpy(dtype) if out is None else out_dtype("randn", out, dtype)
    array = _empty(shape("randn", sizes, size), kind, device)
    fill_normal(array, generator=generator)
    return leaf(array, requires_grad, device, out)


def randint(
    *limits: int | Sequence[int],
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform integers: ``randint(high, size)`` or ``randint(low, high, size)``.

    They are from [low, high), where low is 0 unless given.

    Examples
    --------
    >>> import convcore
    >>> _ = convcore.manual_seed(0)
    >>> randint(10, (4,))
    tensor([4, 9, 3, 0])
    """
    check_device(device, layout)
    given = list(limits)
    if size is None and given:
        size = given.pop()
    usage = "randint() takes high and size, or low, high and size; size is a tuple"
    low, high = _bounds(given, low, high, usage)
    if not isinstance(size, tuple | list):
        raise TypeError(usage)
    low, high = (checked_int("randint", name, end) for name, end in (("low", low), ("high", high)))
    if out is not None:
        kind = out_dtype("randint", out, dtype)
    else:
        kind = dtypes.as_numpy(dtypes.int64 if dtype is None else dtype)
    array = _empty(shape("randint", (size,)), kind, device)
    fill_random(array, low, high, generator)
    return leaf(array, requires_grad, device, out)


def _bounds(given: list, low: int, high: int | None, usage: str) -> tuple[int, int]:
    """Return (low, high), either of them by keyword or from positional ``high`` or ``low, high``.

    Raises
    ------
    TypeError
        With the text ``usage``: the positional ones are too many, or there is no high.
    """
    if high is None and given:
        high = given.pop()
    if given:
        low = given.pop()
    if given or high is None:
        raise TypeError(usage)
    return checked_int("randint", "low", low), checked_int("randint", "high", high)


def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Sequence[int] | None = None,
    *,
    out: Tensor | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers of the given mean and standard deviation; no gradient is recorded.

    Parameters
    ----------
    mean, std : two numbers and a ``size``; or Tensors, or a Tensor and a number, whose shapes
        broadcast to the size.

    Raises
    ------
    RuntimeError
        A standard deviation is negative.
    """
    check_device(device, layout)
    tensors = [given for given in (mean, std) if isinstance(given, Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal() needs a size where mean and std are numbers")
        kind = dtypes.as_numpy(dtype) if out is None else out_dtype("normal", out, dtype)
        array = _empty(shape("normal", (size,)), kind, device)
        fill_normal(array, mean, std, generator)  # type: ignore[arg-type]  # they are numbers
        return leaf(array, requires_grad, device, out)
    center, scale = (
        given._array if isinstance(given, Tensor) else checked_number("normal", given, name, True)
        for name, given in (("mean", mean), ("std", std))
    )
    if np.any(quiet(np.less, scale, 0)):  # NaN in bfloat16 warns
        one = not isinstance(std, Tensor)
        found = f"std >= 0.0, but found std {std:g}" if one else "all elements of std >= 0.0"
        raise RuntimeError(f"normal expects {found}")
    drawn_shape = _joint_shape([given._array.shape for given in tensors])
    kind = tensors[0]._array.dtype if out is None else out_dtype("normal", out, dtype)
    array = np.empty(drawn_shape, kind)
    fill_normal(array, generator=generator)
    array *= scale
    array += center
    return leaf(array, requires_grad, device, out)


def _joint_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        (a, b), rank = shapes, max(map(len, shapes))
        for axis, (m, n) in enumerate(zip(a[::-1], b[::-1], strict=False), 1):
            if m != n and 1 not in (m, n):
                raise RuntimeError(
                    f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                    f"non-singleton dimension {rank - axis}"
                ) from None
        raise


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return uniform numbers from [0, 1) in the size, dtype and memory format of ``input``."""
    array = array_like("rand_like", input, dtype, device, memory_format, layout)
    fill_uniform(array, generator=generator)
    return leaf(array, requires_grad, device)


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return standard normal numbers in the size, dtype and memory format of ``input``."""
    array = array_like("randn_like", input, dtype, device, memory_format, layout)
    fill_normal(array, generator=generator)
    return leaf(array, requires_grad, device)


def randint_like(
    input: Tensor,
    *limits: int,
    low: int = 0,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return integers from [low, high) in the size, dtype and memory format of ``input``.

    The limits are ``high``, or ``low, high``.
    """
    low, high = _bounds(list(limits), low, high, "randint_like() takes high, or low and high")
    array = array_like("randint_like", input, dtype, device, memory_format, layout)
    fill_random(array, low, high, generator)
    return leaf(array, requires_grad, device)
