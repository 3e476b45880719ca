"""Operators that make tensors: constants, ranges, identities, random numbers, windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import convcore
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, array_of, by_numpy, dtype_of, integers, value_of


@operator("Constant", folds=True)
def constant(
    *,
    value: Value = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
) -> Value:
    """Return the tensor, number, text or list that an attribute has."""
    if value is not None:
        return value
    for found, dtype in (
        *((value_float, np.float32), (value_floats, np.float32)),
        *((value_int, np.int64), (value_ints, np.int64)),
        *((value_string, object), (value_strings, object)),
    ):
        if found is not None:
            return value_of(np.array(found, dtype))
    raise OnnxError("Constant: its value is sparse or missing")


@operator("ConstantOfShape")
def constant_of_shape(sizes: Value, *, value: Value = None) -> Value:
    """Return a tensor of one value; 0 of float32 by default."""
    fill = np.zeros(1, np.float32) if value is None else array_of(value)
    return value_of(np.full(integers(sizes), fill.reshape(-1)[0], fill.dtype))


@operator("Range")
def range_(start: Value, limit: Value, delta: Value) -> Value:
    """Return numbers from one to before another by steps."""
    first, last, step = (array_of(each).reshape(())[()] for each in (start, limit, delta))
    count = max(math.ceil((float(last) - float(first)) / float(step)), 0)
    numbers = first + np.arange(count) * step
    return value_of(np.asarray(numbers).astype(array_of(start).dtype))


@operator("EyeLike")
def eye_like(x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    """Return ones on a diagonal of a matrix of the input's shape."""
    kind = array_of(x).dtype if dtype is None else dtype_of(dtype)
    return value_of(np.eye(x.shape[0], x.shape[1], k=k).astype(kind))


def _random(
    kind: str, sizes: Any, dtype: np.dtype, seed: float | None, a: float, b: float
) -> Value:
    generator = None
    if seed is not None:
        generator = convcore.Generator().manual_seed(
            int(np.float32(seed).view(np.int32)) & 0xFFFFFFFF
        )
    make = convcore.rand if kind == "uniform" else convcore.randn
    numbers = make(*sizes, generator=generator)
    scaled = a + (b - a) * numbers if kind == "uniform" else a + b * numbers
    return scaled.to(value_of(np.zeros(0, dtype)).dtype)


@operator("RandomUniform")
def random_uniform(
    *,
    shape: list[int],
    dtype: int = 1,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Return numbers drawn evenly from [low, high)."""
    return _random("uniform", shape, dtype_of(dtype), seed, low, high)


@operator("RandomNormal")
def random_normal(
    *,
    shape: list[int],
    dtype: int = 1,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Return numbers of the normal distribution."""
    return _random("normal", shape, dtype_of(dtype), seed, mean, scale)


def _kind(x: Value, dtype: int | None) -> np.dtype:
    return array_of(x).dtype if dtype is None else dtype_of(dtype)


@operator("RandomUniformLike")
def random_uniform_like(
    x: Value,
    *,
    dtype: int | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Return numbers drawn evenly from [low, high), in the input's shape."""
    return _random("uniform", x.shape, _kind(x, dtype), seed, low, high)


@operator("RandomNormalLike")
def random_normal_like(
    x: Value,
    *,
    dtype: int | None = None,
    mean: float = 0.0,
    scale: float = 1.0,
    seed: float | None = None,
) -> Value:
    """Return numbers of the normal distribution, in the input's shape."""
    return _random("normal", x.shape, _kind(x, dtype), seed, mean, scale)


@operator("Bernoulli")
def bernoulli(x: Value, *, dtype: int | None = None, seed: float | None = None) -> Value:
    """Return 1 with the probability that each element is, else 0."""
    drawn = _random("uniform", x.shape, np.dtype(np.float64), seed, 0.0, 1.0)
    return value_of((array_of(drawn) < array_of(x)).astype(_kind(x, dtype)))


@operator("Dropout")
def dropout(
    x: Value,
    probability: Value = None,
    training: Value = None,
    *,
    version: int,
    outputs: int,
    ratio: float = 0.5,
    seed: int | None = None,
    is_test: int = 1,
) -> Any:
    """Return the input; in training mode some elements are 0 and the others scaled up."""
    p = ratio if probability is None else float(array_of(probability).reshape(())[()])
    if training is None or not bool(array_of(training).reshape(())[()]) or not p:
        return (x, convcore.ones(x.shape, dtype=convcore.bool)) if outputs > 1 else x
    drawn = _random("uniform", x.shape, np.dtype(np.float64), seed, 0.0, 1.0)
    kept = drawn >= p
    y = x * kept.to(x.dtype) / (1 - p)
    return (y, kept) if outputs > 1 else y


def _window(name: str, cosines: tuple[float, ...]) -> None:
    def make(size: np.ndarray, *, periodic: int, output_datatype: int) -> np.ndarray:
        n = int(size)
        angle = 2 * np.pi * np.arange(n) / (n if periodic else max(n - 1, 1))
        window = sum(c * (-1) ** k * np.cos(k * angle) for k, c in enumerate(cosines))
        return np.asarray(window).astype(dtype_of(output_datatype))

    @operator(name)
    def window(size: Value, *, periodic: int = 1, output_datatype: int = 1) -> Value:
        return by_numpy(make)(size, periodic=periodic, output_datatype=output_datatype)


_window("HannWindow", (0.5, 0.5))
_window("HammingWindow", (25 / 46, 21 / 46))
_window("BlackmanWindow", (0.42, 0.5, 0.08))
