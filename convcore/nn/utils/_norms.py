"""What weight and spectral normalization are computed from, in both of their forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.functions._support.axes import wrap_dim
from convcore.functions.products.matmul import dot, mv
from convcore.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from convcore.nn.modules.module import Module


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Return the Euclidean norm over all axes but one; over all for None or -1."""
    if dim is None or dim == -1:
        return v.norm()
    others = [axis for axis in range(v.dim()) if axis != wrap_dim(dim, v.dim())]
    return v.norm(2, others, keepdim=True) if others else v.abs()


def weight_normed(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """Return the direction ``v`` with the lengths ``g``."""
    return v * (g / norm_except_dim(v, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix whose rows are along axis ``dim``."""
    if dim:
        others = [axis for axis in range(weight.dim()) if axis != dim]
        weight = weight.permute(dim, *others)
    return weight.reshape(weight.shape[0], -1)


def default_dim(module: Module) -> int:
    """Return the axis of a module's weight that has its output channels."""
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def unit_vector(v: Tensor, eps: float) -> Tensor:
    """Return a vector divided by its norm, or by ``eps`` if that is larger."""
    return v / v.norm().clamp(min=eps)


@no_grad()
def left_vector(matrix: Tensor, v: Tensor, eps: float) -> Tensor:
    """Return the normalized product of a matrix and a right singular vector's estimate."""
    return unit_vector(mv(matrix, v), eps)


@no_grad()
def right_vector(matrix: Tensor, u: Tensor, eps: float) -> Tensor:
    """Return the normalized product of the adjoint of a matrix and a left vector's estimate."""
    return unit_vector(mv(matrix.t().conj(), u), eps)


def largest_singular_value(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Return the estimate u^H W v, differentiable by the matrix."""
    return dot(u.clone().conj(), mv(matrix, v.clone()))


def check_iterations(n_power_iterations: int) -> None:
    """Raise ValueError unless there is an iteration."""
    if n_power_iterations <= 0:
        raise ValueError(
            "Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}"
        )


def pre_hook_key(module: Any, kind: type[Any], name: str) -> int | None:
    """Return the key of a normalization's hook before a module's forward; None if there is none.

    Raises
    ------
    TypeError
        It is no module.
    """
    if not isinstance(module, Module):
        raise TypeError(f"argument 'module' must be Module, not {type(module).__name__}")
    return hook_key(module._forward_pre_hooks, kind, name)


def hook_key(hooks: Mapping[int, Any], kind: type[Any], name: str) -> int | None:
    """Return the key of a normalization's hook among some; None if there is none."""
    found = (key for key, one in hooks.items() if isinstance(one, kind) and one.name == name)
    return next(found, None)


@no_grad()
def drawn_vector(weight: Tensor, size: int, eps: float) -> Tensor:
    """Return a normalized vector of normal random numbers."""
    return unit_vector(weight.new_empty(size).normal_(0, 1), eps)
