"""Activation layers: elementwise functions, and softmax and its relatives along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._errors import hinted
from convcore._tensor import Tensor
from convcore._tensor.creation import full
from convcore.functions._support.arguments import number
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.multihead_attention import MultiheadAttention
from convcore.nn.modules.utils import at_call
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
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Activation(Module):
    """A function of each element; its arguments are attributes of the layer."""

    _function: Callable[..., Tensor]
    _arguments: tuple[str, ...] = ()  # attributes that the function takes after the input

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return self._function(input, *[getattr(self, name) for name in self._arguments])

    def extra_repr(self) -> str:
        shown = [super().extra_repr(), "inplace=True" if getattr(self, "inplace", False) else ""]
        return ", ".join(filter(None, shown))


class _MaybeInplace(_Activation):
    """A function of each element that can overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        if isinstance(inplace, Tensor):
            name = type(self).__name__
            raise hinted(
                TypeError(f"{name}(): inplace must be a bool, got a Tensor"),
                f"make the layer first, and then call it: nn.{name}()(x)",
            )
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return self._function(input, self.inplace)


class ReLU(_MaybeInplace):
    """Rectified linear unit, max(0, x).

    Parameters
    ----------
    inplace : bool
        Whether the input is overwritten.
    """

    _function = at_call(functional.relu)


class SiLU(_MaybeInplace):
    """Sigmoid linear unit (swish), x * sigmoid(x); the parameter is `ReLU`'s."""

    _function = at_call(functional.silu)


class Mish(_MaybeInplace):
    """Mish, x * tanh(softplus(x)); the parameter is `ReLU`'s."""

    _function = at_call(functional.mish)


class SELU(_MaybeInplace):
    """Scaled ELU, scale * (max(0, x) + min(0, alpha * (exp(x) - 1))); the parameter is `ReLU`'s.

    Scale and alpha are chosen such that activations keep mean 0 and variance 1.

    References
    ----------
    G. Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
    """

    _function = at_call(functional.selu)


class _Silent(_MaybeInplace):
    def extra_repr(self) -> str:
        """Return nothing, as PyTorch does, also where ``inplace`` is true."""
        return ""


class Hardsigmoid(_Silent):
    """Piecewise linear sigmoid: x / 6 + 1/2, clamped to [0, 1]; the parameter is `ReLU`'s."""

    _function = at_call(functional.hardsigmoid)


class Hardswish(_Silent):
    """Piecewise swish, x * hardsigmoid(x); the parameter is `ReLU`'s."""

    _function = at_call(functional.hardswish)


class LeakyReLU(_Activation):
    """Leaky ReLU: x where x > 0, negative_slope * x elsewhere.

    Parameters
    ----------
    negative_slope : float
    inplace : bool
        Whether the input is overwritten.
    """

    _function = at_call(functional.leaky_relu)
    _arguments = ("negative_slope", "inplace")
    _printed_attributes = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace


class _Exponential(_Activation):
    """A function that is exponential below 0."""

    _arguments = ("alpha", "inplace")
    _printed_attributes = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace


class ELU(_Exponential):
    """Exponential linear unit: x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Parameters
    ----------
    alpha : float
    inplace : bool
        Whether the input is overwritten.
    """

    _function = at_call(functional.elu)


class CELU(_Exponential):
    """Continuously differentiable ELU: x where x > 0, alpha * (exp(x / alpha) - 1) elsewhere.

    The parameters are `ELU`'s.
    """

    _function = at_call(functional.celu)


