"""Adam and AdamW: steps as large as the gradient's mean is beside its spread."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._tensor import Tensor
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

__all__ = ["Adam", "AdamW"]


class Adam(Fused):
    """Move each element by a running mean of its gradient over the root of that of its square.

    With the gradient g of a parameter p, in step t::

        g = g + weight_decay * p            (p = p - lr * weight_decay * p if decoupled)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g^2
        p = p - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor), or of dict
        What is optimized; see `Optimizer`.
    lr : float or Tensor of one element
        Step size.
    betas : two floats, or two Tensors of one element
        How much of the last means is kept, from 0 to below 1.
    eps : float
        What keeps the division from 0.
    weight_decay : float
        Factor of the parameter that is added to its gradient (an L2 penalty), or, decoupled, of
        the parameter itself.
    amsgrad : bool
        Whether the largest v so far stands in the last line.
    foreach, capturable, fused : bool, optional
        PyTorch's choices among its implementations; they change nothing here.
    maximize : bool
        Whether parameters are moved along the gradient.
    differentiable : bool
        Only False: a step is not recorded.
    decoupled_weight_decay : bool
        Whether weights decay as in `AdamW`.

    Raises
    ------
    ValueError
        An option is out of its range.

    Notes
    -----
    Two arrays as large as the parameters are remembered, three with ``amsgrad``.

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
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

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
        check_lr(lr)
        check_options(lr=("learning rate", lr), eps=("epsilon value", eps))
        betas = _checked_betas(betas)
        check_options(weight_decay=("weight_decay value", weight_decay))
        check_implementation(differentiable, foreach, fused)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        amsgrad, decay = options["amsgrad"], options["weight_decay"]
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")[: 3 if amsgrad else 2]
        if not state:
            self._remember(state, names, parameter)
        steps = float(state["step"]._array) + 1
        beta1, beta2 = options["betas"]
        decoupled = options["decoupled_weight_decay"]
        settings = (
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
        return engine.Step("adam", arrays, settings, flags)


class AdamW(Adam):
    """Adam whose weights decay by themselves, not through their gradients.

    The parameters, errors and formulas are `Adam`'s, with ``decoupled_weight_decay``.

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
        for group in self.param_groups:  # whatever optimizer the state is from
            group["decoupled_weight_decay"] = True


def _checked_betas(betas: tuple[Any, Any]) -> tuple[float, float]:
    """Return the two shares as floats, or raise."""
    if not isinstance(betas, (list, tuple)) or len(betas) != 2:
        raise TypeError(f"betas must be two numbers, got {betas!r}")
    check_numbers(**{f"betas[{number}]": beta for number, beta in enumerate(betas)})
    for number, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {number}: {beta}")
    if not (
        all(isinstance(beta, float) for beta in betas)
        or all(isinstance(beta, Tensor) for beta in betas)
    ):
        raise ValueError("betas must be either both floats or both Tensors")
    for number, beta in enumerate(betas):
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{number}] must be 1-element")
    first, second = (float(beta) for beta in betas)
    return first, second
