"""Axes whose sizes a model leaves free, from either of PyTorch's ways to say which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convcore import Tensor
from convcore.onnx.nesting import Place, shown

Axes = dict[int, str]


def of_names(given: Mapping[str, Any], values: Mapping[str, Tensor]) -> dict[str, Axes]:
    """Return the free axes that ``dynamic_axes`` gives these tensors, with their names."""
    free = {}
    for name in given.keys() & values.keys():
        axes = given[name]
        named = axes if isinstance(axes, Mapping) else {a: f"{name}_{a}" for a in axes}
        rank = values[name].ndim
        if any(not -rank <= axis < rank for axis in named):
            raise ValueError(f"dynamic_axes: {name!r} has {rank} axes, got {sorted(named)}")
        free[name] = {axis % rank: text for axis, text in named.items()}
    return free


def of_shapes(
    given: Any, arguments: Mapping[str, Any], names: Mapping[Place, str]
) -> dict[str, Axes]:
    """Return the free axes of ``dynamic_shapes``, by the inputs' names in the model.

    Parameters
    ----------
    given : dict, tuple or list
        By the names of forward's arguments, or in their order.
    arguments : dict
        What forward was called with, in its order.
    names : dict of place to str
        The inputs' names in the model.
    """
    if not isinstance(given, Mapping | tuple | list):
        kind = type(given).__name__
        raise TypeError(
            f"export(): argument 'dynamic_shapes' must be dict, tuple, list or None, not {kind}"
        )
    if not given:
        return {}
    if not isinstance(given, Mapping):
        if len(given) != len(arguments):
            raise ValueError(
                f"dynamic_shapes has {len(given)} entries, and forward was called with "
                f"{len(arguments)} arguments: {', '.join(arguments)}"
            )
        given = dict(zip(arguments, given, strict=True))
    free = {}
    for place, value, shape in _pairs(arguments, given, ()):
        axes = {
            axis: _free(each, value.shape[axis], f"{shown(place)}, axis {axis}")
            for axis, each in _by_axis(shape, value, place).items()
        }
        name = names[place]
        free[name] = {a: text or f"{name}_{a}" for a, text in axes.items() if text is not None}
    return free


def _pairs(tree: Any, shapes: Any, place: Place) -> Iterator[tuple[Place, Tensor, Any]]:
    """Yield each tensor that something is said of, with its place and what is said."""
    where = f"dynamic_shapes of {shown(place)}" if place else "dynamic_shapes"
    if shapes is None:
        return
    if isinstance(tree, Tensor):
        yield place, tree, shapes
    elif isinstance(tree, dict):
        if not isinstance(shapes, Mapping) or not shapes.keys() <= tree.keys():
            said = list(shapes) if isinstance(shapes, Mapping) else shapes
            raise ValueError(f"{where}: there are {list(tree)}, got {said!r}")
        for key, each in shapes.items():
            yield from _pairs(tree[key], each, (*place, key))
    elif isinstance(tree, tuple | list):
        if not isinstance(shapes, tuple | list) or len(shapes) != len(tree):
            raise ValueError(f"{where}: a tuple or list of {len(tree)} is needed, got {shapes!r}")
        for number, each in enumerate(shapes):
            yield from _pairs(tree[number], each, (*place, number))
    else:
        raise ValueError(f"{where} must be None, for that is {tree!r:.99}, got {shapes!r}")


def _by_axis(shape: Any, value: Tensor, place: Place) -> Mapping[int, Any]:
    """Return what is said of each axis of a tensor."""
    rank = value.ndim
    if isinstance(shape, Sequence) and not isinstance(shape, str) and len(shape) == rank:
        return dict(enumerate(shape))
    if isinstance(shape, Mapping) and all(
        isinstance(axis, int) and -rank <= axis < rank for axis in shape
    ):
        return {axis % rank: each for axis, each in shape.items()}
    raise ValueError(
        f"dynamic_shapes of {shown(place)}, which has {rank} axes: a dict by axis is needed, or a "
        f"tuple of {rank}, got {shape!r}"
    )


def _free(given: Any, size: int, where: str) -> str | None:
    """Return an axis' name, '' if it is free and has none, None if it is not free."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, int):
        if given != size:
            raise ValueError(f"dynamic_shapes of {where}: its size is {size}, got {given}")
        return None
    # By their attributes, which PyTorch's own have too: Dim("batch"), and Dim.AUTO and its like.
    name = getattr(given, "__name__", None)
    hint = getattr(getattr(given, "type", None), "name", None)
    if not hasattr(given, "min") or (name is None and hint not in ("AUTO", "DYNAMIC", "STATIC")):
        raise TypeError(
            f"dynamic_shapes of {where}: a name, None, an int, or torch.export's Dim(name), "
            f"Dim.AUTO, Dim.DYNAMIC or Dim.STATIC is needed, got {given!r:.99}"
        )
    if (given.min or 0) > size or (given.max is not None and given.max < size):
        raise ValueError(f"dynamic_shapes of {where}: its size {size} is outside {given!r}")
    return None if hint == "STATIC" else name or ""
