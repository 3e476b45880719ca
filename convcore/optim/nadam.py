"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.optim._checks import checked_betas, options_of
from convcore.optim._composed import Composed, begin, counter
from convcore.optim.adam import corrections, running_means

__all__ = ["NAdam"]


class NAdam(Composed):
    """NAdam: Adam with Nesterov momentum.

    With the running means m and v of `Adam`, in step t::

        mu(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2)
        M = mu(1) * ... * mu(t)
        d = (1 - mu(t)) / (1 - M) * g + mu(t + 1) / (1 - M * mu(t + 1)) * m
        p = p - lr * d / (sqrt(v / (1 - beta2^t)) + eps)

    Parameters
    ----------
    betas : two floats
        Decay rates of the running means, from 0 to below 1.
    eps : float
        Added to the denominator, against division by 0.
    momentum_decay : float
    decoupled_weight_decay : bool
        Whether ``weight_decay`` shrinks the parameter itself, as in `AdamW`.
    params, lr, weight_decay, foreach, maximize, capturable, differentiable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.
    """

    _later_options: ClassVar[dict[str, Any]] = {
        **Composed._later_options,
        "capturable": False,
        "decoupled_weight_decay": False,
    }

    _options = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
        "capturable differentiable"
    )

    def __init__(
        self,
        params: Iterable,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(
            params, options_of(locals() | {"betas": checked_betas(betas)}, self._options)
        )

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        first = {"step": counter(0.0), "mu_product": counter(1.0)}  # in PyTorch's order
        return first | begin(parameter, "exp_avg", "exp_avg_sq")

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        steps, beta1 = float(state["step"]), options["betas"][0]
        now, after = (
            beta1 * (1 - 0.96 ** (t * options["momentum_decay"]) / 2) for t in (steps, steps + 1)
        )
        state["mu_product"] = state["mu_product"] * now
        so_far = state["mu_product"]
        product = so_far if so_far.requires_grad else float(so_far)
        mean, square = running_means(gradient, state, options["betas"])
        root = (square / corrections(state, options["betas"])[1]).sqrt() + options["eps"]
        move = (1 - now) / (1 - product) * gradient + after / (1 - product * after) * mean
        return value - options["lr"] * move / root
