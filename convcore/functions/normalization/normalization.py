"""Batch norm (also with an activation), group norm and instance norm, and their gradients.

All are y = (x - mean) / sqrt(variance + eps) * weight + bias, over different sets of elements.  The
gradient is computed by the engine in two passes; for double backward `_composed` writes the same
formula in differentiable functions.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor, scalar_name, wrap
from convcore._tensor.dtypes import FLOATING
from convcore._tensor.size import Size
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, needs_history, record
from convcore.autograd.views import check_writable
from convcore.engine.geometry import index
from convcore.engine.layers.norm import layer_norm as layer_engine
from convcore.engine.layers.norm import norm as engine
from convcore.engine.runtime.casts import astype
from convcore.functions._support.arguments import (
    check_arguments,
    check_kind,
    check_optional,
    number,
)
from convcore.functions._support.dispatch import flat_in
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import add, mul, sub
from convcore.functions.elementwise.elementwise import rsqrt
from convcore.functions.elementwise.piecewise import masked
from convcore.functions.reductions.reduce import mean, sum
from convcore.functions.shapes.broadcast import cast
from convcore.functions.shapes.shape import reshape, unsafe_reshape

__all__ = ["batch_norm", "batch_norm_activation", "group_norm", "instance_norm"]

Array = np.ndarray[Any, Any]

_SINGLE = np.dtype(np.float32)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel over the batch and all pixels.

    y = (x - mean) / sqrt(variance + eps) * weight + bias.

    Parameters
    ----------
    input : (N, C, *sizes), floating point
    running_mean, running_var : (C,), or both None
        With ``training``: moved by ``momentum`` towards the batch's mean and unbiased variance, in
        place.  Without: what is normalised with.
    weight, bias : (C,), or None for ones and zeros
    training : bool
        Whether the batch's own mean and variance are taken.
    momentum : float
        running = (1 - momentum) * running + momentum * batch's.
    eps : float

    Returns
    -------
    Tensor
        Of the input's shape and memory format.

    Raises
    ------
    ValueError
        One value a channel in training; eps is not positive, or negative without training; one
        running statistic without the other.
    RuntimeError
        A statistic, weight or bias of another size than C, or of another dtype.
    NotImplementedError
        An integer tensor.

    Notes
    -----
    Sums are made in float64, about an element of the channel: a large mean costs no digits.
    float16 and bfloat16 are computed in float32 and rounded once.

    References
    ----------
    S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", ICML 2015.

    Examples
    --------
    >>> import convcore
    >>> batch_norm(convcore.tensor([[1.0], [3.0]]), None, None, training=True, eps=1e-12)
    tensor([[-1.],
            [ 1.]])
    """
    return batch_norm_activation(
        input, running_mean, running_var, weight, bias, training, momentum, eps, None, None
    )


