"""RMSprop: steps relative to the root of the mean square of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.engine.layers import optimizers as engine
from convcore.optim._fused import (
    Fused,
    arrays_of,
    check_implementation,
    check_lr,
    check_options,
    written,
)

__all__ = ["RMSprop"]


class RMSprop(Fused):
    """Move each element by its gradient over the root of a running mean of the gradient's square.

    With the gradient g of a parameter p, in each step::

        g = g + weight_decay * p
        v = alpha * v + (1 - alpha) * g^2
        m = alpha * m + (1 - alpha) * g                 (centered; v - m^2 then stands for v below)
        b = momentum * b + g / (sqrt(v) + eps)
        p = p - lr * b

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        What is optimized; see `Optimizer`.
    lr : float or Tensor of one element
        Step size.
    alpha : float
        How much of the last means is kept.
    eps : float
        What keeps the division from 0.
    weight_decay : float
        Factor of the parameter that is added to its gradient (an L2 penalty).
    momentum : float
        Share of the last direction that is kept; 0 remembers nothing.
    centered : bool
        Whether the gradient's variance stands in the place of its mean square.
    capturable, foreach : bool, optional
        PyTorch's choices among its implementations; they change nothing here.
    maximize : bool
        Whether parameters are moved along the gradient.
    differentiable : bool
        Only False: a step is not recorded.

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
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

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
        check_lr(lr)
        check_options(
            lr=("learning rate", lr),
            eps=("epsilon value", eps),
            momentum=("momentum value", momentum),
            weight_decay=("weight_decay value", weight_decay),
            alpha=("alpha value", alpha),
        )
        check_implementation(differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        centered, momentum = options["centered"], options["momentum"]
        if not state:
            names = ["square_avg"]
            names += ["momentum_buffer"] if momentum else []
            names += ["grad_avg"] if centered else []
            self._remember(state, names, parameter)
        remembered = written(state, "square_avg")
        remembered += written(state, "grad_avg") if centered else []
        remembered += written(state, "momentum_buffer") if momentum else []
        settings = (
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
        arrays = [*arrays_of(parameter), *remembered]
        return engine.Step("rmsprop", arrays, settings, flags)
