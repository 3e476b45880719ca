"""Arguments of forward: the tensors among them are a model's inputs, all else is fixed in it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from convcore import Tensor
from convcore._errors import hinted
from convcore._errors.hints import INPUTS_SECOND, input_of_sizes, not_a_tensor
from convcore.onnx.naming import distinct, named
from convcore.onnx.nesting import Place, leaves, shown

_FIXED = (bool, int, float, str, type(None))


def as_call(args: Any, kwargs: Any = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that forward is called with, from those of `export`.

    One tensor needs no tuple.  As in PyTorch, a dict at the end stands for keywords where there are
    no others.
    """
    if not isinstance(args, Tensor | tuple | list | dict):
        raise hinted(
            TypeError(f"export(): args have to be tensors, got {type(args).__name__}"),
            INPUTS_SECOND if isinstance(args, str | os.PathLike) else not_a_tensor(args),
        )
    if not isinstance(kwargs, Mapping | None):
        kind = type(kwargs).__name__
        raise TypeError(f"export(): argument 'kwargs' must be dict or None, not {kind}")
    positional = tuple(args) if isinstance(args, tuple | list) else (args,)
    if not kwargs and positional and isinstance(positional[-1], dict):
        *before, kwargs = positional
        positional = tuple(before)
    return positional, dict(kwargs or {})


class Inputs:
    """Which tensors of a call of forward are a model's inputs, and what else is fixed in it.

    Parameters
    ----------
    forward : callable
    args, kwargs
        One call of it.
    names : sequence of str, optional
        Of the first inputs; the others have PyTorch's: x, states_0.

    Attributes
    ----------
    names : dict of place to str
        The inputs' names in the model, in its order.

    Raises
    ------
    TypeError
        The call does not fit forward, or has other arguments than tensors, numbers, strings, None.
    ValueError
        There are more names than inputs, or the same one twice.
    """

    def __init__(
        self,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        names: Sequence[str] | None = None,
    ) -> None:
        self._signature = inspect.signature(forward)
        given = self.arguments(args, kwargs)
        # In the order in which they are given, which is PyTorch's: not forward's.
        ordered = {**{n: value for n, value in given.items() if n not in kwargs}, **kwargs}
        places = []
        for place, leaf in leaves(ordered):
            if isinstance(leaf, Tensor):
                places.append(place)
            elif not isinstance(leaf, _FIXED):
                raise hinted(
                    TypeError(
                        "export(): args have to be tensors, or numbers, strings or None, which "
                        f"stay as they are; {shown(place)} is {type(leaf).__name__}"
                    ),
                    not_a_tensor(leaf),
                )
        usual = distinct("_".join(map(str, place)) for place in places)
        self.names = dict(zip(places, named("input", names, usual), strict=True))
        every = leaves(self.arguments(args, kwargs, defaults=True))
        self._fixed = {place: leaf for place, leaf in every if place not in self.names}

    def arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], defaults: bool = False
    ) -> dict[str, Any]:
        """Return the arguments of a call by their names, in the order that forward has."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise hinted(
                TypeError(f"the arguments do not fit forward{self._signature}: {error}"),
                input_of_sizes(args),
            ) from None
        if defaults:
            bound.apply_defaults()
        found = dict(bound.arguments)
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                found.update(found.pop(parameter.name, {}))
        return found

    def tensors(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the inputs of a call, in the model's order.

        Raises
        ------
        TypeError
            One is missing.
        ValueError
            An argument is another than the one that is fixed in the model.
        """
        given = dict(leaves(self.arguments(args, kwargs, defaults=True)))
        for place in self.names:
            if not isinstance(given.get(place), Tensor | np.ndarray):
                kind = type(given[place]).__name__ if place in given else "nothing"
                raise TypeError(f"{shown(place)} has to be a tensor, got {kind}")
        for place, text in self._changed(given):
            raise ValueError(f"{shown(place)} {text}, got {given[place]!r:.99}")
        return [given[place] for place in self.names]

    def _changed(self, given: Mapping[Place, Any]) -> Iterator[tuple[Place, str]]:
        """Yield the places of what is not as in the model, and what the model has there."""
        for place, leaf in given.items():
            if place in self.names:
                continue
            if place not in self._fixed:
                yield place, "is nothing that the model takes"
                continue
            fixed = self._fixed[place]
            if leaf is not fixed and not (isinstance(fixed, _FIXED) and leaf == fixed):
                yield place, f"is {fixed!r:.99} in the model"