def batch_norm_activation(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    residual: Tensor | None = None,
    activation: str | None = "relu",
) -> Tensor:
    """Return activation(batch_norm(input) + residual) in the passes that `batch_norm` makes.

    Parameters
    ----------
    input, running_mean, running_var, weight, bias, training, momentum, eps
        As for `batch_norm`.
    residual : Tensor, optional
        Of the input's shape and dtype.
    activation : 'relu', 'relu6' or None

    Returns
    -------
    Tensor
        Of the input's shape and memory format.

    Raises
    ------
    ValueError
        No such activation.
    RuntimeError
        The residual's shape or dtype is not the input's; and what `batch_norm` raises.

    Notes
    -----
    It is convcore's own, with one node where the functions have two or three.  Backward needs the
    input, which also tells where the activation was flat; with a residual, the result as well.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.tensor([[1.0], [3.0]])
    >>> batch_norm_activation(x, None, None, training=True, eps=1e-12)
    tensor([[0.],
            [1.]])
    """
    if activation is not None and activation not in engine.CLAMPS:
        raise ValueError(
            f"activation must be None, {' or '.join(map(repr, engine.CLAMPS))}, got {activation!r}"
        )
    if residual is not None:
        _check_residual(input, residual)
    check_arguments("batch_norm", input=input)
    momentum = number("batch_norm", "momentum", momentum)
    eps = number("batch_norm", "eps", eps)
    shape = input._array.shape
    count = math.prod(shape[:1] + shape[2:])
    if training and count == 1:
        raise _one_value(Size(shape))
    if eps < 0 or (training and eps == 0):
        how = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {how}, but got {eps}")
    _check_pair(running_mean, running_var)
    _check_rank(len(shape))
    if running_mean is None and not training:
        raise RuntimeError("running_mean must be defined in evaluation mode")
    _check_vectors("batch_norm", shape[1], running_mean, running_var, weight, bias)
    if not shape[1]:
        return mul(input, 1)  # no channels, and nothing to normalize
    given = None
    if running_mean is not None and running_var is not None and not training:
        given = np.empty((2, shape[1]))
        given[0], given[1] = running_mean._array, running_var._array
    norm = _Norm("NativeBatchNormBackward0", eps, activation=activation, given=given)
    out, statistics = _normalized("batch_norm", norm, input, weight, bias, residual)
    if training and input._array.size:
        _follow(running_mean, running_var, statistics, momentum, count)
    return out


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise groups of channels of each image.

    Parameters
    ----------
    input : (N, C, *sizes), floating point
    num_groups : int
        Divides C.
    weight, bias : (C,), or None for ones and zeros
    eps : float

    Returns
    -------
    Tensor
        Of the input's shape and memory format.

    Raises
    ------
    ValueError
        One value a group.
    RuntimeError
        num_groups does not divide C; a weight or bias of another size than C, or of another dtype.
    NotImplementedError
        An integer tensor.

    References
    ----------
    Y. Wu, K. He, "Group normalization", ECCV 2018.

    Examples
    --------
    >>> import convcore
    >>> group_norm(convcore.tensor([[1.0, 3.0, 2.0, 2.0]]), 2, eps=1e-12)
    tensor([[-1.,  1.,  0.,  0.]])
    """
    check_arguments("group_norm", input=input)
    check_optional("group_norm", weight=weight, bias=bias)
    shape = input._array.shape
    groups = index("num_groups", num_groups)
    _check_rank(len(shape))
    if groups < 1:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if shape[1] % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(shape)} and num_groups={groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._array.shape != shape[1:2]:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(value._array.shape)} and input of shape "
                f"{list(shape)}"
            )
    if math.prod(shape) == shape[0] * groups != 0 and shape[0] == 1:
        raise _one_value(list(shape))
    norm = _Norm("NativeGroupNormBackward0", number("group_norm", "eps", eps), groups)
    return _normalized("group_norm", norm, input, weight, bias)[0]


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each image.

    Parameters
    ----------
    input : (N, C, *sizes), floating point
    running_mean, running_var : (C,), or both None
        With ``use_input_stats``: moved by ``momentum`` towards the means, over the batch, of the
        images' means and unbiased variances.  Without: what is normalised with.
    weight, bias : (C,), or None for ones and zeros
    use_input_stats : bool
    momentum, eps : float
        As for `batch_norm`.

    Returns
    -------
    Tensor
        Of the input's shape and memory format.

    Raises
    ------
    ValueError
        One pixel an image; one running statistic without the other.
    RuntimeError, NotImplementedError
        As for `batch_norm`.

    References
    ----------
    D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization: the missing ingredient for fast
    stylization", 2016.
    """
    check_arguments("instance_norm", input=input)
    shape = input._array.shape
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when use_input_stats is false"
            )
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    momentum = number("instance_norm", "momentum", momentum)
    _check_pair(running_mean, running_var)
    if math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {Size(shape)}"
        )
    _check_vectors("instance_norm", shape[1], running_mean, running_var, weight, bias)
    eps = number("instance_norm", "eps", eps)
    norm = _Norm("NativeBatchNormBackward0", eps, max(1, shape[1]))
    out, statistics = _normalized("batch_norm", norm, input, weight, bias)
    if input._array.size:
        statistics = statistics.reshape(2, *shape[:2]).mean(axis=1)
        _follow(running_mean, running_var, statistics, momentum, math.prod(shape[2:]))
    return out


def _check_residual(input: Tensor, residual: Tensor) -> None:
    check_arguments("batch_norm_activation", input=input, residual=residual)
    x, r = input._array, residual._array
    if x.shape != r.shape or x.dtype != r.dtype:
        raise RuntimeError(
            f"residual must have the input's shape and dtype, {list(x.shape)} and "
            f"{x.dtype.name}, got {list(r.shape)} and {r.dtype.name}"
        )


def _check_rank(rank: int) -> None:
    if rank < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {rank}")


def _one_value(shape: Any) -> ValueError:
    error = ValueError(
        f"Expected more than 1 value per channel when training, got input size {shape}"
    )
    return hinted(error, hints.ONE_VALUE)


def _check_pair(running_mean: Tensor | None, running_var: Tensor | None) -> None:
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")


def _check_vectors(
    function: str,
    channels: int,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
) -> None:
    """Raise unless statistics, weight and bias have one number for each channel."""
    vectors = {
        "running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias,
    }  # fmt: skip
    check_optional(function, **vectors)
    for name, vector in vectors.items():
        if vector is None:
            continue
        if vector._array.size != channels:
            size = vector._array.size
            raise hinted(
                RuntimeError(f"{name} should contain {channels} elements not {size}"),
                hints.NORM_CHANNELS.format(channels, size),
            )
        if name.startswith("running") and needs_history(vector):
            raise RuntimeError(
                "The function 'native_batch_norm' is not differentiable with respect to argument "
                f"'{name}'. This input cannot have requires_grad True."
            )
        # A weight's dtype is the input's; these may differ, but integers would not hold a mean.
        if name.startswith("running") and vector._array.dtype.kind not in FLOATING:
            raise RuntimeError(
                f"{name} must be of a floating point dtype, got {scalar_name(vector._array.dtype)}"
            )


