"""Nested tuples, lists and dictionaries as a flat list of leaves, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def leaves(tree: Any) -> Iterator[Any]:
    """Yield what is in nested tuples, lists and dictionaries, in order."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from leaves(value)
    elif isinstance(tree, (tuple, list)):
        for value in tree:
            yield from leaves(value)
    else:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree of the same structure with ``function`` of each leaf."""
    if isinstance(tree, dict):
        pairs = [(key, mapped(function, value)) for key, value in tree.items()]
        return type(tree)(pairs)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[mapped(function, value) for value in tree])
    if isinstance(tree, (tuple, list)):
        return type(tree)([mapped(function, value) for value in tree])
    return function(tree)


def filled(tree: Any, values: Any) -> Any:
    """Return a tree of the same structure with other leaves, in order."""
    iterator = iter(values)
    return mapped(lambda _: next(iterator), tree)


def spread(prefix: Any, tree: Any) -> list[Any] | None:
    """Return a leaf of ``prefix`` for each leaf of ``tree``; None if the structures do not fit.

    A leaf of ``prefix`` stands for all leaves in its place.
    """
    if not isinstance(prefix, (tuple, list, dict)):
        return [prefix for _ in leaves(tree)]
    if isinstance(prefix, dict):
        if not isinstance(tree, dict) or prefix.keys() != tree.keys():
            return None
        pairs = [(prefix[key], value) for key, value in tree.items()]
    else:
        if not isinstance(tree, (tuple, list)) or len(prefix) != len(tree):
            return None
        pairs = list(zip(prefix, tree, strict=True))
    found: list[Any] = []
    for part, value in pairs:
        below = spread(part, value)
        if below is None:
            return None
        found += below
    return found
