"""The in-place form of a function: exp_ from exp."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from convcore._errors.calls import UNNAMED, explained
from convcore._tensor import Tensor
from convcore.autograd.views import inplace
from convcore.functions._support.arguments import check_tensor

__all__: list[str] = []


def in_place(function: Callable) -> Callable:
    """Return the method that replaces a tensor by ``function`` of it and of further arguments."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(self, Tensor):  # as a function of the namespace, such as nn.functional
            check_tensor(method.__name__, self)
        try:
            return inplace(self, function, *args, **kwargs)
        except UNNAMED as error:
            better = explained(method.__name__, function, error, (self, *args), kwargs)
            if better is error:
                raise
        raise better

    method.__name__ = method.__qualname__ = f"{function.__name__}_"
    method.__wrapped__ = function  # type: ignore[attr-defined]  # help() shows its arguments
    method.__doc__ = f"Replace the tensor, in place, by `{function.__name__}` of it."
    return method


def in_place_methods(*functions: Callable) -> dict[str, Callable]:
    """Return the in-place forms of functions by their names, such as 'exp_'."""
    return {f"{function.__name__}_": in_place(function) for function in functions}


def forward_only(name: str, function: Callable) -> Callable:
    """Return an activation whose result does not tell the sign of its input: it has no backward."""

    def refuse(*args: Any) -> None:
        raise RuntimeError(
            f"In-place {name} backward calculation is triggered with a negative slope which is not "
            "supported. This is caused by calling in-place forward function with a negative slope, "
            "please call out-of-place version instead."
        )

    def forward(*args: Any) -> Tensor:
        out = function(*args)
        if out._grad_fn is not None:
            out._grad_fn._backward = refuse
        return out

    return forward


def older_order(name: str, value: Any, tensor1: Tensor, tensor2: Tensor) -> tuple:
    """Return the arguments of `addcmul` and the like, given in the order of older PyTorch."""
    warnings.warn(
        f"This overload of {name} is deprecated: {name}(input, value, tensor1, tensor2); "
        f"consider {name}(input, tensor1, tensor2, *, value=value)",
        stacklevel=4,
    )
    return value, tensor1, tensor2
