"""Line search for the strong Wolfe conditions, with cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from convcore._tensor import Tensor
from convcore.functions.products.matmul import dot

# Shares of the slope at the start: sufficient decrease, and curvature.
_DECREASE, _CURVATURE = 1e-4, 0.9
_TOLERANCE = 1e-9


class _Point(NamedTuple):
    """A step length, and the loss, gradient and slope there."""

    length: float
    loss: float
    grad: Tensor
    slope: float


def strong_wolfe(
    probe: Callable[[float], tuple[float, Tensor]],
    length: float,
    direction: Tensor,
    now: tuple[float, Tensor],
    slope: float,
    most: int,
) -> tuple[float, Tensor, float]:
    """Return loss, gradient and length of a step that fulfils the strong Wolfe conditions.

    Parameters
    ----------
    probe : callable
        Length -> loss and gradient there.
    length : float
        The first to try.
    direction : Tensor
    now : loss and gradient at length 0
    slope : float
        Derivative of the loss along the direction at length 0; negative.
    most : int
        How often to look further than at the first length.

    References
    ----------
    J. Nocedal, S. Wright, "Numerical optimization", 2nd edition 2006, algorithms 3.5 and 3.6.
    """

    def look(length: float) -> _Point:
        loss, grad = probe(length)
        return _Point(length, loss, grad, float(dot(grad, direction)))

    start = _Point(0.0, now[0], now[1].clone(), slope)
    found, left = _bracket(look, start, length, most)
    if len(found) == 2:
        point = _zoom(look, start, found, left, float(direction.abs().max()))
    else:
        point = found[0]
    return point.loss, point.grad, point.length


def _too_high(point: _Point, start: _Point) -> bool:
    return point.loss > start.loss + _DECREASE * point.length * start.slope


def _is_flat_enough(point: _Point, start: _Point) -> bool:
    return abs(point.slope) <= -_CURVATURE * start.slope


def _bracket(
    look: Callable[[float], _Point], start: _Point, length: float, most: int
) -> tuple[list[_Point], int]:
    """Return a good point alone, or two around one, and how many steps are left."""
    last, point = start, look(length)
    for number in range(most):
        left = most - number
        if _too_high(point, start) or (number > 1 and point.loss >= last.loss):
            return [last, point], left
        if _is_flat_enough(point, start):
            return [point], left
        if point.slope >= 0:
            return [last, point], left
        bounds = point.length + 0.01 * (point.length - last.length), point.length * 10
        last, point = point, look(_lowest_of_cubic(last, point, bounds))
    return [start, point], 0


def _zoom(
    look: Callable[[float], _Point], start: _Point, ends: list[_Point], left: int, largest: float
) -> _Point:
    """Narrow two points until the lower one is good, or the interval is too small."""
    low, high = _sorted(*ends)
    stuck = False
    for _ in range(left):
        if abs(high.length - low.length) * largest < _TOLERANCE:
            break
        length, stuck = _next_length(low, high, stuck)
        point = look(length)
        if _too_high(point, start) or point.loss >= low.loss:
            low, high = _sorted(low, point)
            continue
        if _is_flat_enough(point, start):
            return point
        if point.slope * (high.length - low.length) >= 0:
            high = low
        low = point
    return low


def _sorted(first: _Point, second: _Point) -> tuple[_Point, _Point]:
    return (first, second) if first.loss <= second.loss else (second, first)


def _next_length(low: _Point, high: _Point, stuck: bool) -> tuple[float, bool]:
    """Return the next length to try, and whether it is near an end of the interval.

    The second time in turn it is moved a tenth of the interval away from the end.
    """
    below, above = sorted((low.length, high.length))
    length = _lowest_of_cubic(low, high, (below, above))
    margin = 0.1 * (above - below)
    if min(above - length, length - below) >= margin:
        return length, False
    if not (stuck or length >= above or length <= below):
        return length, True
    nearer_above = abs(length - above) < abs(length - below)
    return (above - margin if nearer_above else below + margin), False


def _lowest_of_cubic(one: _Point, other: _Point, bounds: tuple[float, float]) -> float:
    """Return where the cubic through two points with their slopes is lowest, within bounds."""
    one, other = sorted((one, other), key=lambda point: point.length)
    low, high = bounds
    width = other.length - one.length
    mean = one.slope + other.slope - 3 * (one.loss - other.loss) / (one.length - other.length)
    square = mean**2 - one.slope * other.slope
    if square < 0:
        return (low + high) / 2
    root = square**0.5
    numerator = other.slope + root - mean
    denominator = other.slope - one.slope + 2 * root
    if denominator == 0:  # a straight line is lowest at an end
        return high if numerator < 0 else low
    return min(max(other.length - width * (numerator / denominator), low), high)
