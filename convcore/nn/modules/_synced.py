"""Batch normalization in training over the batches of several processes, for SyncBatchNorm.

Statistics are gathered by a function that can be differentiated as often as wanted; the rest is
written in those of one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import tensor
from convcore.autograd.function import Function
from convcore.autograd.grad_mode import no_grad
from convcore.distributed.group import ProcessGroup
from convcore.functions.reductions.variance import var_mean
from convcore.functions.shapes.joining import cat


def synced_batch_norm(
    group: ProcessGroup,
    weighed: bool,
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Tensor:
    """Return `functional.batch_norm` in training, over the batches of a group."""
    if input.dtype.itemsize == 2:
        options = running_mean, running_var, weight, bias, training, momentum, eps
        return synced_batch_norm(group, weighed, input.float(), *options).to(input.dtype)
    own = input.shape[:1] + input.shape[2:]
    counts = _gathered(np.array([own.numel()]), group)[:, 0]
    total = int(counts.sum())
    if total <= 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{input.shape} and {total} in all processes"
        )
    mean, variance = _statistics(input, counts, group, weighed)
    if running_mean is not None and running_var is not None:
        with no_grad():
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            unbiased = variance * (total / (total - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    scale = (variance + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    channels = (1, -1) + (1,) * (input.ndim - 2)
    y = (input - mean.reshape(channels)) * scale.reshape(channels)
    return y if bias is None else y + bias.reshape(channels)


def _statistics(
    input: Tensor, counts: np.ndarray, group: ProcessGroup, weighed: bool
) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each channel over all processes.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample
    variances", COMPSTAT 1982.
    """
    axes = [0, *range(2, input.ndim)]
    if counts[group.rank()]:
        variance, mean = var_mean(input, axes, correction=0)
    else:
        variance = mean = input.sum(axes)  # zeros, for all are to take part in backward
    table = _Gather.apply(cat([mean, variance]), counts if weighed else counts**0, group)
    shares = tensor(counts / counts.sum(), dtype=input.dtype).unsqueeze(1)
    means, variances = table.chunk(2, 1)
    mean = (means * shares).sum(0)
    return mean, ((variances + (means - mean).square()) * shares).sum(0)


class _Gather(Function):
    """Rows of all processes, stacked, and the gradient of all their losses.

    A process's gradient is later multiplied by its weight; so that those of others, which come
    through its statistics, then have theirs, they are divided by its weight here.
    """

    @staticmethod
    def forward(ctx: Any, row: Tensor, weights: np.ndarray, group: ProcessGroup) -> Tensor:
        ctx.group, ctx.weights = group, weights
        return wrap(_gathered(row._array, group))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        own = float(ctx.weights[ctx.group.rank()])
        total = _Sum.apply(grad * own, ctx.group)[ctx.group.rank()]
        return total / own if own else total * 0, None, None


class _Sum(Function):
    """The sum of the tensors of all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        sent = np.ascontiguousarray(values._array)
        received = np.empty_like(sent)
        group.wait(group.layers.Iallreduce(sent, received), "a sum of a layer")
        return wrap(received)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Sum.apply(grad, ctx.group), None


def _gathered(row: np.ndarray, group: ProcessGroup) -> np.ndarray:
    """Return a row of each process, stacked."""
    received = np.empty((group.size(), row.size), row.dtype)
    request = group.layers.Iallgather(np.ascontiguousarray(row), received)
    group.wait(request, "the statistics of a layer")
    return received
