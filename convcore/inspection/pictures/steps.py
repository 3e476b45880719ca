"""Pictures of how a distribution changes: histograms over steps of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore._errors import hinted
from convcore.inspection.pictures._drawing import array_of, figure_of
from convcore.nn import Module

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BINS = 64


def histograms(
    steps: Sequence[Any], *, numbers: Sequence[float] | None = None, title: str = "",
    figure: Any = None,
) -> Figure:  # fmt: skip
    """Draw histograms over steps of training: a column a step, dark where most elements are.

    Parameters
    ----------
    steps : sequence
        Of each step a tensor, or the histogram that ``capture(..., stats="histogram")`` makes:
        counts and edges.
    numbers : sequence of float, optional
        The steps' numbers, which rise. Default: from 0.
    title : str
    figure : Figure, optional
        What is drawn into; by default a new one.

    Raises
    ------
    TypeError, ValueError
        A step is neither; there are none; ``numbers`` are not as many, or do not rise.
    ImportError
        matplotlib is not installed.

    Notes
    -----
    All columns have the same 64 bins, from the least to the largest value of all steps. A histogram
    of other bins is shared out by the parts of its bins that lie in the new ones. The line joins
    the medians.
    """
    if isinstance(steps, Mapping | Module):
        raise hinted(
            TypeError(f"steps must be a sequence of tensors, got {type(steps).__name__}"),
            f"one step's is a list of one: {_first_of(steps)}",
        )
    if not len(steps):
        raise ValueError("steps: there are none")
    places = np.arange(len(steps)) if numbers is None else np.asarray(numbers, float)
    if places.shape != (len(steps),) or (np.diff(places) <= 0).any():
        raise ValueError(f"numbers must be {len(steps)} numbers that rise, got {numbers!r:.99}")
    counted = [_counted(one) for one in steps]
    least, most = min(edges[0] for _, edges in counted), max(edges[-1] for _, edges in counted)
    edges = np.linspace(least, most if most > least else least + 1, _BINS + 1)
    shares = np.stack([_shared_out(*one, edges) for one in counted], axis=1)
    drawn = figure_of(figure, 7, 3.6)
    ax = drawn.subplots()
    image = ax.pcolormesh(_between(places), edges, np.sqrt(shares), cmap="Blues", vmin=0)
    ax.plot(places, [_median(*one) for one in counted], color="tab:orange", label="median")
    ax.set(title=title, xlabel="step", ylabel="value")
    ax.legend()
    drawn.colorbar(image, label="square root of the share of elements")
    return drawn


def _first_of(given: Any) -> str:
    """Return what a list of one step's tensor may be, of a capture, a net or statistics."""
    if isinstance(given, Module):
        return "[net.conv1.weight]"
    return "[statistics]" if "histogram" in given else f"[found[{next(iter(given), 'conv1')!r}]]"


def _counted(one: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and edges of a tensor, or those that are given."""
    if isinstance(one, dict) and "histogram" in one:
        one = one["histogram"]
    if isinstance(one, tuple) and len(one) == 2 and len(one[1]) == len(one[0]) + 1:
        return np.asarray(one[0], float), np.asarray(one[1], float)
    array = array_of(one, "steps", tuple(range(9)))
    counts, edges = np.histogram(array[np.isfinite(array)], _BINS)
    return counts.astype(float), edges


def _shared_out(counts: np.ndarray, edges: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the shares of elements in other bins: the distribution is linear inside a bin."""
    below = np.concatenate(([0.0], np.cumsum(counts))) / (counts.sum() or 1.0)
    return np.diff(np.interp(wanted, edges, below))


def _median(counts: np.ndarray, edges: np.ndarray) -> float:
    below = np.concatenate(([0.0], np.cumsum(counts))) / (counts.sum() or 1.0)
    return float(np.interp(0.5, below, edges))


def _between(places: np.ndarray) -> np.ndarray:
    """Return the edges of columns around places."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middles = (places[1:] + places[:-1]) / 2
    return np.concatenate(([2 * places[0] - middles[0]], middles, [2 * places[-1] - middles[-1]]))
