"""Hints for datasets and their samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convcore._hints.inputs import shape_of

ONE_DATASET = "a loader takes one dataset: DataLoader(TensorDataset(x, y), batch_size)"


def samples(numbers: Sequence[Any], found: Sequence[Any]) -> str:
    """Say which sample of a batch does not go together with the others."""
    if not isinstance(found, list | tuple):  # a batch that the dataset made itself
        return ""
    for number, sample in zip(numbers, found, strict=False):
        if sample is None:
            return f"dataset[{number}] returned None"
        place = _none_inside(sample)
        if place:
            return f"dataset[{number}]{place} is None"
    first = _shapes(found[0]) if found else None
    for number, sample in zip(numbers, found, strict=False):
        if _shapes(sample) != first:
            return (
                f"dataset[{numbers[0]}] has {_described(first)}, dataset[{number}] has "
                f"{_described(_shapes(sample))}"
            )
    return ""


def _members(sample: Any) -> list[tuple[Any, Any]]:
    if isinstance(sample, Mapping):
        return list(sample.items())
    return list(enumerate(sample)) if isinstance(sample, tuple | list) else []


def _none_inside(sample: Any) -> str:
    return next((f"[{key!r}]" for key, value in _members(sample) if value is None), "")


def _shapes(sample: Any) -> list[Any]:
    """Return the shapes of a sample's tensors and arrays."""
    values = [value for _, value in _members(sample)] or [sample]
    return [list(value.shape) for value in values if isinstance(shape_of(value), tuple)]


def _described(shapes: Any) -> str:
    return f"shape {shapes[0]}" if len(shapes) == 1 else f"shapes {shapes}"
