"""Linear (fully connected) and Identity layers."""

from __future__ import annotations

import math
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["Identity", "Linear"]


class Identity(Module):
    """Return the input unchanged: a placeholder for a layer that is taken out of a network.

    Arguments of any kind are accepted and ignored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input``."""
        return input


class Linear(Module):
    """Fully connected layer: input @ weight^T + bias, over the last axis.

    Parameters
    ----------
    in_features, out_features : int
    bias : bool
        Whether there is a bias.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, (out_features, in_features)
    bias : Parameter, (out_features,), or None

    Examples
    --------
    >>> import convcore
    >>> Linear(20, 30)(convcore.ones(128, 20)).shape
    torch.Size([128, 30])
    """

    _printed_attributes = ("in_features", "out_features", "bias")

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(empty(out_features, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters from the uniform distribution within 1 / sqrt(in_features) of 0."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return the product of ``input``, (..., in_features), as (..., out_features)."""
        return functional.linear(input, self.weight, self.bias)


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under the name that PyTorch prints for the output projection of attention."""
