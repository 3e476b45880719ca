"""Checks of arguments, and calls of the engine, that raise PyTorch's kinds of errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from convcore._errors import hinted, hints
from convcore._errors.calls import typename
from convcore._tensor import Tensor, scalar_name
from convcore._tensor.creation.arguments import checked_number
from convcore._tensor.dtypes import common
from convcore.autograd.grad_mode import mode
from convcore.engine.integers import as_int, as_ints, is_int
from convcore.functions._support.errstate import ignore_errstate


def computed(function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``; what the engine finds wrong with a value is a RuntimeError.

    Infinities and NaN pass without NumPy's warnings.
    """
    try:
        return ignore_errstate(function, *args)
    except ValueError as error:
        raise RuntimeError(str(error)) from None


def check_tensor(function: str, input: Any) -> None:
    """Raise TypeError unless a function's first argument is a tensor."""
    if not isinstance(input, Tensor):
        check_arguments(function, input=input)


def check_tensors(function: str, input: Any, other: Any) -> None:
    """Raise TypeError unless both arguments of a function of two tensors are tensors."""
    check_arguments(function, input=input, other=other)


def check_arguments(function: str, **given: Any) -> None:
    """Raise TypeError unless a function's first arguments, given by their names, are tensors."""
    for position, (name, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            raise hinted(
                TypeError(
                    f"{function}(): argument '{name}' (position {position}) must be Tensor, "
                    f"not {typename(value)}"
                ),
                hints.not_a_tensor(value),
            )


def check_optional(function: str, **given: Any) -> None:
    """Raise TypeError unless arguments, given by their names, are tensors or None."""
    for name, value in given.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"{function}(): argument '{name}' must be Tensor, not {typename(value)}"
            )


def ints(function: str, name: str, first: Any, more: tuple = ()) -> tuple[int, ...]:
    """Return an argument's ints, given one by one or as one sequence.

    Raises
    ------
    TypeError
        Something else is given.
    """
    is_sequence = isinstance(first, tuple | list)
    if is_sequence and more:
        raise TypeError(
            f"{function}(): argument '{name}' must be ints or one tuple of ints, got "
            f"{(first, *more)}"
        )
    given = first if is_sequence else (first, *more)
    try:
        return tuple([number if number.__class__ is int else as_int(number) for number in given])
    except TypeError:
        pass
    try:
        return as_ints(given)  # bools behind the first
    except TypeError:
        raise _no_ints(function, name, given, is_sequence or bool(more)) from None


def _no_ints(function: str, name: str, given: Sequence[Any], several: bool) -> TypeError:
    place, wrong = next((n, one) for n, one in enumerate(given) if not is_int(one))
    what = f"but found element of type {typename(wrong)} at pos {place}"
    what = what if several else f"not {typename(wrong)}"
    return TypeError(f"{function}(): argument '{name}' must be tuple of ints, {what}")


def number(function: str, name: str, value: Any) -> Any:
    """Return an argument that must be a real number, or a tensor without axes, as a number."""
    return checked_number(function, value, name, real=True)


def refuse_gradients(function: str, **given: Any) -> None:
    """Raise where arguments are no tensors, or a gradient is wanted for which there is none."""
    check_optional(function, **given)
    for name, value in given.items():
        if value is not None and mode.enabled and value.requires_grad:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )


def refuse_complex(what: str, *inputs: Tensor, error: type = RuntimeError) -> None:
    """Raise where a tensor is complex: complex numbers have no order."""
    for one in inputs:
        if one._array.dtype.kind == "c":
            raise error(what)


def check_kind(kernel: str, input: Tensor, kinds: str, other: Tensor | None = None) -> None:
    """Raise NotImplementedError unless the dtype is of one of NumPy's kinds, such as 'fc'.

    Of two tensors it is their common dtype.
    """
    dtype = input._array.dtype if other is None else common(input._array, other._array)
    if dtype.kind not in kinds:
        raise hinted(
            NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'"),
            hints.FLOATS if "f" in kinds and dtype.kind in "iub" else "",
        )
