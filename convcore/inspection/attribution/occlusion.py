"""Occlusion: cover parts of an image, and see what becomes of a class score."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.inspection.attribution._batches import MEMORY, Bar, images_at_once, parts
from convcore.inspection.attribution._run import (
    Target,
    check_input,
    explaining,
    fixed,
    repeated,
    scores,
)


def occlusion(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    window: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    baseline: float = 0.0,
    memory: int = MEMORY,
    progress: bool = False,
) -> Tensor:
    """Return how much a class score falls where a window covers the image.

    Parameters
    ----------
    model, input, target
        As for `saliency`; a target of None is the class of the whole image.
    window : int, or one int an axis
        The size of what is covered. One int, or as many as there are axes after the channels,
        covers all channels; else one for each axis but the batch's.
    stride : int, or one int an axis
        ``window`` by default: windows side by side. The last one ends at the edge.
    baseline : float
        What the window is filled with.
    memory : int
        Bytes that the results of one batch of covered images may take.
    progress : bool
        Whether a bar is shown on standard error.

    Returns
    -------
    Tensor of the input's shape
        For each element the mean of score - covered score over the windows that cover it.

    Raises
    ------
    ValueError
        A window that is larger than the image, or a window or stride below 1 or of another number
        of axes; and what `saliency` raises, but no gradient is needed.

    References
    ----------
    M. D. Zeiler, R. Fergus, "Visualizing and understanding convolutional networks", ECCV 2014,
    section 4.2.
    """
    check_input(model, input, target)
    sizes = input._array.shape[1:]
    windows = _per_axis("window", window, sizes)
    strides = windows if stride is None else _per_axis("stride", stride, sizes)
    places = list(_places(sizes, windows, strides))
    found = np.zeros(input._array.shape)
    counts = np.zeros(sizes)
    for place in places:
        counts[place] += 1
    with explaining(model, input), Bar("occlusion", len(places) * len(input), progress) as bar:
        at_once = images_at_once(model, input, memory, max(len(places), len(input)))
        with no_grad():
            for number in range(len(input)):
                one = slice(number, number + 1)
                resolved = fixed(model, input, target, one)
                image = input._array[one]
                whole = scores(model(wrap(image.copy())), resolved)._array[0]
                for some in parts(len(places), at_once):
                    covered = _covered(image, places[some], baseline)
                    every = repeated(resolved, len(covered))
                    left = scores(model(wrap(covered)), every)._array
                    for place, score in zip(places[some], left, strict=True):
                        found[number][place] += float(whole) - float(score)
                    bar.advance(len(covered))
    return wrap((found / np.maximum(counts, 1)).astype(input._array.dtype))


def _covered(image: np.ndarray, places: list[tuple[slice, ...]], value: float) -> np.ndarray:
    """Return copies of an image (1, ...), one with each place covered."""
    copies = np.repeat(image, len(places), axis=0)
    for copy, place in zip(copies, places, strict=True):
        copy[place] = value
    return copies


def _per_axis(name: str, value: int | Sequence[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return one int for each axis after the batch's."""
    pixels = sizes[1:] if len(sizes) > 1 else sizes
    given = (value,) * len(pixels) if isinstance(value, int) else tuple(value)
    if len(given) == len(pixels) < len(sizes):
        given = (sizes[0], *given)
    if len(given) != len(sizes) or not all(isinstance(n, int) and n >= 1 for n in given):
        raise ValueError(
            f"{name} must be a positive int, {len(pixels)} or {len(sizes)} of them, got {value!r}"
        )
    if name == "window" and any(n > size for n, size in zip(given, sizes, strict=True)):
        raise ValueError(f"window must fit into an image of {sizes}, got {given}")
    return given


def _places(
    sizes: tuple[int, ...], windows: tuple[int, ...], strides: tuple[int, ...]
) -> Iterator[tuple[slice, ...]]:
    """Yield the windows, which reach the far edges too."""
    starts = [
        sorted({*range(0, size - window + 1, stride), size - window})
        for size, window, stride in zip(sizes, windows, strides, strict=True)
    ]
    for corner in itertools.product(*starts):
        yield tuple(slice(at, at + window) for at, window in zip(corner, windows, strict=True))
