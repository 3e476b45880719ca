"""Activations as modules: functions of each element, and softmax and its kin along an axis."""

from __future__ import annotations

from typing import Any

from convcore._creation import full
from convcore._tensor import Tensor
from convcore.functions._support.arguments import number
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    printed: tuple[str, ...] = ()  # attributes that the printed form shows

    def extra_repr(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.printed]
        if getattr(self, "inplace", False):
            shown.append("inplace=True")
        return ", ".join(shown)


class _MaybeInplace(_Activation):
    """A function of each element that can take the place of its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_MaybeInplace):
    """max(0, x).

    Parameters
    ----------
    inplace : bool
        Whether the input itself is changed.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.relu(input, self.inplace)


class SiLU(_MaybeInplace):
    """x * sigmoid(x); the parameter is `ReLU`'s."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.silu(input, self.inplace)


class Mish(_MaybeInplace):
    """x * tanh(softplus(x)); the parameter is `ReLU`'s."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.mish(input, self.inplace)


class SELU(_MaybeInplace):
    """scale * (max(0, x) + min(0, alpha * (exp(x) - 1))); the parameter is `ReLU`'s.

    Scale and alpha keep the mean 0 and the variance 1 of what passes.

    References
    ----------
    G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.selu(input, self.inplace)


class Hardsigmoid(_MaybeInplace):
    """x / 6 + 1/2 between 0 and 1; the parameter is `ReLU`'s."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:  # noqa: D102 - as PyTorch prints it
        return ""


class Hardswish(_MaybeInplace):
    """x * hardsigmoid(x); the parameter is `ReLU`'s."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.hardswish(input, self.inplace)

    def extra_repr(self) -> str:  # noqa: D102 - as PyTorch prints it
        return ""


class LeakyReLU(_Activation):
    """x where it is positive, negative_slope * x elsewhere.

    Parameters
    ----------
    negative_slope : float
    inplace : bool
        Whether the input itself is changed.
    """

    printed = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)


class _Exponential(_Activation):
    """A function that is exponential below 0."""

    printed = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class ELU(_Exponential):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere.

    Parameters
    ----------
    alpha : float
    inplace : bool
        Whether the input itself is changed.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    """x where it is positive, alpha * (exp(x / alpha) - 1) elsewhere; parameters are `ELU`'s."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.celu(input, self.alpha, self.inplace)


class Hardtanh(_Activation):
    """x between two bounds, the bound beyond.

    Parameters
    ----------
    min_val, max_val : float
    inplace : bool
        Whether the input itself is changed.

    Raises
    ------
    ValueError
        ``min_val`` is not below ``max_val``.
    """

    printed: tuple[str, ...] = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        if not number(name, "min_val", min_val) < number(name, "max_val", max_val):
            raise ValueError(f"min_val {min_val} must be below max_val {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(0, x), 6); the parameter is `ReLU`'s."""

    printed = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Threshold(_Activation):
    """x where it is above a threshold, a value elsewhere.

    Parameters
    ----------
    threshold, value : float
    inplace : bool
        Whether the input itself is changed.
    """

    printed = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)


class PReLU(_Activation):
    """x where it is positive, weight * x elsewhere, with a weight that is trained.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels: axis 1 of the input.
    init : float
        What the weight starts as.
    device, dtype
        Of the weight.

    Attributes
    ----------
    weight : Parameter, (num_parameters,)
    """

    printed = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), float(init), dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Set the weight to what it started as."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.prelu(input, self.weight)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.sigmoid(input)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.tanh(input)


class LogSigmoid(_Activation):
    """log(1 / (1 + exp(-x)))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.logsigmoid(input)


class Softsign(_Activation):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.softsign(input)


class Tanhshrink(_Activation):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.tanhshrink(input)


class GELU(_Activation):
    """x times the share of a normal distribution that lies below x.

    Parameters
    ----------
    approximate : 'none' or 'tanh'
        Whether that share is approximated by a hyperbolic tangent.
    """

    printed = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.gelu(input, approximate=self.approximate)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above a threshold.

    Parameters
    ----------
    beta, threshold : float
    """

    printed = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.softplus(input, self.beta, self.threshold)


class Hardshrink(_Activation):
    """x where it is farther than lambd from 0, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:  # noqa: D102
        return f"{self.lambd}"


class Softshrink(_Activation):
    """x moved towards 0 by lambd, and not beyond."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:  # noqa: D102
        return f"{self.lambd}"


class GLU(_Activation):
    """The first half of an axis times the sigmoid of the second.

    Parameters
    ----------
    dim : int
        The axis; its size is even.
    """

    printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return half of ``input``, let through by the other half."""
        return functional.glu(input, self.dim)


class _AlongAxis(_Activation):
    """A function along one axis."""

    printed = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongAxis):
    """exp(x_i) / sum_j exp(x_j) along an axis.

    Parameters
    ----------
    dim : int
        The axis. Without one, 1 is taken, or 0 for tensors of none, one or three axes, with a
        warning.

    Examples
    --------
    >>> import convcore
    >>> Softmax(dim=0)(convcore.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return shares that add up to 1 along the axis."""
        return functional.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongAxis):
    """log(softmax(x)) along an axis, also where the softmax is too small a number.

    Parameters
    ----------
    dim : int
        As for `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the logarithms of shares along the axis."""
        return functional.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongAxis):
    """softmax(-x) along an axis.

    Parameters
    ----------
    dim : int
        As for `Softmax`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return shares that add up to 1 along the axis."""
        return functional.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(_Activation):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """Return shares that add up to 1 over the channels."""
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return functional.softmax(input, -3)
