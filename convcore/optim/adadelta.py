"""Adadelta: steps scaled by the ratio of two running means, without a learning rate to tune."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from convcore._tensor import Tensor
from convcore.optim._checks import options_of
from convcore.optim._composed import Composed, begin

__all__ = ["Adadelta"]


class Adadelta(Composed):
    """Adadelta: scale the gradient by the root mean square of steps over that of gradients.

    With the gradient g of a parameter p, in each step::

        v = rho * v + (1 - rho) * g^2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d^2
        p = p - lr * d

    Parameters
    ----------
    rho : float
        Decay rate of the running means, from 0 to 1.
    eps : float
        Added below both roots.
    params, lr, weight_decay, foreach, capturable, maximize, differentiable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    M. D. Zeiler, "ADADELTA: an adaptive learning rate method", arXiv 1212.5701, algorithm 1.
    """

    _options = "lr rho eps weight_decay maximize capturable foreach differentiable"

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = options_of(locals(), self._options)
        if rho > 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, defaults)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        return begin(parameter, "square_avg", "acc_delta")

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        rho, eps = options["rho"], options["eps"]
        square = rho * state["square_avg"] + (1 - rho) * gradient * gradient
        move = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * gradient
        state["square_avg"] = square
        state["acc_delta"] = rho * state["acc_delta"] + (1 - rho) * move * move
        return value - options["lr"] * move
