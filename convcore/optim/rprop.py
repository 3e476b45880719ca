"""Rprop: step sizes of single elements that grow or shrink with the signs of the gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from convcore._creation import full_like, ones_like, zeros_like
from convcore._tensor import Tensor
from convcore.functions.piecewise import where
from convcore.optim._checks import check_options
from convcore.optim._composed import Composed, begin

__all__ = ["Rprop"]


class Rprop(Composed):
    """Resilient backpropagation: each element has a step size; only the gradient's sign counts.

    An element's step size grows by the factor ``etas[1]`` if its gradient has kept its sign. If the
    sign has changed, the step size shrinks by ``etas[0]`` and the element is not moved. Meant for
    gradients of the whole data set, not of batches.

    Parameters
    ----------
    etas : two floats
        The factors: between 0 and 1, and above 1.
    step_sizes : two floats
        The smallest and the largest step size. The first one is ``lr``.
    params, lr, capturable, foreach, maximize, differentiable
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    M. Riedmiller, H. Braun, "A direct adaptive method for faster backpropagation learning: the
    RPROP algorithm", IEEE International Conference on Neural Networks, 1993.
    """

    _later_options: ClassVar[dict[str, Any]] = {**Composed._later_options, "capturable": False}

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        check_options(defaults)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, defaults)

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        first = float(options["lr"])
        sizes: Any = complex(first, first) if parameter.is_complex() else first
        return begin(parameter, "prev") | {"step_size": full_like(parameter, sizes).detach()}

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        shrink, grow = options["etas"]
        agreement = gradient * state["prev"]
        turned = agreement < 0
        factor = ones_like(gradient).detach()
        factor = where(turned, shrink * factor, where(agreement > 0, grow * factor, factor))
        sizes = (state["step_size"] * factor).clamp(*options["step_sizes"])
        gradient = where(turned, zeros_like(gradient), gradient)
        state["prev"], state["step_size"] = gradient.clone(), sizes
        return value - gradient.sign() * sizes
