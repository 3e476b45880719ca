"""Adamax: Adam with the largest gradient, decaying, in the place of the root mean square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.optim._checks import check_options, checked_betas
from convcore.optim._composed import Composed, begin

__all__ = ["Adamax"]


class Adamax(Composed):
    """Adamax: the variant of Adam for the infinity norm.

    With the gradient g of a parameter p, in step t::

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        p = p - lr / (1 - beta1^t) * m / u

    Parameters
    ----------
    betas : two floats
        Decay rates of m and u, from 0 to below 1.
    eps : float
        Keeps the denominator from being 0.
    params, lr, weight_decay, foreach, maximize, differentiable, capturable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, section 7.1.
    """

    _later_options: ClassVar[dict[str, Any]] = {**Composed._later_options, "capturable": False}

    def __init__(
        self,
        params: Iterable,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": checked_betas(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        check_options(defaults)
        super().__init__(params, defaults)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        return begin(parameter, "exp_avg", "exp_inf")

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        beta1, beta2 = options["betas"]
        mean = state["exp_avg"] = state["exp_avg"].lerp(gradient, 1 - beta1)
        largest = (beta2 * state["exp_inf"]).maximum(gradient.abs() + options["eps"])
        state["exp_inf"] = largest
        return value - options["lr"] / (1 - beta1 ** float(state["step"])) * mean / largest
