"""Hints for the states of modules, and the files that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convcore._hints.inputs import of_pytorch, shape_of
from convcore._hints.words import nearest

_Shape = Sequence[int]
OBJECT_FIRST = "the object comes first, and then the file: torch.save(object, path)"


def state_keys(
    missing: Sequence[str],
    unexpected: Sequence[str],
    state: Mapping[str, Any],
    shapes: Mapping[str, _Shape],
) -> str:
    """Say how a state differs from that of a module, whose shapes are given: most often by keys."""
    if not missing or not unexpected:
        return next(filter(None, map(of_pytorch, state.values())), "")
    for key in unexpected:
        inner = state.get(key)
        if isinstance(inner, Mapping) and missing[0] in inner:
            return f"the state is inside: load_state_dict(checkpoint[{key!r}])"
    prefix = prefix_of(missing, unexpected)
    if prefix:
        return (
            f"the keys have the prefix {prefix!r}"
            f"{', of nn.DataParallel' if prefix == 'module.' else ''}: "
            f"{{key.removeprefix({prefix!r}): value for key, value in state_dict.items()}}"
        )
    prefix = prefix_of(unexpected, missing)
    if prefix:
        return (
            f"the module's keys have the prefix {prefix!r}, which the state's have not: "
            f"{{{prefix!r} + key: value for key, value in state_dict.items()}}"
        )
    found_shapes = {key: shape_of(state.get(key)) for key in unexpected[:200]}
    pairs = [
        (key, nearest(key, [k for k, shape in found_shapes.items() if shape == shapes.get(key)]))
        for key in missing[:3]
    ]
    meant = [f"{found!r} meant to be {key!r}" for key, found in pairs if found]
    return f"is {', '.join(meant)}?" if meant else ""


def prefix_of(short: Sequence[str], long: Sequence[str]) -> str:
    """Return what stands before each of the short keys in the long ones; '' if there is none."""
    found = next((key for key in long if key.endswith(f".{short[0]}")), "")
    prefix = found.removesuffix(short[0])
    return prefix if prefix and {prefix + key for key in short} == set(long) else ""


NO_DOWNLOAD = (
    "convcore has no weights and downloads none: load a file that you have, such as torchvision's, "
    "by net.load_state_dict(convcore.load('resnet18.pth'))"
)


def not_a_state(value: Any) -> str:
    """Say what to load instead of something that is no mapping."""
    if hasattr(value, "state_dict"):
        return "pass its state: load_state_dict(other.state_dict())"
    if isinstance(value, str):
        return "read the file first: load_state_dict(torch.load(path))"
    return ""
