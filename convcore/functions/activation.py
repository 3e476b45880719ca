"""The functions that stand between layers: relu and its relatives, softmax, dropout."""

from __future__ import annotations

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.autograd.views import write
from convcore.functions.piecewise import masked

__all__ = ["relu", "relu_"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return each element, and 0 where it is negative.

    Parameters
    ----------
    input : Tensor
    inplace : bool
        Replace the tensor's own elements and return it.

    Notes
    -----
    Backward needs the result alone.
    """
    if inplace:
        return relu_(input)
    array = input._array
    value = np.maximum(array, array.dtype.type(0))
    out = wrap(value if value.__class__ is np.ndarray else np.asarray(value))
    if mode.enabled:
        record("ReluBackward0", (input,), out, _relu_backward, (out,))
    return out


def relu_(input: Tensor) -> Tensor:
    """Replace the negative elements by 0, in place."""
    return write(input, _clip_at_zero, "ReluBackward0", (input,), _relu_backward, (input,))


def _clip_at_zero(array: np.ndarray) -> None:
    np.maximum(array, array.dtype.type(0), out=array)


def _relu_backward(needs: tuple[bool, ...], grad: Tensor, y: Tensor) -> Tensor:
    return masked(grad, ~(y._array <= 0))


METHODS = {"relu": relu, "relu_": relu_}
