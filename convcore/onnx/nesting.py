"""Nested tuples, lists and dicts: what lies in them, and at which places."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from convcore import Tensor

# An argument's name, then the keys and numbers that lead to what is meant: ("states", 0).
Place = tuple[Any, ...]


def leaves(tree: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield each value that is no tuple, list or dict, with its place, in order."""
    if isinstance(tree, tuple | list | dict):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*place, key))
    else:
        yield place, tree


def tensors_in(tree: Any) -> list[Tensor]:
    """Return the tensors among the values, in order."""
    return [value for _, value in leaves(tree) if isinstance(value, Tensor)]


def replaced(tree: Any, by: Callable[[Tensor], Tensor]) -> Any:
    """Return the same with other tensors: for each one what a function returns for it."""
    if isinstance(tree, Tensor):
        return by(tree)
    if isinstance(tree, dict):
        new = copy.copy(tree)
        new.update({key: replaced(value, by) for key, value in tree.items()})
        return new
    if isinstance(tree, tuple | list):
        parts = [replaced(value, by) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def shown(place: Place) -> str:
    """Return a place as a program would write it: states[0]."""
    name, *rest = place
    return f"{name}{''.join(f'[{key!r}]' for key in rest)}"
