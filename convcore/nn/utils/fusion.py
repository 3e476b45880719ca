"""Batch normalization in evaluation folded into the convolution before it."""

from __future__ import annotations

import copy
from typing import Any

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore._tensor.creation import ones_like, zeros_like
from convcore.functions._support.arguments import check_arguments, check_optional
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that computes what it and a batch normalization do.

    Parameters
    ----------
    conv : a convolution in evaluation mode
    bn : a batch normalization in evaluation mode, with running statistics
    transpose : bool
        Whether the convolution is transposed.

    Raises
    ------
    AssertionError
        A module is in training mode, or there are no running statistics.
    """
    _check(conv, bn)
    fused = copy.deepcopy(conv)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, *statistics, transpose
    )
    return fused


@names_arguments
def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution with a batch normalization folded in.

    Parameters
    ----------
    conv_w, conv_b : weight and bias of the convolution; None is a bias of zeros
    bn_rm, bn_rv, bn_eps : the running mean and variance, and what is added to the variance
    bn_w, bn_b : weight and bias of the normalization; None is ones and zeros
    transpose : bool
        Whether the convolution is transposed: its output channels are along axis 1.
    """
    check_arguments("fuse_conv_bn_weights", conv_w=conv_w)
    check_optional("fuse_conv_bn_weights", bn_rv=bn_rv)
    dtypes = conv_w.dtype, conv_w.dtype if conv_b is None else conv_b.dtype
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    shape = [1, -1] if transpose else [-1, 1]
    weight = conv_w * scale.reshape(shape + [1] * (conv_w.dim() - 2))
    bias = (conv_b - bn_rm) * scale + bn_b
    return (
        Parameter(weight.detach().to(dtype=dtypes[0]), conv_w.requires_grad),
        Parameter(bias.detach().to(dtype=dtypes[1]), conv_b.requires_grad),
    )


def _check(layer: Module, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
