"""Weight and spectral normalization as parametrizations."""

from __future__ import annotations

from typing import Any

from convcore._errors import names as _names
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.nn.modules.module import Module
from convcore.nn.utils._norms import (
    as_matrix,
    check_iterations,
    default_dim,
    drawn_vector,
    largest_singular_value,
    left_vector,
    norm_except_dim,
    right_vector,
    unit_vector,
    weight_normed,
)
from convcore.nn.utils.parametrize import register_parametrization

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight by its length, ``original0``, and its direction, ``original1``.

    Parameters
    ----------
    module : Module
        Changed and returned.
    name : str
    dim : int or None
        The axis that has a length for each index; None is one length for all.

    Notes
    -----
    States of the older `convcore.nn.utils.weight_norm` load too.

    References
    ----------
    T. Salimans, D. P. Kingma, "Weight normalization: a simple reparameterization to accelerate
    training of deep neural networks", NeurIPS 2016.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict, prefix: str, *args: Any) -> None:
        for old, new in (("g", "original0"), ("v", "original1")):
            if f"{prefix}{name}_{old}" in state_dict:
                value = state_dict.pop(f"{prefix}{name}_{old}")
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = value

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        if not -weight.dim() <= dim < weight.dim():
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[-{weight.dim()}, {weight.dim() - 1}] but got {dim})"
            )
        check_iterations(n_power_iterations)
        self.dim = dim % weight.dim()
        self.eps = eps
        if weight.dim() > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                self.register_buffer(name, drawn_vector(matrix, size, eps))
            self._iterate(matrix, 15)

    @no_grad()
    def _iterate(self, matrix: Tensor, count: int) -> None:
        """Improve the singular vectors by power iterations."""
        for _ in range(count):
            self._u.copy_(left_vector(matrix, self._v, self.eps))
            self._v.copy_(right_vector(matrix, self._u, self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return unit_vector(weight, self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / largest_singular_value(matrix, self._u, self._v)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def _tensor_of(module: Module, name: str) -> Tensor:
    """Return a module's parameter or buffer."""
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iterations.

    Parameters
    ----------
    module : Module
        Changed and returned.
    name : str
    n_power_iterations : int
        Iterations each time the weight is read in training.
    eps : float
        Lower bound of norms.
    dim : int, optional
        The axis of the output channels; 1 for transposed convolutions, else 0.

    Raises
    ------
    ValueError
        The module has no such parameter or buffer, or there are no iterations.

    References
    ----------
    T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, "Spectral normalization for generative adversarial
    networks", ICLR 2018.
    """
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    norm = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, norm)


_names.explain_names(__name__)
