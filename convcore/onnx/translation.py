"""Calls of convcore's functions as ONNX nodes: a function for each, by the name of what is called.

A translation takes the recorder, the result of the call and its arguments by name; it adds nodes
and returns the names of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

import convcore
from convcore import Tensor
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

Translation = Callable[..., list[str]]
TRANSLATIONS: dict[str, Translation] = {}


def translates(*names: str) -> Callable[[Translation], Translation]:
    """Enter a translation under the names of functions."""

    def enter(function: Translation) -> Translation:
        TRANSLATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def composes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function under the names of functions: what it calls is recorded in their place."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def translation(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
            with r.composing():
                result = function(**arguments)
                results = result if isinstance(result, tuple | list) else [result]
                return [r.name(each) for each in results if each is not None]

        translates(*names)(translation)
        return function

    return enter


def as_list(value: Any, rank: int) -> list[int]:
    """Return a number for each axis: those given, or the one given as often as needed."""
    return [int(v) for v in value] if isinstance(value, tuple | list) else [int(value)] * rank


def as_dtype(r: Recorder, value: Tensor, dtype: Any) -> str:
    """Return the name of a tensor, cast if it has another dtype."""
    name = r.name(value)
    if value.dtype == dtype:
        return name
    code = helper.np_dtype_to_tensor_dtype(array_of(convcore.empty(0, dtype=dtype)).dtype)
    return r.node("Cast", [name], to=code)[0]


def operands(r: Recorder, y: Tensor, a: Any, b: Any) -> list[str]:
    """Return the names of two operands, tensors or numbers, in the dtype of the result."""
    return [
        as_dtype(r, each, y.dtype) if isinstance(each, Tensor) else r.number(each, y)
        for each in (a, b)
    ]


def common(r: Recorder, a: Any, b: Any) -> list[str]:
    """Return the names of two operands in the dtype that both are compared in."""
    return operands(r, convcore.empty(0, dtype=convcore.result_type(a, b)), a, b)


def ints(r: Recorder, values: Iterable[int]) -> str:
    """Return the name of a constant of integers: sizes, axes, places."""
    return r.constant(list(values), np.int64)


def cast(r: Recorder, y: Any, name: str) -> list[str]:
    """Return the name of a value, cast to a tensor's dtype."""
    return r.node("Cast", [name], to=helper.np_dtype_to_tensor_dtype(array_of(y).dtype))


def like(input: Tensor, number: float) -> np.ndarray:
    """Return a number in a tensor's dtype."""
    return np.asarray(number, array_of(input).dtype)
