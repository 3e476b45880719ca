"""Muon: momentum whose matrix is made orthogonal before the step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.functions.matmul import matmul
from convcore.optim._checks import check_lr, check_numbers
from convcore.optim._composed import Composed

__all__ = ["Muon"]


class Muon(Composed):
    """Muon: momentum, made nearly orthogonal by Newton-Schulz iterations; for matrices only.

    With the gradient g of a parameter p, in each step::

        b = momentum * b + (1 - momentum) * g
        u = orthogonal part of b                  (of (1 - momentum) * g + momentum * b: nesterov)
        p = (1 - lr * weight_decay) * p - lr * scale * u

    Parameters
    ----------
    momentum : float
    nesterov : bool
    ns_coefficients : three floats
        Of the polynomial that the iteration applies to the singular values.
    eps : float
        Lower bound of the norm that the matrix is divided by first.
    ns_steps : int
        The number of iterations.
    adjust_lr_fn : None, 'original' or 'match_rms_adamw'
        The scale for a matrix of A rows and B columns: sqrt(max(1, A / B)), or
        0.2 * sqrt(max(A, B)).
    params, lr, weight_decay
        As for every optimizer; see the notes of `Optimizer`.

    Raises
    ------
    ValueError
        An option is out of its range, or a parameter is no matrix.

    Notes
    -----
    The iterations run in the parameter's dtype; PyTorch rounds them to bfloat16, so that its steps
    differ from these by about one part in a hundred.  Nothing else differs: kept from rounding, its
    steps are these.

    References
    ----------
    K. Jordan, "Muon: an optimizer for hidden layers in neural networks", 2024.
    """

    _decoupled = True
    _takes_complex = False
    _later_options: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        check_numbers(weight_decay=weight_decay, momentum=momentum)
        for name, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for parameter in self._all_parameters():
            if parameter.dim() != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{parameter.size()}"
                )

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": wrap(np.zeros_like(parameter._array))}

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        momentum = options["momentum"]
        mean = state["momentum_buffer"] = state["momentum_buffer"].lerp(gradient, 1 - momentum)
        move = gradient.lerp(mean, momentum) if options["nesterov"] else mean
        rows, columns = value.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1, rows / columns))
        return value - options["lr"] * scale * _orthogonal(move, options)


def _orthogonal(matrix: Tensor, options: dict[str, Any]) -> Tensor:
    """Return a matrix with its singular values moved near 1, by Newton-Schulz iterations."""
    rows, columns = matrix.shape
    x = matrix.t() if rows > columns else matrix
    x = x / x.norm().clamp(min=options["eps"])
    a, b, c = options["ns_coefficients"]
    for _ in range(options["ns_steps"]):
        gram = matmul(x, x.t())
        x = a * x + matmul(b * gram + c * matmul(gram, gram), x)
    return x.t() if rows > columns else x
