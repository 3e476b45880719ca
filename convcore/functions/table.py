"""A row per activation: all that is said of it besides its code, its kernel and its layer.

The functions stand where they are defined, each under its row.  From the rows follow how ONNX
writes and reads them (`convcore.onnx`) and what the tests of functions, layers, gradients, models
and kernels call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

__all__: list[str] = []


class Row(NamedTuple):
    """What is said of a function.

    Attributes
    ----------
    function : callable
    formula : callable
        ``formula(m, x, **arguments)`` computes it by functions of a module m, which is `convcore`
        or has NumPy's functions, `erf`, `sigmoid` and `softplus`.
    operator : str
        The ONNX operator that computes it; '' if a model has the formula instead.
    attributes : mapping
        The attributes of the operator: the name of an argument, or a number.
    cases : tuple of dict
        Arguments that tests call it with.
    """

    function: Callable
    formula: Callable
    operator: str
    attributes: Mapping[str, Any]
    cases: tuple[dict[str, Any], ...]

    @property
    def has_inplace(self) -> bool:
        return "inplace" in inspect.signature(self.function).parameters


Function = TypeVar("Function", bound=Callable)
ROWS: dict[str, Row] = {}


def row(
    formula: Callable, *cases: dict[str, Any], operator: str = "", **attributes: Any
) -> Callable[[Function], Function]:
    """Return a decorator that enters a function in the table; see `Row`."""

    def enter(function: Function) -> Function:
        ROWS[function.__name__] = Row(function, formula, operator, attributes, cases or ({},))
        return function

    return enter
