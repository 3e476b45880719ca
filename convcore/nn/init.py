"""Weight initialisation: functions that fill a tensor in place, without recording gradients.

Random ones take a ``generator``; the default is the one that `convcore.manual_seed` seeds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.autograd.views import check_writable
from convcore.functions._support.arguments import number
from convcore.random import fill_normal, fill_uniform

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = (
    *("linear", "sigmoid", "conv1d", "conv2d", "conv3d"),
    *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
)
_GAINS = {**dict.fromkeys(_LINEAR, 1), "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the gain of an activation: the factor that keeps the variance of its outputs.

    Parameters
    ----------
    nonlinearity : str
        Name of a function in `nn.functional`: 'linear', a convolution or 'sigmoid' (1), 'tanh'
        (5/3), 'relu' (sqrt(2)), 'leaky_relu' (sqrt(2 / (1 + param**2))) or 'selu' (3/4).
    param : float, optional
        The slope of 'leaky_relu' for negative numbers; 0.01 by default.

    Raises
    ------
    ValueError
        Another function, or a slope that is not a number.

    Examples
    --------
    >>> calculate_gain("leaky_relu", 1)
    1.0
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


# Constant values


@names_arguments
@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with one value; return it."""
    return tensor.fill_(val)


@names_arguments
def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones; return it."""
    return constant_(tensor, 1.0)


@names_arguments
def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros; return it."""
    return constant_(tensor, 0.0)


@names_arguments
@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on its diagonal and zeros elsewhere; return it.

    Raises
    ------
    ValueError
        The tensor does not have two axes.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    tensor.zero_()
    np.fill_diagonal(tensor._array, 1)
    return tensor


