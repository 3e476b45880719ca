"""Gradient clipping: gradient-norm clipping over all parameters, and clipping by value.

All functions take a Tensor or an iterable of them; parameters without a gradient are skipped.
PyTorch's ``foreach`` chooses between two ways of computing the same, and is ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import GeneratorType

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments, typename
from convcore._tensor import Tensor, creation
from convcore.autograd.grad_mode import no_grad
from convcore.engine.layers.optimizers import clip_grad
from convcore.functions._support.arguments import number
from convcore.functions.reductions.reduce import norm
from convcore.functions.shapes.joining import stack

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

# Added to the norm, which may be zero, before dividing by it.
_TINY = 1e-6


def _listed(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    try:
        return [tensors] if isinstance(tensors, Tensor) else list(tensors)
    except TypeError as error:
        if hasattr(tensors, "parameters"):
            hinted(error, hints.not_parameters(tensors))
        raise


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """Return the gradients of those parameters that have one."""
    try:
        grads = [parameter.grad for parameter in _listed(parameters)]
    except AttributeError as error:
        if hasattr(error.obj, "parameters"):  # a module, or one of those that it iterates over
            hinted(error, hints.not_parameters(error.obj))
        raise
    return [grad for grad in grads if grad is not None]


@names_arguments
@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the global norm of tensors: the norm of all their elements as one vector.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensors
    norm_type : number
        As in `norm`: 2 is the Euclidean norm, inf the largest absolute value.
    error_if_nonfinite : bool
        Whether to raise if the norm is infinite or NaN.

    Returns
    -------
    Tensor without axes; zero if there are no tensors

    Raises
    ------
    RuntimeError
        As ``error_if_nonfinite`` asks.
    """
    is_text = norm_type == "inf"  # which PyTorch takes as well
    order = float(norm_type if is_text else number("get_total_norm", "norm_type", norm_type))
    given = _listed(tensors)
    if not given:
        return creation.tensor(0.0)
    arrays = [tensor._array for tensor in given]
    if order == 2 and clip_grad.has_kernel(arrays):
        total = creation.tensor(clip_grad.global_norm(arrays), dtype=given[0].dtype)
    else:
        total = norm(stack([norm(tensor, order) for tensor in given]), order)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it "
            "cannot be clipped. To disable this error and scale the gradients by the non-finite "
            "norm anyway, set `error_if_nonfinite=False`"
        )
    return total


@names_arguments
@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    total_norm: Tensor,
    foreach: bool | None = None,
) -> None:
    """Gradient-norm clipping with a given norm: scale by min(1, max_norm / total_norm) in place.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensors
    max_norm : number
    total_norm : Tensor
        The result of `get_total_norm`.
    """
    if not isinstance(total_norm, Tensor):
        raise TypeError(
            "clip_grads_with_norm_(): argument 'total_norm' (position 3) must be Tensor, not "
            f"{typename(total_norm)}"
        )
    factor = (float(max_norm) / (total_norm + _TINY)).clamp(max=1.0)
    for grad in _grads(parameters):
        if not clip_grad.has_kernel([grad._array]):
            grad.mul_(factor)
        elif factor.item() != 1:  # most often the norm is below the bound
            clip_grad.scale(grad._array, factor.item())
            grad._counter[0] += 1


@names_arguments
@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Gradient-norm clipping: scale gradients in place to a global norm of at most ``max_norm``.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensors
    max_norm : number
    norm_type, error_if_nonfinite
        As for `get_total_norm`, which computes the norm.

    Returns
    -------
    Tensor
        The norm before clipping.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x / 2).sum().backward()
    >>> clip_grad_norm_(x, max_norm=1.0), x.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    given = _listed(parameters)
    if isinstance(parameters, GeneratorType) and not given:
        warnings.warn(
            "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3
        )
    total = get_total_norm(_grads(given), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(given, max_norm, total)
    return total


@names_arguments
@no_grad()
def clip_grad_value_(
    parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None
) -> None:
    """Clip each element of the gradients in place to [-clip_value, clip_value].

    Parameters
    ----------
    parameters : Tensor or iterable of Tensors
    clip_value : number
    """
    bound = float(number("clip_grad_value_", "clip_value", clip_value))
    for grad in _grads(parameters):
        if bound >= 0 and clip_grad.has_kernel([grad._array]):
            clip_grad.clip(grad._array, bound)
            grad._counter[0] += 1
        else:
            grad.clamp_(-bound, bound)
