"""Arithmetic of paired samples: ratios round by round, quartiles, geometric means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles of some samples."""

    median: float
    low: float
    high: float


def spread(samples: Sequence[float]) -> Spread:
    """Return the median and the quartiles (inclusive method); one sample is its own three."""
    if not samples:
        raise ValueError("samples must not be empty")
    if len(samples) == 1:
        return Spread(samples[0], samples[0], samples[0])
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Spread(median, low, high)


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return theirs / ours, round by round: above 1, ours is the faster.

    A peer may have sat out the later rounds; those have no ratio.  Noise that lasts longer than a
    round slows both samples of a pair and leaves their ratio alone: that is what pairing is for.
    """
    if len(theirs) > len(ours):
        raise ValueError(f"theirs has {len(theirs)} rounds, more than ours, {len(ours)}")
    return [b / a for a, b in zip(ours, theirs, strict=False)]


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return exp(mean(log(ratio))); nan for none."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan
