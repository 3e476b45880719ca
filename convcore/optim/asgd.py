"""ASGD: stochastic gradient descent that also averages the parameters of all steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.optim._checks import check_options
from convcore.optim._composed import Composed, begin, counter

__all__ = ["ASGD"]


class ASGD(Composed):
    """Averaged stochastic gradient descent; the average is ``state[parameter]["ax"]``.

    With the gradient g of a parameter p, in step t, eta = lr and mu = 1 at first::

        p = p - eta * (lambd * p + g)
        a = a + mu * (p - a)
        eta = lr / (1 + lambd * lr * t)^alpha
        mu = 1 / max(1, t - t0)

    Parameters
    ----------
    lambd : float
        Decay term.
    alpha : float
        Power of the decay of the step size eta.
    t0 : float
        The step at which averaging starts.
    params, lr, weight_decay, foreach, maximize, differentiable, capturable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    B. T. Polyak, A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM
    Journal on Control and Optimization 30, 1992.
    """

    _later_options: ClassVar[dict[str, Any]] = {**Composed._later_options, "capturable": False}

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        check_options({**defaults, "alpha": abs(alpha)})  # PyTorch takes any
        super().__init__(params, defaults)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        state = {"step": counter(0.0), "eta": counter(float(options["lr"])), "mu": counter(1.0)}
        return state | begin(parameter, "ax")

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        steps, eta = float(state["step"]), float(state["eta"])
        lr, lambd = float(options["lr"]), options["lambd"]
        value = value * (1 - lambd * eta) - eta * gradient
        state["ax"] = state["ax"].lerp(value, float(state["mu"]))
        state["eta"] = counter(lr / (1 + lambd * lr * steps) ** options["alpha"])
        state["mu"] = counter(1 / max(1, steps - options["t0"]))
        return value
