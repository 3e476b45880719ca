"""Parameters of distributions: broadcasting, probabilities and logits, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import ones, zeros
from convcore._tensor.dtypes import get_default_dtype
from convcore.autograd.grad_mode import enable_grad
from convcore.functions.elementwise.elementwise import sigmoid
from convcore.functions.elementwise.special import logit
from convcore.functions.normalization.softmax import softmax
from convcore.functions.shapes.broadcast import broadcast_tensors
from convcore.random import normal

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return numbers and tensors as tensors of one shape; numbers get the tensors' dtype.

    Raises
    ------
    ValueError
        A value is neither.
    """
    if not all(isinstance(value, Tensor | Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, "
            "torch.Tensor or objects implementing __torch_function__."
        )
    known = [value for value in values if isinstance(value, Tensor)]
    dtype = known[0]._array.dtype if known else get_default_dtype().numpy
    tensors = (x if isinstance(x, Tensor) else wrap(np.asarray(x, dtype)) for x in values)
    return broadcast_tensors(*tensors)


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Draw standard normal numbers in the dtype of a tensor."""
    shape = tuple(shape)
    return normal(zeros(shape, dtype=like.dtype), ones(shape, dtype=like.dtype))


def finfo(tensor: Tensor) -> np.finfo:
    """Return the limits of a tensor's dtype."""
    return np.finfo(tensor._array.dtype)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities kept eps away from 0 and 1."""
    eps = float(finfo(probs).eps)
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities of log-odds, or of unnormalised log-probabilities (last axis)."""
    return sigmoid(logits) if is_binary else softmax(logits, -1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return log-odds, or log-probabilities, of probabilities kept eps away from 0 and 1."""
    clamped = clamp_probs(probs)
    return logit(clamped) if is_binary else clamped.log()


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return the sum over so many last axes."""
    return value.sum(tuple(range(-dims, 0))) if dims > 0 else value


class lazy_property:
    """A property that is computed once, with gradients, and then an attribute."""

    def __init__(self, wrapped: Callable):
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def exactly_one(probs: Any, logits: Any) -> bool:
    """Return whether probabilities are given, and not logits.

    Raises
    ------
    ValueError
        Both are given, or none.
    """
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None
