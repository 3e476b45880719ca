"""Adam and AdamW: running means of the gradient and of its square, with bias correction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore.engine.layers.optimizers import optimizers as engine
from convcore.optim._checks import checked_betas, options_of
from convcore.optim._composed import begin
from convcore.optim._fused import Fused, arrays_of, written

__all__ = ["Adam", "AdamW"]

_NAMES = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


class Adam(Fused):
    """Adam: divide a running mean of the gradient by the root of one of its square.

    With the gradient g of a parameter p, in step t::

        g = g + weight_decay * p            (p = p - lr * weight_decay * p if decoupled)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g^2
        p = p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    Parameters
    ----------
    betas : two floats, or two Tensors of one element
        Decay rates of the running means, from 0 to below 1.
    eps : float
        Added to the denominator, against division by 0.
    amsgrad : bool
        Whether the last line uses the largest v so far.
    decoupled_weight_decay : bool
        Whether ``weight_decay`` shrinks the parameter itself, as in `AdamW`, instead of being an
        L2 penalty.
    params, lr, weight_decay, foreach, maximize, capturable, differentiable, fused
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range, or ``lr`` or a beta is a Tensor with ``foreach`` and without
        ``capturable``, which PyTorch refuses.

    Notes
    -----
    The state is two arrays of each parameter's size, three with ``amsgrad``.

    References
    ----------
    D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, algorithm 1.
    S. J. Reddi, S. Kale, S. Kumar, "On the convergence of Adam and beyond", ICLR 2018: amsgrad.

    Examples
    --------
    >>> import convcore
    >>> w = convcore.ones(2, requires_grad=True)
    >>> (w * 2).sum().backward()
    >>> convcore.optim.Adam([w], lr=0.1).step()
    >>> w
    tensor([0.9000, 0.9000], requires_grad=True)
    """

    _later_options: ClassVar[dict[str, Any]] = {
        **Fused._later_options,
        "amsgrad": False,
        "capturable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    _options = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
        "decoupled_weight_decay"
    )

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = options_of(
            locals() | {"betas": checked_betas(betas, differentiable)}, self._options
        )
        if foreach and not capturable:
            for name, option in {"lr": lr, "betas[0]": betas[0], "betas[1]": betas[1]}.items():
                if isinstance(option, Tensor):
                    raise ValueError(
                        f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                    )
        super().__init__(params, defaults)

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        amsgrad, decay = options["amsgrad"], options["weight_decay"]
        names = _NAMES[: 3 if amsgrad else 2]
        steps = float(state["step"]._array) + 1
        beta1, beta2 = options["betas"]
        decoupled = options["decoupled_weight_decay"]
        params = (
            -1 if options["maximize"] else 1,
            decay,
            1 - options["lr"] * decay if decoupled else 1,
            options["lr"] / (1 - beta1**steps),
            1 - beta1,
            beta2,
            1 - beta2,
            math.sqrt(1 - beta2**steps),
            options["eps"],
        )
        flags = engine.DECAYS if decay and not decoupled else 0
        flags |= engine.AMSGRAD if amsgrad else 0
        arrays = [*arrays_of(parameter), *written(state, *names)]
        return engine.Step("adam", arrays, params, flags)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        return begin(parameter, *_NAMES[: 3 if options["amsgrad"] else 2])

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        mean, square = running_means(gradient, state, options["betas"])
        correction, correction_of_square = corrections(state, options["betas"])
        if options["amsgrad"]:
            square = state["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(square)
        is_tensor = isinstance(correction_of_square, Tensor)
        divisor = correction_of_square.sqrt() if is_tensor else math.sqrt(correction_of_square)
        root = square.sqrt() / divisor + options["eps"]
        return value - options["lr"] / correction * mean / root


class AdamW(Adam):
    """Adam with decoupled weight decay: the parameters shrink, the gradients stay as they are.

    Parameters, errors and formulas are those of `Adam` with ``decoupled_weight_decay=True``.

    References
    ----------
    I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2.

    Examples
    --------
    >>> import convcore
    >>> w = convcore.ones(1, requires_grad=True)
    >>> w.grad = convcore.zeros(1)
    >>> convcore.optim.AdamW([w], lr=0.1, weight_decay=0.5).step()
    >>> w
    tensor([0.9500], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            *(params, lr, betas, eps, weight_decay, amsgrad),
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # also where the state is Adam's
            group["decoupled_weight_decay"] = True


def running_means(
    gradient: Tensor, state: dict[str, Any], betas: tuple[Any, Any]
) -> tuple[Tensor, Tensor]:
    """Update and return the running means of the gradient and of its square."""
    beta1, beta2 = betas
    mean = state["exp_avg"] = state["exp_avg"].lerp(gradient, 1 - beta1)
    square = beta2 * state["exp_avg_sq"] + (1 - beta2) * gradient * gradient
    state["exp_avg_sq"] = square
    return mean, square


def corrections(state: dict[str, Any], betas: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return what the two running means are divided by, because they began at 0."""
    steps = float(state["step"])
    return 1 - betas[0] ** steps, 1 - betas[1] ** steps
