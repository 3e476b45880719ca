"""Stochastic gradient descent, with momentum if wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.engine.layers import optimizers as engine
from convcore.optim._checks import check_numbers
from convcore.optim._fused import (
    Fused,
    arrays_of,
    check_implementation,
    check_lr,
    check_options,
    written,
)

__all__ = ["SGD"]


class SGD(Fused):
    """Move each parameter against its gradient.

    With the gradient g of a parameter p, in each step::

        g = g + weight_decay * p
        b = momentum * b + (1 - dampening) * g        (b = g in the first step)
        p = p - lr * b                                (p - lr * (g + momentum * b) with nesterov)

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        What is optimized; see `Optimizer`.
    lr : float or Tensor of one element
        Step size.
    momentum : float
        Share of the last direction that is kept; 0 remembers nothing.
    dampening : float
        Share of the gradient that the remembered direction does not take up.
    weight_decay : float
        Factor of the parameter that is added to its gradient (an L2 penalty).
    nesterov : bool
        Whether the gradient is taken, to first order, where the momentum leads.
    maximize : bool
        Whether parameters are moved along the gradient.
    foreach, fused : bool, optional
        PyTorch's choices among its implementations; they change nothing here.
    differentiable : bool
        Only False: a step is not recorded.

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
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

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
        check_lr(lr)
        check_options(
            lr=("learning rate", lr),
            momentum=("momentum value", momentum),
            weight_decay=("weight_decay value", weight_decay),
        )
        check_numbers(dampening=dampening)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_implementation(differentiable, foreach, fused)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
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
        settings = (
            -1 if options["maximize"] else 1,
            options["weight_decay"],
            options["lr"],
            options["momentum"],
            1 - options["dampening"],
        )
        return engine.Step("sgd", arrays, settings, flags)