class Hardtanh(_Activation):
    """Clamp x to [min_val, max_val].

    Parameters
    ----------
    min_val, max_val : float
    inplace : bool
        Whether the input is overwritten.

    Raises
    ------
    ValueError
        ``min_val`` is not below ``max_val``.
    """

    _function = at_call(functional.hardtanh)
    _arguments = ("min_val", "max_val", "inplace")
    _printed_attributes: tuple[str, ...] = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        name = type(self).__name__
        if not number(name, "min_val", min_val) < number(name, "max_val", max_val):
            raise ValueError(f"min_val {min_val} must be below max_val {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace


class ReLU6(Hardtanh):
    """ReLU with an upper bound, min(max(0, x), 6); the parameter is `ReLU`'s."""

    _printed_attributes = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Threshold(_Activation):
    """x where x > threshold, a constant value elsewhere.

    Parameters
    ----------
    threshold, value : float
    inplace : bool
        Whether the input is overwritten.
    """

    _function = at_call(functional.threshold)
    _arguments = ("threshold", "value", "inplace")
    _printed_attributes = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace


class PReLU(_Activation):
    """Parametric ReLU: x where x > 0, weight * x elsewhere, with a trained weight.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels: axis 1 of the input.
    init : float
        The weight's initial value.
    device, dtype
        Of the weight.

    Attributes
    ----------
    weight : Parameter, (num_parameters,)
    """

    _function = at_call(functional.prelu)
    _arguments = ("weight",)
    _printed_attributes = ("num_parameters",)

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        first = float(number("PReLU", "init", init))
        self.weight = Parameter(full((num_parameters,), first, dtype=dtype, device=device))

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        self.weight.data.fill_(self.init)


class RReLU(_Activation):
    """Leaky ReLU whose slopes are drawn for each element in training, and their mean in eval.

    Parameters
    ----------
    lower, upper : float
        Between which slopes are drawn.
    inplace : bool
        Whether the input is overwritten.
    """

    _printed_attributes = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Sigmoid(_Activation):
    """Logistic sigmoid, 1 / (1 + exp(-x))."""

    _function = at_call(functional.sigmoid)


class Tanh(_Activation):
    """Hyperbolic tangent."""

    _function = at_call(functional.tanh)


class LogSigmoid(_Activation):
    """Logarithm of the sigmoid, log(1 / (1 + exp(-x)))."""

    _function = at_call(functional.logsigmoid)


class Softsign(_Activation):
    """Softsign, x / (1 + |x|)."""

    _function = at_call(functional.softsign)


class Tanhshrink(_Activation):
    """Tanhshrink, x - tanh(x)."""

    _function = at_call(functional.tanhshrink)


class GELU(_Activation):
    """Gaussian error linear unit: x times the standard normal distribution function of x.

    Parameters
    ----------
    approximate : 'none' or 'tanh'
        Whether the distribution function is approximated by a hyperbolic tangent.
    """

    _printed_attributes = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to each element of ``input``."""
        return functional.gelu(input, approximate=self.approximate)


class Softplus(_Activation):
    """Softplus, log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold.

    Parameters
    ----------
    beta, threshold : float
    """

    _function = at_call(functional.softplus)
    _arguments = _printed_attributes = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold


class _Shrink(_Activation):
    _arguments = _printed_values = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd


class Hardshrink(_Shrink):
    """Hard shrinkage: x where |x| > lambd, 0 elsewhere."""

    _function = at_call(functional.hardshrink)


class Softshrink(_Shrink):
    """Soft shrinkage: x moved towards 0 by lambd, 0 where |x| <= lambd."""

    _function = at_call(functional.softshrink)


class GLU(_Activation):
    """Gated linear unit: the first half of an axis times the sigmoid of the second half.

    Parameters
    ----------
    dim : int
        The axis; its size is even.
    """

    _function = at_call(functional.glu)
    _arguments = _printed_attributes = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim


class _AlongAxis(_Activation):
    """A function along one axis."""

    _printed_attributes = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function along the axis ``dim`` of ``input``."""
        return self._function(input, self.dim, _stacklevel=5)


class Softmax(_AlongAxis):
    """Softmax, exp(x_i) / sum_j exp(x_j), along an axis.

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

    _function = at_call(functional.softmax)


class LogSoftmax(_AlongAxis):
    """Logarithm of the softmax along an axis, finite also where the softmax underflows.

    Parameters
    ----------
    dim : int
        As for `Softmax`.
    """

    _function = at_call(functional.log_softmax)


class Softmin(_AlongAxis):
    """Softmin, softmax(-x), along an axis.

    Parameters
    ----------
    dim : int
        As for `Softmax`.
    """

    _function = at_call(functional.softmin)
