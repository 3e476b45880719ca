"""Integrated gradients, on steps that are halved until the completeness axiom holds.

The gradient by the path's points, times the path, integrates to score(input) - score(baseline).
This is known for every step of the path too, from the scores at both ends, and tells where in the
step the sum is to change from one end's gradient to the other's: a Riemann sum whose partition is
chosen for completeness. It is exact where the score is linear on either side of one bend, as that
of a ReLU net is on a short step. Steps where no such place exists are halved.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore.inspection.attribution._batches import MEMORY, Bar, images_at_once, parts
from convcore.inspection.attribution._run import (
    Target,
    baseline_of,
    check_input,
    explaining,
    fixed,
    gradients,
    repeated,
)


def integrated_gradients(
    model: nn.Module,
    input: Tensor,
    target: Target = None,
    *,
    baseline: float | Tensor = 0.0,
    n_steps: int = 50,
    tolerance: float = 1e-3,
    max_steps: int = 1000,
    return_convergence_delta: bool = False,
    memory: int = MEMORY,
    progress: bool = False,
) -> Any:
    """Return integrated gradients: the mean gradient from a baseline to the input, times the way.

    Parameters
    ----------
    model, input, target
        As for `saliency`; a target of None is the class of the input itself.
    baseline : number, or a tensor that broadcasts to the input
        Where the path begins.
    n_steps : int
        Steps to begin with.
    tolerance : float
        Steps are halved until the attributions of an image sum to score(input) - score(baseline),
        but for this share of it.
    max_steps : int
        Steps of an image, at most; ``n_steps`` if that is more.
    return_convergence_delta : bool
        Whether the completeness figure is returned too.
    memory : int
        Bytes that the results of one batch of points may take.
    progress : bool
        Whether a bar is shown on standard error.

    Returns
    -------
    Tensor of the input's shape
        With ``return_convergence_delta`` a tuple of it and, (N,), the sum of each image's
        attributions less score(input) - score(baseline), which is 0 if they are complete.

    Raises
    ------
    ValueError
        ``n_steps`` is below 1 or ``tolerance`` not positive; and what `saliency` raises.

    Notes
    -----
    Completeness is about the sum. The share of each element comes nearer to the integral with more
    ``n_steps``. A jump of the score, as of `Hardshrink`, is in no gradient: the figure has it.

    References
    ----------
    M. Sundararajan, A. Taly, Q. Yan, "Axiomatic attribution for deep networks", ICML 2017. That the
    steps are found by completeness is convcore's own.

    Examples
    --------
    >>> import convcore
    >>> from convcore.inspection import attribution
    >>> net = convcore.nn.Linear(2, 1)
    >>> net.weight.data = convcore.tensor([[3.0, -2.0]])
    >>> attribution.integrated_gradients(net, convcore.ones(1, 2), target=0)
    tensor([[ 3., -2.]])
    """
    check_input(model, input, target)
    if n_steps < 1:
        raise ValueError(f"n_steps must be at least 1, got {n_steps}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    begin = baseline_of(baseline, input)
    found = np.empty_like(input._array)
    deltas = np.empty(len(input), input._array.dtype)
    points = (n_steps + 1) * len(input)
    with explaining(model, input), Bar("integrated gradients", points, progress) as bar:
        at_once = images_at_once(model, input, memory, points)
        for number in range(len(input)):
            one = slice(number, number + 1)
            resolved = fixed(model, input, target, one)
            path = _Path(model, begin[one], input._array[one], resolved, at_once, bar)
            found[number], deltas[number] = path.integral(n_steps, tolerance, max_steps)
    return (wrap(found), wrap(deltas)) if return_convergence_delta else wrap(found)


@dataclass
class _Point:
    """A point of the path: the score, the gradient, and the slope of the score along the path."""

    at: float
    score: float
    gradient: np.ndarray
    slope: float


class _Path:
    """The straight path from a baseline to one image, both (1, ...)."""

    def __init__(
        self,
        model: nn.Module,
        begin: np.ndarray,
        end: np.ndarray,
        target: Target,
        at_once: int,
        bar: Bar,
    ) -> None:
        self.model, self.target, self.at_once, self.bar = model, target, at_once, bar
        self.begin, self.way = begin, end - begin

    def points(self, places: list[float]) -> list[_Point]:
        """Return points of the path, computed in batches."""
        found = []
        for some in parts(len(places), self.at_once):
            share = np.asarray(places[some]).reshape(-1, *[1] * (self.way.ndim - 1))
            images = wrap((self.begin + share * self.way).astype(self.way.dtype))
            every = repeated(self.target, len(images))
            values, grads = gradients(self.model, images, every)
            for at, score, gradient in zip(places[some], values, grads._array, strict=True):
                slope = float((gradient * self.way[0]).sum(dtype=np.float64))
                found.append(_Point(at, float(score), gradient.copy(), slope))
            self.bar.advance(len(images))
        return found

    def integral(self, n_steps: int, tolerance: float, max_steps: int) -> tuple[np.ndarray, float]:
        """Return the attributions, and their sum less the difference of the scores."""
        known = self.points([k / n_steps for k in range(n_steps + 1)])
        whole = known[-1].score - known[0].score
        largest = max(abs(point.score) for point in (known[0], known[-1]))
        allowed = tolerance * max(abs(whole), 1e-3 * largest)
        nearest = float(np.finfo(self.way.dtype).eps)
        while len(known) <= max_steps:
            steps = [*itertools.pairwise(known)]
            missing = [_missing(a, b) for a, b in steps]
            if abs(sum(missing)) <= allowed:
                break
            # Points that are nearer than the dtype can tell apart, as at a jump, are near enough.
            wide = {n: abs(missing[n]) for n, (a, b) in enumerate(steps) if b.at - a.at > nearest}
            least = max(allowed / len(missing), 0.05 * max(wide.values(), default=0.0))
            halved = [n for n, error in wide.items() if error >= least]
            halved = halved[: max_steps + 1 - len(known)]
            if not halved:
                break
            self.bar.advance(0, more=len(halved))
            places = [(known[n].at + known[n + 1].at) / 2 for n in halved]
            known = sorted([*known, *self.points(places)], key=lambda point: point.at)
        mean = np.zeros(self.way.shape[1:])
        for a, b in itertools.pairwise(known):
            share, step = _share(a, b), b.at - a.at
            mean += step * (share * a.gradient + (1 - share) * b.gradient)
        found = mean * self.way[0]
        return found.astype(self.way.dtype), float(found.sum()) - whole


def _share(a: _Point, b: _Point) -> float:
    """Return which share of a step the gradient at its beginning holds for, between 0 and 1."""
    rise = (b.score - a.score) / (b.at - a.at)
    if abs(a.slope - b.slope) <= 1e-12 * (abs(a.slope) + abs(b.slope)):
        return 0.5
    return min(1.0, max(0.0, (rise - b.slope) / (a.slope - b.slope)))


def _missing(a: _Point, b: _Point) -> float:
    """Return by how much a step's attributions miss the rise of the score."""
    share, step = _share(a, b), b.at - a.at
    return step * (share * a.slope + (1 - share) * b.slope) - (b.score - a.score)