@names_arguments
@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it copies its input (a Dirac delta); return it.

    Output channel i of each group is input channel i of that group; further ones are zero.

    Parameters
    ----------
    tensor : Tensor, (C_out, C_in/G, *kernel)
    groups : int

    Raises
    ------
    ValueError
        The tensor does not have 3, 4 or 5 axes, or C_out is not a multiple of ``groups``.

    Examples
    --------
    >>> import convcore
    >>> dirac_(convcore.empty(1, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups:
        raise ValueError("dim 0 must be divisible by groups")
    tensor.zero_()
    middle = tuple(size // 2 for size in kernel)
    per_group = out_channels // groups
    for first in range(0, out_channels, per_group) if per_group else ():
        for channel in range(min(per_group, in_channels)):
            tensor._array[(first + channel, channel, *middle)] = 1
    return tensor


# Random values


@names_arguments
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor from the uniform distribution on [a, b); return it."""
    return _draw(tensor, fill_uniform, a, b, generator)


@names_arguments
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor from the normal distribution N(mean, std**2); return it."""
    return _draw(tensor, fill_normal, mean, std, generator)


@no_grad()
def _draw(tensor: Tensor, fill: Callable, *args: Any) -> Tensor:
    """Call ``fill(array, *args)`` on a tensor's array, and count the in-place change."""
    check_writable(tensor)
    if not tensor.is_meta:  # there nothing is drawn, so that the numbers drawn next are PyTorch's
        fill(tensor._array, *args)
        tensor._counter[0] += 1
    return tensor


@names_arguments
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fill a tensor from the normal distribution truncated to [a, b]; return it.

    Notes
    -----
    If [a, b] holds more than 0.3 of the probability, values outside are drawn again (rejection
    sampling), as PyTorch does; else uniform values are mapped by the inverse distribution function.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=2,
        )
    below, up_to = (_normal_share((bound - mean) / std) for bound in (a, b))
    if up_to - below > 0.3:
        return _draw(tensor, _fill_by_rejection, mean, std, a, b, generator)
    return _draw(tensor, _fill_by_inverse, mean, std, a, b, below, up_to, generator)


def _normal_share(deviations: float) -> float:
    """Return the standard normal distribution function."""
    return (1 + math.erf(deviations / math.sqrt(2))) / 2


def _fill_by_rejection(
    array: np.ndarray, mean: float, std: float, a: float, b: float, generator: Any
) -> None:
    """Rejection sampling: draw whole arrays until each element was once in [a, b]."""
    low, high = array.dtype.type(a), array.dtype.type(b)
    fill_normal(array, mean, std, generator)
    while (outside := (array < low) | (array > high)).any():
        others = np.empty_like(array)
        fill_normal(others, mean, std, generator)
        np.copyto(array, others, where=outside)


def _fill_by_inverse(
    array: np.ndarray,
    mean: float,
    std: float,
    a: float,
    b: float,
    below: float,
    up_to: float,
    generator: Any,
) -> None:
    """Inverse transform sampling: uniform values mapped by the inverse distribution function."""
    from scipy.special import ndtri  # slow to import, and rarely needed

    shares = np.empty(array.shape)
    fill_uniform(shares, below, up_to, generator)
    array[...] = np.clip(mean + std * ndtri(shares), a, b)


@names_arguments
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Xavier (Glorot) uniform: variance gain**2 * 2 / (fan_in + fan_out); return the tensor.

    Raises
    ------
    ValueError
        The tensor has fewer than two axes.

    References
    ----------
    X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", AISTATS 2010, section 4.2.1.
    """
    bound = math.sqrt(3) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


@names_arguments
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Xavier (Glorot) normal: a normal distribution with the variance of `xavier_uniform_`."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


@names_arguments
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Kaiming (He) uniform: variance gain**2 / fan; return the tensor.

    Parameters
    ----------
    tensor : Tensor, (C_out, C_in/G, *kernel)
        fan_in is C_in/G times the kernel's size, fan_out is C_out times the kernel's size.
    a : float
        The negative slope of a 'leaky_relu'.
    mode : 'fan_in' or 'fan_out'
        Whether the variance is kept in the forward pass or in the backward pass.
    nonlinearity : str
        For `calculate_gain`.

    Raises
    ------
    ValueError
        Another mode, another function, or the tensor has fewer than two axes.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015, section 2.2.
    """
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@names_arguments
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Kaiming (He) normal: a normal distribution with the variance of `kaiming_uniform_`."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _is_empty(tensor: Tensor) -> bool:
    if tensor.numel() == 0:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return tensor.numel() == 0


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return fan_in and fan_out: inputs per output, and outputs per input."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    out_channels, in_channels, *kernel = tensor.shape
    size = math.prod(kernel)
    return in_channels * size, out_channels * size


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    fans = dict(zip(("fan_in", "fan_out"), _calculate_fan_in_and_fan_out(tensor), strict=True))
    if mode.lower() not in fans:
        raise ValueError(f"Mode {mode} not supported, please use one of {list(fans)}")
    return fans[mode.lower()]


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor)))


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@names_arguments
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill a tensor with a (semi-)orthogonal matrix; return it.

    Parameters
    ----------
    tensor : Tensor
        With two axes or more; all but the first count as one.
    gain : float
        Factor of the matrix.

    Raises
    ------
    ValueError
        The tensor has fewer than two axes.

    References
    ----------
    A. M. Saxe, J. L. McClelland, S. Ganguli, "Exact solutions to the nonlinear dynamics of learning
    in deep linear neural networks", ICLR 2014.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    gain = number("orthogonal_", "gain", gain)
    return _draw(tensor, _fill_orthogonal, gain, generator) if tensor.numel() else tensor


def _fill_orthogonal(array: np.ndarray, gain: float, generator: Any) -> None:
    drawn = np.empty((len(array), array.size // len(array)), array.dtype)
    fill_normal(drawn, 0.0, 1.0, generator)
    tall = drawn.shape[0] >= drawn.shape[1]
    q = orthonormal(wrap(drawn if tall else drawn.T))._array
    array[...] = (q if tall else q.T).reshape(array.shape) * gain


def orthonormal(matrix: Tensor) -> Tensor:
    """Return Q of the QR decomposition whose R has a positive diagonal; of tall matrices."""
    from scipy.linalg import qr  # slow to import, and rarely needed

    found = np.empty_like(matrix._array)
    for index in np.ndindex(found.shape[:-2]):
        q, r = qr(matrix._array[index], mode="economic")
        found[index] = q * np.sign(np.diagonal(r))
    return wrap(found)


# Deprecated names
