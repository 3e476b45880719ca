"""Recipes: how results that a fused function never wrote are computed, once somebody reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore import nn, overrides
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.functions.elementwise.arithmetic import add
from convcore.functions.normalization.normalization import batch_norm
from convcore.inference.layers import ConvPart


class Recipe:
    """A function of kept values: the result that the call would have had, bit for bit.

    Parameters
    ----------
    make : callable
        ``make()``, called when the recipe is kept, returns the function; what it needs besides
        the operands it copies.
    operands : Tensor or Recipe
    like : array, optional
        Of the result's shape and dtype; by default the first operand is.
    """

    __slots__ = ("_function", "_like", "_make", "_operands", "_result")

    def __init__(self, make: Callable[[], Any], *operands: Any, like: Any = None) -> None:
        self._make: Callable[[], Any] | None = make
        self._operands, self._like = operands, like
        self._function: Callable | None = None
        self._result: Any = None

    @property
    def array(self) -> Any:
        """An array of the result's shape and dtype."""
        if self._result is not None:
            return self._result.array
        if self._like is not None:
            return self._like
        first = self._operands[0]
        return first._array if isinstance(first, Tensor) else first.array

    def hold(self, keep: Callable[[Tensor], Any]) -> None:
        """Keep the operands, and copy the layers' numbers, as they are now."""
        if self._make is None:
            return
        self._function, self._make = self._make(), None  # what makes it refers to the net
        held = []
        for one in self._operands:
            if isinstance(one, Recipe):
                one.hold(keep)
                held.append(one)
            else:
                held.append(keep(one))
        self._operands = tuple(held)

    def read(self, name: str, keep: Callable[[Tensor], Any]) -> Tensor:
        """Return the result, computed at the first time."""
        if self._result is None:
            values = [one.read(name, keep) for one in self._operands]
            self._result = keep(overrides.unwatched(self._compute, values))
            self._operands = ()
        return self._result.read(name, keep)

    def _compute(self, values: list[Tensor]) -> Tensor:
        assert self._function is not None, "held before it is read"
        with no_grad():
            return self._function(*values)


def normalization(norm: nn.BatchNorm2d, x: Tensor) -> Recipe:
    """Return the recipe of a batch norm's result in evaluation."""
    return Recipe(lambda: norm._by(_as_now, x), x)


def _as_now(
    _: Tensor,
    mean: Tensor | None,
    variance: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    *options: Any,
) -> Callable[[Tensor], Tensor]:
    """Return a function that normalises as `batch_norm` does with these numbers now."""
    numbers = [None if t is None else t._array.copy() for t in (mean, variance, weight, bias)]

    def normalized(x: Tensor) -> Tensor:
        tensors = [None if array is None else wrap(array) for array in numbers]
        return batch_norm(x, tensors[0], tensors[1], tensors[2], tensors[3], *options)

    return normalized


def convolution(part: ConvPart, like: Any, x: Tensor) -> Recipe:
    """Return the recipe of a convolution in an optimized net, perhaps with a batch norm."""
    return Recipe(lambda: part.computed, x, like=like)


def total(first: Any, second: Any) -> Recipe:
    """Return the recipe of a sum."""
    return Recipe(lambda: add, first, second)
