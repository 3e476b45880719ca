"""How functions check what they are given and call the engine, in PyTorch's kinds of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor, legacy_name
from convcore.functions.quiet import quiet


def computed(function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``; what the engine finds wrong with a value is a RuntimeError.

    Infinities and NaN pass without NumPy's warnings.
    """
    try:
        return quiet(function, *args)
    except ValueError as error:
        raise RuntimeError(str(error)) from None


def check_tensor(function: str, input: Any) -> None:
    """Raise TypeError unless a function's first argument is a tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{function}(): argument 'input' (position 1) must be Tensor, "
            f"not {type(input).__name__}"
        )


def check_tensors(function: str, input: Any, other: Any) -> None:
    """Raise TypeError unless both arguments of a function of two tensors are tensors."""
    check_tensor(function, input)
    if not isinstance(other, Tensor):
        raise TypeError(
            f"{function}(): argument 'other' (position 2) must be Tensor, "
            f"not {type(other).__name__}"
        )


def check_kind(kernel: str, input: Tensor, kinds: str) -> None:
    """Raise NotImplementedError unless the dtype is of one of NumPy's kinds, such as 'fc'."""
    dtype = input._array.dtype
    if dtype.kind not in kinds:
        name = legacy_name(dtype).removeprefix("torch.").removesuffix("Tensor")
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{name}'")
