"""Adagrad: the gradient divided by the root of the sum of all its squares so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore._tensor.creation import full_like
from convcore.optim._checks import options_of
from convcore.optim._composed import Composed, counter

__all__ = ["Adagrad"]


class Adagrad(Composed):
    """Adagrad: divide the gradient by the root of the sum of its squares in all steps.

    With the gradient g of a parameter p, in step t::

        s = s + g^2
        p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Parameters
    ----------
    lr_decay : float
        How fast the learning rate falls.
    initial_accumulator_value : float
        The value of s at the start.
    eps : float
        Added to the denominator, against division by 0.
    params, lr, weight_decay, foreach, maximize, differentiable, fused
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization", Journal of Machine Learning Research 12, 2011.
    """

    _later_options: ClassVar[dict[str, Any]] = {**Composed._later_options, "fused": None}

    _options = (
        "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
        "differentiable fused"
    )

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(params, options_of(locals(), self._options))
        for group in self.param_groups:  # the only optimizer with a state before its first step
            for parameter in group["params"]:
                self.state[parameter] = self._start(parameter, group)

    def share_memory(self) -> None:
        """Do nothing: the state is in this process's memory, where threads see it."""

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        first = options["initial_accumulator_value"]
        first = complex(first, first) if parameter.is_complex() else first
        return {"step": counter(0.0), "sum": full_like(parameter, first).detach()}

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        total = state["sum"] = state["sum"] + gradient * gradient
        rate = options["lr"] / (1 + (float(state["step"]) - 1) * options["lr_decay"])
        return value - rate * gradient / (total.sqrt() + options["eps"])
