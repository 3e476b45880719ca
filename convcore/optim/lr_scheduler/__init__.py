"""Learning rate schedulers: step, exponential, cosine, one-cycle, plateau and combinations."""

from convcore.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from convcore.optim.lr_scheduler.base import LRScheduler
from convcore.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from convcore.optim.lr_scheduler.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from convcore.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from convcore.optim.lr_scheduler.one_cycle import OneCycleLR
from convcore.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _LRScheduler(LRScheduler):
    """`LRScheduler` under PyTorch's older name, which programs derive schedules from."""
