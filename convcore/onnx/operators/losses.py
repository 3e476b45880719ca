"""Losses: negative log likelihood and softmax with it."""

from __future__ import annotations

from typing import Any

import convcore
from convcore.nn import functional as F
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value


@operator("NegativeLogLikelihoodLoss")
def nll_loss(
    x: Value,
    target: Value,
    weight: Value = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Value:
    """Return minus the log probability of each target class, reduced."""
    ignored = -(2**31) if ignore_index is None else ignore_index
    return F.nll_loss(
        x, target.to(convcore.int64), weight, ignore_index=ignored, reduction=reduction
    )


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    x: Value,
    target: Value,
    weight: Value = None,
    *,
    outputs: int,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """Return the loss of scores, and their log probabilities."""
    log_probability = F.log_softmax(x, 1)
    loss = nll_loss(log_probability, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (loss, log_probability) if outputs > 1 else loss
