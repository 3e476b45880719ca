"""The table of operators: a function for each, and which of its inputs are weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Operator:
    """How an operator is computed.

    Attributes
    ----------
    function
        Takes the inputs (None where one is left out) and the attributes by keyword; of these,
        ``version`` (the operator's, not the opset's) and ``outputs`` (how many are wanted) only if
        it has parameters of these names.
    weights : frozenset of int
        Positions of inputs that become parameters if they are constant arrays of floats.
    folds : bool
        Whether it is computed once, when the model is loaded, if all inputs are constant.
    """

    function: Callable[..., Any]
    weights: frozenset[int] = frozenset()
    folds: bool = False

    def options(self, given: dict[str, Any], version: int, outputs: int) -> dict[str, Any]:
        """Return the attributes that the function takes."""
        known = _parameters(self.function)
        wanted = {"version": version, "outputs": outputs}
        if not any(each.kind is each.VAR_KEYWORD for each in known.values()):
            given = {name: value for name, value in given.items() if name in known}
        return given | {name: value for name, value in wanted.items() if name in known}


@cache
def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


OPERATORS: dict[str, Operator] = {}


def operator(
    *names: str, weights: Iterable[int] = (), folds: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function into the table under an operator's names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATORS[name] = Operator(function, frozenset(weights), folds)
        return function

    return enter
