"""SGD: stochastic gradient descent, optionally with (Nesterov) momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.engine.layers.optimizers import optimizers as engine
from convcore.optim._checks import check_numbers, options_of
from convcore.optim._fused import Fused, arrays_of, written

__all__ = ["SGD"]


class SGD(Fused):
    """Stochastic gradient descent, optionally with (Nesterov) momentum.

    With the gradient g of a parameter p, in each step::

        g = g + weight_decay * p
        b = momentum * b + (1 - dampening) * g        (b = g in the first step)
        p = p - lr * b                                (p - lr * (g + momentum * b) with nesterov)

    Parameters
    ----------
    momentum : float
        Factor of the velocity b of the step before; 0 keeps no velocity.
    dampening : float
        Share of the gradient that does not enter the velocity.
    nesterov : bool
        Whether the gradient is taken, to first order, where the momentum leads.
    params, lr, weight_decay, maximize, foreach, fused, differentiable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range, or nesterov without momentum or with dampening.

    References
    ----------
    I. Sutskever, J. Martens, G. Dahl, G. Hinton, "On the importance of initialization and momentum
    in deep learning", ICML 2013, section 2. As in PyTorch, the velocity here does not contain the
    step size.

    Examples
    --------
    >>> import convcore
    >>> w = convcore.ones(2, requires_grad=True)
    >>> (w * 2).sum().backward()
    >>> convcore.optim.SGD([w], lr=0.1).step()
    >>> w
    tensor([0.8000, 0.8000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        **Fused._later_options,
        "nesterov": False,
        "fused": False,
    }

    _options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = options_of(locals(), self._options)
        check_numbers(dampening=dampening)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        arrays = arrays_of(parameter)
        flags = engine.DECAYS if options["weight_decay"] else 0
        if options["momentum"]:
            flags |= engine.VELOCITY | (engine.NESTEROV if options["nesterov"] else 0)
            if state.get("momentum_buffer") is None:
                flags |= engine.FIRST
                state["momentum_buffer"] = wrap(np.empty_like(parameter._array))
            arrays += written(state, "momentum_buffer")
        params = (
            -1 if options["maximize"] else 1,
            options["weight_decay"],
            options["lr"],
            options["momentum"],
            1 - options["dampening"],
        )
        return engine.Step("sgd", arrays, params, flags)

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        momentum, velocity = options["momentum"], state.get("momentum_buffer")
        move = gradient
        if momentum:
            if velocity is not None:
                move = momentum * velocity + (1 - options["dampening"]) * gradient
            state["momentum_buffer"] = move.clone()
            if options["nesterov"]:
                move = gradient + momentum * move
        return value - options["lr"] * move
