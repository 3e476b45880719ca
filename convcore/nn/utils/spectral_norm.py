"""Spectral normalization by a forward pre-hook: PyTorch's older form."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter, refuse_lazy
from convcore.nn.utils._norms import (
    as_matrix,
    check_iterations,
    default_dim,
    drawn_vector,
    hook_key,
    largest_singular_value,
    left_vector,
    pre_hook_key,
    right_vector,
)

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The hook that divides a weight by its largest singular value before each forward pass."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        check_iterations(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight, recorded, after improving the singular vectors if asked to."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{side}") for side in "uv")
        matrix = as_matrix(weight, self.dim)
        with no_grad():
            for _ in range(self.n_power_iterations if do_power_iteration else 0):
                v.copy_(right_vector(matrix, u, self.eps))
                u.copy_(left_vector(matrix, v, self.eps))
        return weight / largest_singular_value(matrix, u, v)

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the weight anew; in training, with better singular vectors."""
        setattr(module, self.name, self.compute_weight(module, module.training))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Replace a module's weight by the original and singular vectors; register the hook."""
        if pre_hook_key(module, SpectralNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        refuse_lazy(weight, "SpectralNorm", "spectral normalization")
        rows, columns = as_matrix(weight.detach(), dim).shape
        u, v = (drawn_vector(weight.detach(), size, eps) for size in (rows, columns))
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.detach())  # so that it can be looked at before the first call
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(_Version(name))
        return made


class _Version:
    """The hook that notes in a saved state which form the normalization's entries have."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[f"{self.name}.version"] = SpectralNorm._version


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
        Changed and returned. It gets the parameter "weight_orig" and the buffers "weight_u" and
        "weight_v".
    name : str
    n_power_iterations : int
        Iterations a forward pass in training.
    eps : float
        Lower bound of norms.
    dim : int, optional
        The axis of the output channels; 1 for transposed convolutions, else 0.

    Raises
    ------
    ValueError
        There are no iterations.
    RuntimeError
        The weight is normalized already.

    References
    ----------
    T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, "Spectral normalization for generative adversarial
    networks", ICLR 2018.
    """
    dim = default_dim(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`: make the weight a parameter again, with its present value.

    Raises
    ------
    ValueError
        The weight is not normalized.
    """
    key = pre_hook_key(module, SpectralNorm, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    module._forward_pre_hooks[key].remove(module)
    del module._forward_pre_hooks[key]
    saving = hook_key(module._state_dict_hooks, _Version, name)
    if saving is not None:
        del module._state_dict_hooks[saving]
    return module
