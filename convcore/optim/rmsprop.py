"""RMSprop: the gradient divided by the root of a running mean of its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.engine.layers.optimizers import optimizers as engine
from convcore.optim._checks import options_of
from convcore.optim._composed import begin
from convcore.optim._fused import Fused, arrays_of, written

__all__ = ["RMSprop"]


class RMSprop(Fused):
    """RMSprop: divide the gradient by the root of a running mean of its square.

    With the gradient g of a parameter p, in each step::

        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g^2
        m = alpha * m + (1 - alpha) * g                 (centered; v - m^2 then stands for v below)
        b = momentum * b + g / (sqrt(v) + eps)
        p = p - lr * b

    Parameters
    ----------
    alpha : float
        Decay rate of the running means.
    eps : float
        Added to the denominator, against division by 0.
    momentum : float
        Factor of the velocity b of the step before; 0 keeps no velocity.
    centered : bool
        Whether to divide by the root of the gradient's variance instead of its mean square.
    params, lr, weight_decay, capturable, foreach, maximize, differentiable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    G. Hinton, N. Srivastava, K. Swersky, "Neural networks for machine learning", lecture 6a, 2012.
    A. Graves, "Generating sequences with recurrent neural networks", arXiv 1308.0850, equations 38
    to 45: centered, with momentum.

    Examples
    --------
    >>> import convcore
    >>> w = convcore.ones(2, requires_grad=True)
    >>> (w * 2).sum().backward()
    >>> convcore.optim.RMSprop([w], lr=0.01).step()
    >>> w
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        **Fused._later_options,
        "momentum": 0,
        "centered": False,
        "capturable": False,
    }

    _options = (
        "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    )

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, options_of(locals(), self._options))

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        centered, momentum = options["centered"], options["momentum"]
        arrays = [*arrays_of(parameter), *written(state, "square_avg")]
        arrays += written(state, "grad_avg") if centered else []
        arrays += written(state, "momentum_buffer") if momentum else []
        params = (
            -1 if options["maximize"] else 1,
            options["weight_decay"],
            options["lr"],
            momentum,
            options["alpha"],
            1 - options["alpha"],
            options["eps"],
        )
        flags = engine.DECAYS if options["weight_decay"] else 0
        flags |= engine.CENTERED if centered else 0
        flags |= engine.MOMENTUM if momentum else 0
        return engine.Step("rmsprop", arrays, params, flags)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        names = ["square_avg"]
        names += ["momentum_buffer"] if options["momentum"] else []
        names += ["grad_avg"] if options["centered"] else []
        return begin(parameter, *names)

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        alpha, momentum = options["alpha"], options["momentum"]
        square = alpha * state["square_avg"] + (1 - alpha) * gradient * gradient
        state["square_avg"] = square
        if options["centered"]:
            mean = state["grad_avg"] = state["grad_avg"].lerp(gradient, 1 - alpha)
            square = square - mean * mean
        move = gradient / (square.sqrt() + options["eps"])
        if momentum:
            move = state["momentum_buffer"] = momentum * state["momentum_buffer"] + move
        return value - options["lr"] * move
