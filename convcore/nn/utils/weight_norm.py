"""Weight normalization by a forward pre-hook: PyTorch's older form."""

from __future__ import annotations

import warnings
from typing import Any

from convcore._tensor import Tensor
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter, refuse_lazy
from convcore.nn.utils._norms import norm_except_dim, pre_hook_key, weight_normed

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook that computes a weight from its length and direction before each forward pass."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """Return the weight, recorded."""
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return weight_normed(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a module's weight by its length and direction, and register the hook."""
        if pre_hook_key(module, WeightNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
        made = WeightNorm(name, dim)
        weight: Tensor = getattr(module, name)
        refuse_lazy(weight, "WeightNorm", "weight normalization")
        del module._parameters[name]
        length = norm_except_dim(weight, made.dim).detach()
        module.register_parameter(f"{name}_g", Parameter(length))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the weight anew."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train a weight by its length "weight_g" and direction "weight_v"; deprecated in PyTorch.

    Parameters
    ----------
    module : Module
        Changed and returned.
    name : str
    dim : int or None
        The axis that has a length for each index; None is one length for all.

    Raises
    ------
    RuntimeError
        The weight is normalized already.

    References
    ----------
    T. Salimans, D. P. Kingma, "Weight normalization: a simple reparameterization to accelerate
    training of deep neural networks", NeurIPS 2016.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`: make the weight a parameter again.

    Raises
    ------
    ValueError
        The weight is not normalized.
    """
    key = pre_hook_key(module, WeightNorm, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    module._forward_pre_hooks[key].remove(module)
    del module._forward_pre_hooks[key]
    return module
