"""Layers that run as one function: their calls are told as if they ran one after the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

from convcore import nn, overrides
from convcore._tensor import Tensor
from convcore.inspection.watching.recipes import Recipe, normalization, total

_ADD = inspect.unwrap(Tensor.__add__)


class Names(Protocol):
    """What `FusedCalls` asks of `Calls`."""

    def are_told(self) -> bool:
        """Return whether calls are told now."""

    def of_module(self, module: nn.Module) -> str:
        """Return the name of a module's next call."""

    def of_function(self, name: str) -> str | None:
        """Return the name of a function's next call, if it has one here."""


class FusedCalls:
    """Tells of the layers that one function computes: the last one's result, the others' recipes.

    Parameters
    ----------
    names : Names
    made, to_compute : callable
        ``made(name, maker, tensor)`` hears a result, ``to_compute(name, maker, recipe)`` one that
        was not written.
    is_enough : callable
        Returns whether recipes are enough; if not, layers run one by one.
    later : callable
        ``later(tell)`` calls ``tell()``, which tells of a plan, when the values are needed.
    """

    def __init__(
        self,
        names: Names,
        made: Callable[[str, Any, Tensor], None],
        to_compute: Callable[[str, Any, Recipe], None],
        is_enough: Callable[[], bool],
        later: Callable[[Callable[[], None]], None],
    ) -> None:
        self._names = names
        self._made = made
        self.to_compute = to_compute
        self.is_enough = is_enough
        self.later = later
        self._thread = get_ident()

    def accepts(self, norm: nn.Module) -> bool:
        """Return whether a batch norm may run with what comes after it."""
        return not norm.training and get_ident() == self._thread and self.is_enough()

    def tell(
        self, norm: Any, activation: Any, x: Tensor, residual: Tensor | None, result: Tensor
    ) -> None:
        """Hear that ``result = activation(norm(x) + residual)``."""
        if self._names.are_told():
            overrides.unwatched(self._tell, norm, activation, x, residual, result)

    def _tell(
        self, norm: Any, activation: Any, x: Tensor, residual: Tensor | None, result: Tensor
    ) -> None:
        recipe = normalization(norm, x)
        self.to_compute(self._names.of_module(norm), norm, recipe)
        if residual is not None:
            recipe = total(recipe, residual)
            name = self._names.of_function("add")
            if name is not None:
                self.to_compute(name, _ADD, recipe)
        self._made(self._names.of_module(activation), activation, result)
