"""Adafactor: Adam's second moment of a matrix, kept as one row and one column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from convcore._limits import finfo
from convcore._tensor import Tensor, wrap
from convcore.optim._checks import check_lr, check_numbers
from convcore.optim._composed import Composed, counter

__all__ = ["Adafactor"]


class Adafactor(Composed):
    """Adafactor: Adam without momentum and with a state of one row and one column a matrix.

    With the gradient g of a parameter p, in step t, b = 1 - t^beta2_decay::

        r = b * r + (1 - b) * mean of g^2 over the last axis
        c = b * c + (1 - b) * mean of g^2 over the axis before
        v = r * c / max(mean of r, eps[0])              (v = b * v + (1 - b) * g^2 of a vector)
        u = g / sqrt(max(v, eps[0]^2))
        p = p - max(eps[1], rms(p)) * min(lr, 1 / sqrt(t)) * u / max(1, rms(u) / d)

    Parameters
    ----------
    lr : float or Tensor of one element
        Upper bound of the relative step size; ``lr * weight_decay * p`` is taken off before.
    beta2_decay : float
        At most 0.
    eps : (float or None, float)
        Bounds as above; None is the dtype's epsilon.
    d : float
        Bound of an update's root mean square, at least 1.
    params, weight_decay, foreach, maximize
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.
    RuntimeError
        In a step: a parameter is complex.

    References
    ----------
    N. Shazeer, M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML
    2018, algorithms 4 and 5.
    """

    _decoupled = True
    _takes_complex = False
    _later_options: ClassVar[dict[str, Any]] = {"maximize": False, "foreach": None}

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr)
        check_numbers(beta2_decay=beta2_decay, d=d, weight_decay=weight_decay)
        for name, value, fits, bound in (
            ("Learning rate", lr, lr >= 0, ">= 0"),
            ("beta2_decay", beta2_decay, beta2_decay <= 0, "<= 0"),
            ("epsilon1", eps[0], eps[0] is None or eps[0] >= 0, ">= 0"),
            ("epsilon2", eps[1], eps[1] >= 0, ">= 0"),
            ("Clipping threshold d", d, d >= 1, ">= 1"),
            ("weight_decay", weight_decay, weight_decay >= 0, ">= 0"),
        ):
            if not fits:
                raise ValueError(f"{name} should be {bound} but is: {value}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        array, step = parameter._array, counter(0.0)
        if array.ndim < 2:
            return {"step": step, "variance": wrap(np.zeros_like(array))}
        row, column = (*array.shape[:-1], 1), (*array.shape[:-2], 1, array.shape[-1])
        zeros = [wrap(np.zeros(shape, array.dtype)) for shape in (row, column)]
        return {"step": step, "row_var": zeros[0], "col_var": zeros[1]}

    def _decayed(
        self, value: Tensor, gradient: Tensor, options: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        return value, gradient  # the step size is relative to the value before the decay

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        steps, (low, least) = float(state["step"]), options["eps"]
        low = finfo(value.dtype).eps if low is None else low
        rate = max(least, _rms(value)) * min(options["lr"], 1 / steps**0.5)
        weight = steps ** options["beta2_decay"]
        update = gradient * _variance(gradient, state, weight, low).clamp(min=low * low).rsqrt()
        value = value * (1 - options["lr"] * options["weight_decay"])
        return value - rate / max(1.0, _rms(update) / options["d"]) * update


def _rms(values: Tensor) -> float:
    return float((values * values).mean()) ** 0.5


def _variance(gradient: Tensor, state: dict[str, Any], weight: float, low: float) -> Tensor:
    """Update the running means of the squared gradient, and return its estimate."""
    square = gradient * gradient
    if gradient.dim() < 2:
        variance = state["variance"] = state["variance"].lerp(square, weight)
        return variance
    row = state["row_var"] = state["row_var"].lerp(square.mean(-1, keepdim=True), weight)
    column = state["col_var"] = state["col_var"].lerp(square.mean(-2, keepdim=True), weight)
    return row * column / row.mean(-2, keepdim=True).clamp(min=low)
