"""The three passes of a convolution on ndarrays: forward, input gradient, weight gradient.

    forward      y[n, o, j] = sum over c, t of x[n, c, j*stride - before + t*dilation] * w[o, c, t]
    input_grad   the same sum read for x, given gy in y's place
    weight_grad  the same sum read for w, given gy in y's place

Each is linear in either argument, and its derivatives are the other two; a transposed convolution
is input_grad used as a forward pass.  No pass conjugates: PyTorch's gradients of complex
convolutions are these passes with the other argument conjugated.
"""

from __future__ import annotations

import numpy as np

from convcore.engine.conv.call import TRANSPOSE, run
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, WEIGHT_GRAD
from convcore.engine.geometry import Padding, Spatial
from convcore.engine.layers.reduce._reduce import channel_sums
from convcore.engine.runtime.casts import bits
from convcore.engine.runtime.checks import Array, checked_array, checked_bias, whole_elements


def conv_forward(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
    activation: Activation = None,
) -> Array:
    """Convolve input with weight, which is not flipped (a cross-correlation).

    y[n, o, j] = activation(bias[o] + sum over c, t of input[n, c, j*stride - before + t*dilation] *
    weight[o, c, t]), where c runs over the channels of o's group and input is 0 in its padding.

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes); float32, float64, complex64 or complex128
        One to three spatial axes; any strides.  Or bfloat16 of ml_dtypes: results are rounded once,
        and weight gradients are float32.
    weight : (C_out, C_in/G, *kernel), the same dtype; float32 or bfloat16 if input is bfloat16
    bias : (C_out,), the weight's dtype, or None
    stride, dilation : int, or one int per spatial axis; at least 1
    padding : int, one int per axis, one (before, after) pair per axis, 'same' or 'valid'
    groups : int, a divisor of C_in and C_out
    activation : None, 'relu', 'relu6' or ('leaky_relu', slope)
        Real dtypes only.  Applied, like the bias, while a block of outputs is in cache: the same
        result as a separate activation, with one pass over memory less.  NaN stays NaN.

    Returns
    -------
    (N, C_out, *outs) or (C_out, *outs)
        A new array; channels_last in memory if input or weight is.

    Raises
    ------
    TypeError
        An argument is no array of the dtypes above, dtypes differ, or a parameter is no int.
    ValueError
        Shapes do not match, or a parameter is out of range.
    MemoryError
        The result or the scratch memory cannot be allocated.

    Notes
    -----
    At most N * C_out * P * K multiply-adds; for 3x3 kernels of stride 1 in float32 as few as a
    quarter, by Winograd's method, which rounds more and spreads a NaN to its neighbours:
    `convcore.backends.conv` documents and disables it.  Memory besides the result does not grow
    with N or the sizes: at most 8 MiB of scratch per thread, usually 1, and a copy of the weights
    where they are packed (about four times their bytes where they are transformed).  The matrix of
    all patches is never created.  `plan_conv` returns the algorithm and the bytes.  Parallel over
    blocks of pixels and of output channels; the bits do not depend on the number of threads.

    Whether products with padding zeros are computed depends on the algorithm, and so does whether
    an infinity or NaN of the weights shows along the border.

    References
    ----------
    K. Chellapilla, S. Puri, P. Simard, High performance convolutional neural networks for document
    processing (2006), section 2, for the product of a matrix of patches; here block by block.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> conv_forward(x, np.ones((1, 1, 2, 2)))[0, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    if bias is not None:
        weight = checked_array("weight", weight, bfloat16=True)
        bias = checked_bias(bias, weight.dtype, weight.shape[0] if weight.ndim else 0)
    extra: tuple = (bias,)
    if activation is not None:
        weight = checked_array("weight", weight, bfloat16=True)
        dtype = np.dtype(np.float32) if weight.dtype.char == "E" else weight.dtype
        extra += activation_parameters(activation, dtype)
    steps = stride, padding, dilation, groups
    return run(FORWARD, input, weight, steps, extra)


def conv_input_grad(
    grad_output: Array,
    weight: Array,
    input_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Array:
    """Compute the gradient of a convolution with respect to its input.

    gx[n, c, i] = sum over o, t and the outputs j with j*stride - before + t*dilation = i of
    grad_output[n, o, j] * weight[o, c, t].

    Parameters
    ----------
    grad_output : (N, C_out, *outs) or (C_out, *outs); float32, float64, complex64 or complex128
    weight : (C_out, C_in/G, *kernel), the same dtype
    input_size : int, or one int per spatial axis
        The input's spatial sizes: a stride above 1 leaves them ambiguous.
    stride, padding, dilation, groups
        As for the forward pass.

    Returns
    -------
    (N, C_in, *input_size) or (C_in, *input_size)
        A new array; channels_last in memory if grad_output or weight is.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`; also if grad_output's shape is not the forward pass's output shape.

    Notes
    -----
    At most N * C_out * P * K multiply-adds, plus those with the zeros around grad_output where they
    are fewer than half as many again; none with zeros inserted between its elements.  Algorithms
    and memory as for the forward pass, with a copy of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> conv_input_grad(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), 3)[0, 0]
    array([[1., 2., 1.],
           [2., 4., 2.],
           [1., 2., 1.]])
    """
    parameters = stride, padding, dilation, groups, input_size
    return run(INPUT_GRAD, grad_output, weight, parameters)


def conv_weight_grad(
    input: Array,
    grad_output: Array,
    kernel_size: Spatial,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    dilation: Spatial = 1,
    groups: int = 1,
) -> Array:
    """Compute the gradient of a convolution with respect to its weight.

    gw[o, c, t] = sum over n, j of grad_output[n, o, j] * input[n, c, j*stride - before +
    t*dilation].

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes); float32, float64, complex64 or complex128
    grad_output : (N, C_out, *outs) or (C_out, *outs), the same dtype
    kernel_size : int, or one int per spatial axis
        Needed because a stride above 1 leaves it ambiguous.  For an unbatched input give one int
        per axis: with a single int it would be read as a batch with one axis less.
    stride, padding, dilation, groups
        As for the forward pass.

    Returns
    -------
    (C_out, C_in/G, *kernel_size)
        A new array; channels_last in memory if input or grad_output is.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`; also if grad_output's shape is not the forward pass's output shape.

    Notes
    -----
    At most N * C_out * P * K multiply-adds.  Algorithms and scratch as for the forward pass; small
    gradients need partial sums of at most 32 MiB in total, added in index order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
    >>> conv_weight_grad(x, np.ones((1, 1, 2, 2)), 2)[0, 0]
    array([[ 8., 12.],
           [20., 24.]])
    """
    parameters = stride, padding, dilation, groups, kernel_size
    return run(WEIGHT_GRAD, input, grad_output, parameters)


def conv_bias_grad(grad_output: Array, *, unbatched: bool = False) -> Array:
    """Compute the gradient of a convolution with respect to its bias.

    gb[o] = sum over n, j of grad_output[n, o, j], by pairwise summation.

    Parameters
    ----------
    grad_output : (N, C_out, *outs), or (C_out, *outs) if unbatched
        float32, float64, complex64, complex128 or bfloat16; any number of spatial axes.

    Returns
    -------
    (C_out,)
        The same dtype; float32 for bfloat16.

    Raises
    ------
    TypeError, ValueError
        grad_output is not such an array.

    Examples
    --------
    >>> import numpy as np
    >>> conv_bias_grad(np.ones((2, 3, 4, 4)))
    array([32., 32., 32.])
    """
    array = checked_array("grad_output", grad_output, bfloat16=True)
    if array.ndim < (1 if unbatched else 2):
        raise ValueError(
            "grad_output must have an axis of channels: (N, C_out, *outs), or (C_out, *outs) if "
            f"unbatched, got shape {list(array.shape)}"
        )
    if unbatched:
        array = array[np.newaxis]
    kind = array.dtype.char
    sums = np.empty(array.shape[1], np.float32 if kind == "E" else array.dtype)
    if array.size == 0:
        sums[...] = 0
        return sums
    # A view if the pixels of an image are contiguous, as in both memory formats; otherwise a copy.
    pixels = whole_elements(array.reshape(*array.shape[:2], -1))
    size = array.itemsize
    image, channel, pixel = pixels.strides
    strides = (image // size, channel // size, pixel // size)
    channel_sums(kind, bits(pixels), sums, 1, *pixels.shape, strides)
    return sums


def conv_transpose(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Spatial = 1,
    padding: Padding = 0,
    output_padding: Spatial = 0,
    groups: int = 1,
    dilation: Spatial = 1,
) -> Array:
    """Compute the transposed convolution: `conv_input_grad` used as a forward pass.

    Parameters
    ----------
    input : (N, C_in, *sizes) or (C_in, *sizes); float32, float64, complex64 or complex128
    weight : (C_in, C_out/G, *kernel), the same dtype
    bias : (C_out,), the same dtype, or None
    stride, dilation : int, or one int per spatial axis
    padding : int, one int per axis, or one (before, after) pair per axis
        Elements cut off the output.
    output_padding : int, or one int per axis, smaller than stride or dilation on that axis
        Elements added after the output.
    groups : int

    Returns
    -------
    (N, C_out, *outs) or (C_out, *outs)
        With outs = (sizes - 1)*stride - before - after + dilation*(kernel - 1) + 1 +
        output_padding.

    Raises
    ------
    TypeError, ValueError, MemoryError
        As `conv_forward`.

    References
    ----------
    V. Dumoulin, F. Visin, A guide to convolution arithmetic for deep learning (2016), section 4,
    arXiv 1603.07285.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose(np.ones((1, 1, 2)), np.ones((1, 1, 2)), stride=2)
    array([[[1., 1., 1., 1.]]])
    """
    parameters = stride, padding, dilation, groups, output_padding
    extra = () if bias is None else (bias,)
    return run(TRANSPOSE, input, weight, parameters, extra)
