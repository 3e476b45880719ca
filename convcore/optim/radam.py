"""RAdam: Adam with the variance of its adaptive learning rate rectified in the first steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.optim._checks import checked_betas, options_of
from convcore.optim._composed import Composed, begin
from convcore.optim.adam import corrections, running_means

__all__ = ["RAdam"]


class RAdam(Composed):
    """Rectified Adam: a warm-up by formula instead of a schedule.

    With the running means m and v of `Adam`, in step t::

        r1 = 2 / (1 - beta2) - 1
        r = r1 - 2 * t * beta2^t / (1 - beta2^t)
        p = p - lr * m / (1 - beta1^t)                                        (if r <= 5, else)
        c = sqrt((r - 4) * (r - 2) * r1 / ((r1 - 4) * (r1 - 2) * r))
        p = p - lr * c * m / (1 - beta1^t) * sqrt(1 - beta2^t) / (sqrt(v) + eps)

    Parameters
    ----------
    betas : two floats
        Decay rates of the running means, from 0 to below 1.
    eps : float
        Added to the denominator, against division by 0.
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
    L. Liu, H. Jiang, P. He, W. Chen, X. Liu, J. Gao, J. Han, "On the variance of the adaptive
    learning rate and beyond", ICLR 2020, algorithm 2.
    """

    _later_options: ClassVar[dict[str, Any]] = {
        **Composed._later_options,
        "capturable": False,
        "decoupled_weight_decay": False,
    }

    _options = (
        "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
        "differentiable"
    )

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
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
        return begin(parameter, "exp_avg", "exp_avg_sq")

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        steps, beta2 = float(state["step"]), options["betas"][1]
        mean, square = running_means(gradient, state, options["betas"])
        correction, correction_of_square = corrections(state, options["betas"])
        move = mean / correction
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * steps * beta2**steps / correction_of_square
        if length > 5:
            factor = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            scale = math.sqrt(factor * correction_of_square)
            move = move * scale / (square.sqrt() + options["eps"])
        return value - options["lr"] * move