def _follow(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    statistics: Array,
    momentum: float,
    count: int,
) -> None:
    """Move the running statistics towards those of ``count`` elements, in place."""
    if running_mean is None or running_var is None:
        return
    pair = running_mean, running_var
    values = statistics[0], statistics[1] * (count / max(1, count - 1))
    # Both are computed before one changes: there may not be the memory for it.
    moved = [
        ignore_errstate(np.add, (1 - momentum) * _at_least_single(one._array), momentum * value)
        for one, value in zip(pair, values, strict=True)
    ]
    for one in pair:
        check_writable(one)
    for one, value in zip(pair, moved, strict=True):
        one._counter[0] += 1
        one._array[...] = value


def _at_least_single(array: Array) -> Array:
    return array if array.itemsize > 2 else array.astype(np.float32)


# Common implementation


class _Norm(NamedTuple):
    """A normalisation: over which elements it is done, and the activation after it.

    ``groups`` of channels within an image, or the last ``axes``, or, without both, channels over
    the batch.
    """

    name: str
    eps: float
    groups: int | None = None
    axes: int | None = None
    activation: str | None = None
    given: Array | None = None  # running means and variances, used instead of the input's

    def forward(
        self, x: Array, weight: Array | None, bias: Array | None, residual: Array | None
    ) -> tuple[Array, Array]:
        """Return the result, and the means and variances."""
        if not self._reads(x):
            more = None if residual is None else astype(residual, _SINGLE)
            y, statistics = self.forward(astype(x, _SINGLE), weight, bias, more)
            return astype(y, x.dtype), statistics
        if self.axes is not None:
            return layer_engine.forward(x, weight, bias, self.eps, self.axes)
        return engine.forward(
            x, weight, bias, self.eps, self.groups, self.given, residual, self.activation
        )

    def backward(
        self,
        grad: Array,
        x: Array,
        weight: Array | None,
        bias: Array | None,
        statistics: Array,
        result: Array | None,
        needs_input: bool,
    ) -> tuple[Array | None, Array, Array, Array]:
        """Return the gradients of input, residual, weight and bias."""
        if not self._reads(x):
            y = None if result is None else astype(result, _SINGLE)
            wide = astype(grad, _SINGLE), astype(x, _SINGLE)
            gx, gr, *others = self.backward(*wide, weight, bias, statistics, y, needs_input)
            gx = None if gx is None else astype(gx, x.dtype)
            return gx, astype(gr, x.dtype), others[0], others[1]
        if self.axes is not None:
            grads = layer_engine.backward(grad, x, weight, self.eps, self.axes, statistics)
            return grads[0], grad, *grads[1:]
        given = self.given is not None
        return engine.backward(
            *(grad, x, weight, bias, self.eps, statistics, given, self.groups, self.activation),
            result,
            needs_input,
        )

    def _reads(self, x: Array) -> bool:
        """Return whether the engine takes an array of float16 or bfloat16 as it is."""
        return x.dtype.char not in "eE" or (self.axes is None and engine.reads(x, self.groups))

    def split(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
        """Return the shape with channels split in groups, the axes of means, the weight's shape."""
        if self.axes is not None:
            axes = tuple(range(len(shape) - self.axes, len(shape)))
            return shape, axes, shape[len(shape) - self.axes :]
        n, channels, *sizes = shape
        ones = (1,) * len(sizes)
        if self.groups is None:
            return shape, (0, *range(2, len(shape))), (channels, *ones)
        size = channels // self.groups
        whole = (n, self.groups, size, *sizes)
        return whole, tuple(range(2, len(whole))), (self.groups, size, *ones)


def _normalized(
    function: str,
    norm: _Norm,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None = None,
) -> tuple[Tensor, Array]:
    """Return the result and the means and variances, recorded."""
    check_kind(function, x, "fV")
    dtype = x._array.dtype
    if dtype.char in "eE":
        weight, bias = (t if t is None else cast(t, _SINGLE) for t in (weight, bias))
    elif not x._array.size:  # nothing is computed: PyTorch takes parameters of any dtype
        weight, bias = (t if t is None else cast(t, dtype) for t in (weight, bias))
    else:
        _check_dtypes(dtype, weight, bias)
    w, b, r = (None if t is None else t._array for t in (weight, bias, residual))
    y, statistics = ignore_errstate(norm.forward, x._array, w, b, r)
    out = wrap(y)
    if mode.enabled:
        inputs = (x, weight, bias) if residual is None else (x, weight, bias, residual)
        by_result = residual is not None and norm.activation is not None

        def backward(needs: tuple[bool, ...], grad: Tensor, *saved: Any) -> tuple:
            return _backward(norm, statistics, needs, grad, *saved)

        record(norm.name, inputs, out, backward, (x, weight, bias, out if by_result else None))
        replay = lambda array: norm.forward(array, w, b, None)[0]  # noqa: E731
        if residual is None:
            describe(out, norm=norm, parameters=(w, b), forward=replay)
        else:
            describe(out, norm=norm)
    return out, statistics


def _check_dtypes(dtype: np.dtype, weight: Tensor | None, bias: Tensor | None) -> None:
    for tensor in (weight, bias):
        if tensor is not None and tensor._array.dtype != dtype:
            if dtype == np.float64:
                raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
            name = scalar_name(dtype)
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {name}")


def _backward(
    norm: _Norm,
    statistics: Array,
    needs: tuple[bool, ...],
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    result: Tensor | None,
) -> tuple:
    if mode.enabled:
        return _composed_of_any(norm, needs, grad, x, weight, bias, result)
    w, b, y = (None if t is None else t._array for t in (weight, bias, result))
    gx, gr, gw, gb = ignore_errstate(
        norm.backward, grad._array, x._array, w, b, statistics, y, needs[0]
    )
    likes = x._array, w, b  # a weight may have axes of one element besides
    grads = [
        None if g is None or like is None else wrap(g.reshape(like.shape))
        for g, like in zip((gx, gw, gb), likes, strict=True)
    ]
    if len(needs) > 3:
        grads.append(grad if gr is grad._array else wrap(gr))
    return tuple([g if need else None for g, need in zip(grads, needs, strict=True)])


def _composed_of_any(
    norm: _Norm, needs: tuple[bool, ...], grad: Tensor, x: Tensor, *rest: Tensor | None
) -> tuple:
    """Return `_composed` in float32, and the gradients of float16 and bfloat16 in these."""
    dtype = x._array.dtype
    if dtype.char not in "eE":
        return _composed(norm, needs, grad, x, *rest)
    weight, bias, result = rest
    result = None if result is None else cast(result, _SINGLE)
    grads = _composed(norm, needs, cast(grad, _SINGLE), cast(x, _SINGLE), weight, bias, result)
    return tuple([
        cast(g, dtype) if g is not None and place not in (1, 2) else g
        for place, g in enumerate(grads)
    ])  # fmt: skip


def _composed(
    norm: _Norm,
    needs: tuple[bool, ...],
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    result: Tensor | None,
) -> tuple:
    """Return the gradients in differentiable functions, made anew from the input.

    With z = (x - mean) / sqrt(variance + eps) and h = grad * weight, that of x is (h - mean(h) - z
    mean(h z)) / sqrt(variance + eps), the means being those of the same sets of elements.
    """
    shape, axes, weight_shape = norm.split(x._array.shape)
    parts = reshape(x, shape)
    if norm.given is None:
        centred = sub(parts, mean(parts, axes, True))
        rstd = rsqrt(add(mean(mul(centred, centred), axes, True), norm.eps))
    else:
        rows = norm.given.astype(x._array.dtype).reshape(2, *weight_shape)
        centred = sub(parts, wrap(rows[0]))
        rstd = rsqrt(add(wrap(rows[1]), norm.eps))
    z = mul(centred, rstd)
    w = None if weight is None else reshape(weight, weight_shape)
    grad = reshape(grad, shape)
    if norm.activation is not None:
        if result is None:
            y = z if w is None else mul(z, w)
            y = y if bias is None else add(y, reshape(bias, weight_shape))
        else:
            y = reshape(result, shape)
        low, high = engine.CLAMPS[norm.activation]
        grad = flat_in(masked(grad, ~((y._array <= low) | (y._array >= high))), y)
    grads: list[Tensor | None] = [None] * len(needs)
    if needs[0]:
        h = grad if w is None else mul(grad, w)
        if norm.given is None:
            h = sub(sub(h, mean(h, axes, True)), mul(z, mean(mul(h, z), axes, True)))
        grads[0] = unsafe_reshape(mul(h, rstd), x._array.shape)
    others = tuple([
        axis for axis in range(len(shape))
        if axis < len(shape) - len(weight_shape) or weight_shape[axis - len(shape)] == 1
    ])  # fmt: skip
    for place, tensor, factor in ((1, weight, z), (2, bias, None)):
        if needs[place] and tensor is not None:
            value = grad if factor is None else mul(grad, factor)
            value = sum(value, others) if others else value
            grads[place] = reshape(value, tensor._array.shape)
    if len(needs) > 3 and needs[3]:
        grads[3] = reshape(grad, x._array.shape)
    return tuple(grads)
