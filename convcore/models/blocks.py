"""What the nets share: the library that they are built with, fused batch norm, initial values."""

from __future__ import annotations

import functools
from typing import Any

import convcore
from convcore import nn
from convcore._errors.hints import NO_DOWNLOAD
from convcore._tensor import Tensor
from convcore.functions.normalization.normalization import batch_norm_activation
from convcore.nn.modules._hooks import fused_listeners

# What `batch_norm_activation` knows, by the modules that do it.
_ACTIVATIONS = {nn.ReLU: "relu", nn.ReLU6: "relu6"}


class Module(nn.Module):
    """A module that makes its layers of ``library.nn``.

    A subclass initializes itself with ``self.library.nn.Module.__init__(self)`` in place of
    ``super().__init__()``, so that `built_with` can give it another library's base class.
    """

    library: Any = convcore
    """convcore, or another library with PyTorch's names."""


class Sequential(nn.Sequential):
    """A Sequential that makes its layers of ``library.nn``, as `Module` does."""

    library: Any = convcore


@functools.cache
def built_with(cls: Any, library: Any) -> Any:
    """Return a class of nets or blocks for another library: the same methods on its modules.

    Parameters
    ----------
    cls : type
        A subclass of `Module` or `Sequential`. A class that is the library's already is returned
        as it is.
    library : module
        convcore, or a library with PyTorch's names, such as torch.

    Examples
    --------
    >>> built_with(Module, convcore) is Module
    True
    """
    if issubclass(cls, library.nn.Module):
        return cls
    if cls in (nn.Module, nn.Sequential):
        return getattr(library.nn, cls.__name__)
    bases = tuple(built_with(base, library) for base in cls.__bases__)
    members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    return type(cls.__name__, bases, {**members, "library": library})


def normalized(norm: Any, activation: Any, x: Tensor, residual: Tensor | None = None) -> Tensor:
    """Return activation(norm(x) + residual), without what is None.

    convcore's batch norm and ReLU run as one fused function, unless a hook has to see them alone.
    """
    if type(norm) is nn.BatchNorm2d and type(activation) in _ACTIVATIONS:
        listeners = fused_listeners(norm, activation)
        if listeners is not None:
            kind = _ACTIVATIONS[type(activation)]
            result = norm._by(batch_norm_activation, x, residual, kind)
            for listener in listeners:
                listener.tell(norm, activation, x, residual, result)
            return result
    x = norm(x)
    if residual is not None:
        x = x + residual
    return x if activation is None else activation(x)


class NormalizedSequential(Sequential):
    """A Sequential that fuses each of convcore's batch norms with the ReLU after it."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the layers' output, one after the other."""
        layers = iter(self)
        for layer in layers:
            if isinstance(layer, nn.BatchNorm2d):
                input = normalized(layer, next(layers, None), input)
            else:
                input = layer(input)
        return input

    def _get_name(self) -> str:
        return "Sequential"  # printed as torchvision's


def init_weights(net: Any, linear_std: float | None = None) -> None:
    """Give every layer of a net torchvision's initial values.

    Convolutions: normal, of variance 2 / (C_out * KH * KW), and zero biases. Normalisations: 1 and
    0. Linear layers: normal with ``linear_std`` and zero biases, or unchanged if that is None.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015, section 2.2.
    """
    nn = net.library.nn
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
    """Return the multiple of ``divisor`` nearest to ``channels``, not below 9/10 of it."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


def check_weights(weights: Any, options: dict[str, Any]) -> None:
    """Raise ValueError if pretrained weights are asked for: nothing is downloaded.

    ``pretrained``, the older word for it, and ``progress``, of a download, are taken out of the
    options.
    """
    options.pop("progress", None)
    if weights:
        raise ValueError(f"weights must be None, got {weights!r}: {NO_DOWNLOAD}")
    if options.pop("pretrained", False):
        raise ValueError(f"pretrained must be False, got True: {NO_DOWNLOAD}")
