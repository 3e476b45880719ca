"""Checks of the options of optimizers and schedulers."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor

_REAL = (int, float, np.integer, np.floating)


def check_numbers(**options: Any) -> None:
    """Raise TypeError for the first option that is neither a real number nor a tensor."""
    for name, value in options.items():
        if not isinstance(value, (*_REAL, Tensor)):
            raise TypeError(f"{name} must be a number, got {value!r}")


def check_lr(lr: Any) -> None:
    """Raise for a learning rate that is no number, nor a tensor of one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_numbers(lr=lr)


# Options that must be at least 0, and their names in messages.
_NOT_NEGATIVE = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "alpha": "alpha value",
    "rho": "rho value",
    "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
    "momentum_decay": "momentum_decay value",
}


def options_of(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    """Return an optimizer's options, checked.

    Parameters
    ----------
    arguments : dict
        What ``locals()`` is in the optimizer's constructor.
    names : str
        Of the options, in the order in which PyTorch saves them, with spaces between.

    Raises
    ------
    TypeError
        An option is not a number.
    ValueError
        An option is negative, or ``lr`` is a tensor of several elements.
    RuntimeError
        ``fused`` is set together with ``foreach`` or ``differentiable``, which PyTorch refuses.
    """
    options = {name: arguments[name] for name in names.split()}
    check_lr(options["lr"])
    for name, called in _NOT_NEGATIVE.items():
        if name in options:
            check_numbers(**{name: options[name]})
            if not options[name] >= 0:
                raise ValueError(f"Invalid {called}: {options[name]}")
    if options.get("differentiable") and options.get("fused"):
        raise RuntimeError("`fused` does not support `differentiable`")
    if options.get("foreach") and options.get("fused"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    return options


def checked_betas(betas: tuple[Any, Any], differentiable: bool = False) -> tuple[Any, Any]:
    """Return Adam's two decay rates as floats; as they are where steps are recorded.

    Raises
    ------
    TypeError, ValueError
        They are not two numbers from 0 to below 1.
    """
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
    first, second = betas if differentiable else (float(beta) for beta in betas)
    return first, second
