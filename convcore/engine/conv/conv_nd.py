"""conv1d to conv_transpose3d on arrays, under PyTorch's names and argument order."""

from __future__ import annotations

from convcore.engine.conv.epilogue import Activation
from convcore.engine.conv.passes import conv_forward, conv_transpose
from convcore.engine.geometry import Padding, Spatial
from convcore.engine.runtime.checks import Array, checked_array


def _conv(
    rank: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
    activation: Activation,
) -> Array:
    _check_rank("conv", rank, weight)
    return conv_forward(
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        activation=activation,
    )


def _conv_transpose(
    rank: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Spatial,
    padding: Padding,
    output_padding: Spatial,
    groups: int,
    dilation: Spatial,
) -> Array:
    _check_rank("conv_transpose", rank, weight)
    return conv_transpose(
        input,
        weight,
        bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


def _check_rank(function: str, rank: int, weight: Array) -> None:
    weight = checked_array("weight", weight)
    if weight.ndim != rank + 2:
        raise ValueError(
            f"weight of {function}{rank}d must have {rank + 2} axes, got shape {list(weight.shape)}"
        )


def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
    *,
    activation: Activation = None,
) -> Array:
    """Convolve (N, C_in, W) or (C_in, W) with (C_out, C_in/G, KW); see `conv_forward`.

    Examples
    --------
    >>> import numpy as np
    >>> conv1d(np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2)), dilation=2)
    array([[[2., 4., 6.]]])
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups, activation)


def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
    *,
    activation: Activation = None,
) -> Array:
    """Convolve (N, C_in, H, W) or (C_in, H, W) with (C_out, C_in/G, KH, KW); see `conv_forward`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(25.0).reshape(1, 1, 5, 5)
    >>> conv2d(x, np.ones((1, 1, 2, 2)), stride=2, padding=3)[0, 0, 2]
    array([ 0., 15., 36., 44.,  0.])
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups, activation)


def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
    *,
    activation: Activation = None,
) -> Array:
    """Convolve (N, C_in, D, H, W) or unbatched with (C_out, C_in/G, KD, KH, KW).

    See `conv_forward`.

    Examples
    --------
    >>> import numpy as np
    >>> conv3d(np.ones((1, 1, 2, 2, 3)), np.ones((1, 1, 2, 2, 2)))[0, 0, 0]
    array([[8., 8.]])
    """
    return _conv(3, input, weight, bias, stride, padding, dilation, groups, activation)


def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Transpose a convolution: (N, C_in, W) or (C_in, W) with (C_in, C_out/G, KW).

    See `conv_transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose1d(np.arange(1.0, 3.0).reshape(1, 1, 2), np.ones((1, 1, 3)), stride=2)
    array([[[1., 1., 3., 2., 2.]]])
    """
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Transpose a convolution: (N, C_in, H, W) or (C_in, H, W) with (C_in, C_out/G, KH, KW).

    See `conv_transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose2d(np.ones((1, 1, 1, 2)), np.ones((1, 1, 1, 2)), stride=2, output_padding=1)
    array([[[[1., 1., 1., 1., 0.],
             [0., 0., 0., 0., 0.]]]])
    """
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Transpose a convolution: (N, C_in, D, H, W) or unbatched with (C_in, C_out/G, KD, KH, KW).

    See `conv_transpose`.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose3d(np.ones((1, 1, 1, 1, 2)), np.ones((1, 1, 1, 1, 2)))[0, 0, 0]
    array([[1., 2., 1.]])
    """
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
