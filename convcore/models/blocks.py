"""What the nets share: normalisation with what follows it, and first values."""

from __future__ import annotations

from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.functions.normalization import batch_norm_activation
from convcore.nn.modules._hooks import is_watched

__all__ = ["NormalizedSequential", "check_weights", "divisible", "init_weights", "normalized"]


# What `batch_norm_activation` knows, by the modules that do it.
_ACTIVATIONS = {nn.ReLU: "relu", nn.ReLU6: "relu6", type(None): None}


def normalized(
    norm: nn.Module, activation: nn.Module | None, x: Tensor, residual: Tensor | None = None
) -> Tensor:
    """Return activation(norm(x) + residual), without what is None.

    Batch norm and ReLU are one function, unless a hook wants to see what is between them.
    """
    if (
        type(norm) is nn.BatchNorm2d
        and type(activation) in _ACTIVATIONS
        and not is_watched(norm)
        and (activation is None or not is_watched(activation))
    ):
        return norm._by(batch_norm_activation, x, residual, _ACTIVATIONS[type(activation)])
    x = norm(x)
    if residual is not None:
        x = x + residual
    return x if activation is None else activation(x)


class NormalizedSequential(nn.Sequential):
    """A Sequential in which batch norms and the ReLUs after them are one function."""

    def forward(self, input: Tensor) -> Tensor:
        """Return what the last layer makes of what the others made of ``input``."""
        layers = iter(self)
        for layer in layers:
            if isinstance(layer, nn.BatchNorm2d):
                input = normalized(layer, next(layers, None), input)
            else:
                input = layer(input)
        return input

    def _get_name(self) -> str:
        return "Sequential"  # as those who know the nets expect it printed


def init_weights(net: nn.Module, linear_std: float | None = None) -> None:
    """Give every layer of a net the first values that torchvision gives it.

    Convolutions: normal, of variance 2 / (C_out * KH * KW), and zero biases. Normalisations: 1 and
    0. Linear layers: normal with ``linear_std`` and zero biases, or as they are if that is None.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015, section 2.2.
    """
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            module.reset_parameters()
        elif isinstance(module, nn.Linear) and linear_std is not None:
            nn.init.normal_(module.weight, 0, linear_std)
            nn.init.zeros_(module.bias)


def divisible(channels: float, divisor: int) -> int:
    """Return the multiple of ``divisor`` next to ``channels``, not below 9/10 of it."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


def check_weights(weights: Any) -> None:
    """Raise ValueError if weights are asked for: there is nothing to download them from."""
    if weights is not None:
        raise ValueError(
            f"weights must be None, got {weights!r}: nothing is downloaded; give what "
            "convcore.load reads of a checkpoint to load_state_dict"
        )
