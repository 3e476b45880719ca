"""Group, layer, root mean square and local response normalization layers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.engine.geometry import index
from convcore.nn import functional, init
from convcore.nn.modules.batchnorm import AffineNorm
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class GroupNorm(AffineNorm):
    """Group normalization of (N, C, *sizes): over groups of channels of each sample.

    Parameters
    ----------
    num_groups : int
    num_channels : int
        C, a multiple of num_groups.
    eps : float
        Added to the variance.
    affine : bool
        Whether there are a weight and a bias.
    device, dtype
        Of the parameters.
    bias : bool
        Whether there is a bias.

    Attributes
    ----------
    weight, bias : Parameter, (num_channels,), or None

    Raises
    ------
    ValueError
        num_groups does not divide num_channels.

    References
    ----------
    Y. Wu, K. He, "Group normalization", ECCV 2018.

    Examples
    --------
    >>> import convcore
    >>> GroupNorm(1, 2, eps=1e-12, affine=False)(convcore.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]])
    """

    _printed_values = ("num_groups", "num_channels")
    _printed_attributes = ("eps", "affine", "bias")

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make_parameters(num_channels, affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the groups of channels of each sample of ``input``."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class LayerNorm(AffineNorm):
    """Layer normalization, over the last axes.

    Parameters
    ----------
    normalized_shape : int or ints
        The sizes of those axes.
    eps : float
        Added to the variance.
    elementwise_affine : bool
        Whether there are a weight and a bias.
    bias : bool
        Whether there is a bias.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight, bias : Parameter, normalized_shape, or None

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.

    Examples
    --------
    >>> import convcore
    >>> LayerNorm(2, eps=1e-12, elementwise_affine=False)(convcore.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]])
    """

    _printed_values = ("normalized_shape",)
    _printed_attributes = ("eps", "elementwise_affine", "bias")

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, Integral):
            normalized_shape = (index("normalized_shape", normalized_shape),)
        self.normalized_shape = tuple(normalized_shape)  # type: ignore[arg-type]
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the last axes of ``input``."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Root mean square normalization, over the last axes.

    Parameters
    ----------
    normalized_shape : int or ints
        The sizes of those axes.
    eps : float, optional
        Added to the mean square; by default the machine epsilon of the dtype.
    elementwise_affine : bool
        Whether there is a weight.
    device, dtype
        Of the weight.

    Attributes
    ----------
    weight : Parameter, normalized_shape, or None

    References
    ----------
    B. Zhang, R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Examples
    --------
    >>> import convcore
    >>> RMSNorm(2, elementwise_affine=False)(convcore.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]])
    """

    _printed_values = ("normalized_shape",)
    _printed_attributes = ("eps", "elementwise_affine")

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, Integral):
            normalized_shape = (index("normalized_shape", normalized_shape),)
        self.normalized_shape = tuple(normalized_shape)  # type: ignore[arg-type]
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(empty(self.normalized_shape, dtype=dtype, device=device))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the weight with ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axes of ``x``."""
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class LocalResponseNorm(Module):
    """Local response normalization of (N, C, *sizes), over neighbouring channels.

    Parameters
    ----------
    size : int
        How many channels.
    alpha, beta, k : float
        The output is x / (k + alpha * mean square)^beta.

    References
    ----------
    A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet classification with deep convolutional neural
    networks", NeurIPS 2012, section 3.3.
    """

    _printed_values = ("size",)
    _printed_attributes = ("alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        """Divide ``input`` by a power of its neighbours' mean square."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
