"""Checks of convolutions' arguments: PyTorch's errors, in its order, each with a hint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import typename
from convcore._tensor import Tensor, scalar_name
from convcore._tensor.dtype_names import C_NAMES
from convcore.autograd.casting import here
from convcore.engine.geometry import Steps, is_sequence
from convcore.engine.integers import is_int

_AXES = ("depth", "height", "width")


class ConvError(RuntimeError):
    """The engine rejects the arguments; never raised for an error in a user's hook.

    Forward, `conv_error` is raised in its place.  Backward, users see it, where a gradient does not
    have the shape or the dtype of the output.

    Attributes
    ----------
    cause : TypeError or ValueError
    """

    def __init__(self, cause: Exception):
        super().__init__(f"backward of a convolution: {cause}")
        self.cause = cause


def check_operands(
    function: str,
    rank: int,
    input: Any,
    weight: Any,
    bias: Any,
    steps: Steps,
    output_padding: Any = None,
) -> None:
    """Raise unless the operands are tensors with the numbers of axes of a convolution.

    function : 'conv' or 'conv_transpose', of which there is one for each rank
    """
    if (
        isinstance(input, Tensor)
        and isinstance(weight, Tensor)
        and (bias is None or isinstance(bias, Tensor))
        and weight._array.ndim == rank + 2
        and rank < input._array.ndim <= rank + 2
        # autocast alone leaves weights beside pixels of bfloat16 as they are
        and (input._array.dtype.char != "E" or weight._array.dtype.char == "E" or here.inside)
    ):
        return
    cause = TypeError("input, weight and bias must be tensors of the same dtype")
    raise conv_error(f"{function}{rank}d", cause, input, weight, bias, steps, output_padding)


def conv_error(
    function: str,
    cause: Exception,
    input: Any,
    weight: Any,
    bias: Any,
    steps: Steps,
    output_padding: Any = None,
) -> Exception:
    """Return the error of a convolution that was refused.

    Parameters
    ----------
    function : 'conv2d', 'conv_transpose2d', ...
    cause : why; used where PyTorch has no text of its own
    input, weight, bias, steps, output_padding : the call's arguments
    """
    given = steps._asdict() | ({} if output_padding is None else {"output_padding": output_padding})
    for name, value in given.items():
        values = value if isinstance(value, tuple | list) else (value,)
        if not isinstance(value, str) and not all(map(is_int, values)):
            return TypeError(f"{function}(): argument '{name}' must be ints, not {typename(value)}")
    mistaken = cause if isinstance(cause, TypeError) else RuntimeError(str(cause))
    error = next(_errors(function, input, weight, bias, given), mistaken)
    return hinted(error, _hint(function, input, weight, steps.groups))


def _hint(function: str, input: Any, weight: Any, groups: int) -> str:
    for value in (input, weight):
        if not isinstance(value, Tensor):
            return hints.not_a_tensor(value)
    x, w, rank = input._array, weight._array, int(function[-2])
    if x.dtype != w.dtype:
        return hints.other_dtype(x.dtype.name, w.dtype.name)
    if w.ndim != rank + 2:
        order = "C_in, C_out/groups" if "transpose" in function else "C_out, C_in/groups"
        return (
            f"weight has {w.ndim} axes, its shape is {list(w.shape)}, and {function} takes "
            f"{rank + 2}: ({order}, {', '.join(_AXES[-rank:])})"
        )
    channels = w.shape[0] if "transpose" in function else w.shape[1] * groups
    if x.ndim not in (rank + 1, rank + 2):
        return hints.conv_rank(x.shape, rank, channels)
    if x.shape[-rank - 1] == channels:
        return ""
    return hints.conv_input(x.shape, rank, channels, input.grad_fn is None)


def _errors(
    function: str, input: Any, weight: Any, bias: Any, steps: dict[str, Any]
) -> Iterator[Exception]:
    """Yield every error that is found, in the order in which PyTorch looks for them."""
    given = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    for position, (name, value) in enumerate(given.items(), 1):
        if not isinstance(value, Tensor):
            yield TypeError(
                f"{function}(): argument '{name}' (position {position}) must be Tensor, "
                f"not {typename(value)}"
            )
    texts = _texts(
        function, input._array, weight._array, None if bias is None else bias._array, steps
    )
    yield from map(RuntimeError, texts)
    if _name(input._array) == "Bool":
        yield NotImplementedError(f"\"slow_{function}_cpu\" not implemented for 'Bool'")


def _texts(
    function: str, x: np.ndarray, w: np.ndarray, b: np.ndarray | None, steps: dict[str, Any]
) -> Iterator[str]:
    rank = int(function[-2])
    if x.ndim not in (rank + 1, rank + 2):
        yield (
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {function}, "
            f"but got input of size: {list(x.shape)}"
        )
    if b is not None and b.dtype != x.dtype:
        yield (
            f"Input type ({C_NAMES[x.dtype.name]}) and bias type ({C_NAMES[b.dtype.name]}) "
            "should be the same"
        )
    if w.ndim < 3:
        yield "weight should have at least three dimensions"
    yield from _step_texts(rank, w.ndim - 2, steps)
    if w.ndim != rank + 2:
        batch = list(x.shape) if x.ndim == rank + 2 else [1, *x.shape]
        yield (
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight "
            f"{list(w.shape)}, but got {rank + 2}-dimensional input of size {batch} instead"
        )
    transposed = "transpose" in function
    channels = w.shape[1] * steps["groups"] if transposed else w.shape[0]
    if b is not None and b.shape != (channels,):
        yield (
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(w.shape)}, "
            f"expected bias to be 1-dimensional with {channels} elements, "
            f"but got bias of size {list(b.shape)} instead"
        )
    if x.dtype != w.dtype:
        yield f"expected scalar type {_name(x)} but found {_name(w)}"


def _step_texts(rank: int, expected: int, steps: dict[str, Any]) -> Iterator[str]:
    """Tell of parameters out of their ranges; of those that are no ints, something else does."""
    values = {}
    for name, value in steps.items():
        ints = list(value) if is_sequence(value) else [value] * rank
        if name == "groups" or not all(hasattr(one, "__index__") for one in ints):
            continue
        if len(ints) not in (1, expected):
            yield (
                f"expected {name} to be a single integer value or a list of {expected} values to "
                f"match the convolution dimensions, but got {name}={ints}"
            )
        values[name] = ints
    for name, ints in values.items():
        if name in ("padding", "output_padding") and min(ints) < 0:
            yield f"negative {name} is not supported"
        if name == "stride" and min(ints) < 1:
            yield "non-positive stride is not supported"
        if name == "dilation" and min(ints) < 1:
            yield f"dilation should be greater than zero, but got {ints}"
    if steps["padding"] not in ("same", "valid") and isinstance(steps["padding"], str):
        yield f"Invalid padding string: '{steps['padding']}'"
    if {"output_padding", "stride", "dilation"} <= values.keys():
        yield from _output_padding_texts(values)


def _output_padding_texts(values: dict[str, list[int]]) -> Iterator[str]:
    names = ("output_padding", "stride", "dilation")
    extras, strides, dilations = (values[name] for name in names)
    if any(e >= s and e >= d for e, s, d in zip(extras, strides, dilations, strict=False)):
        got = [
            f"{name}_{axis}: {value}"
            for name in names
            for axis, value in zip(_AXES[-len(values[name]) :], values[name], strict=True)
        ]
        yield (
            "output padding must be smaller than either stride or dilation, but got "
            + " ".join(got)
        )


def _name(array: np.ndarray) -> str:
    return scalar_name(array.dtype)
