"""Learning rate schedulers: step, exponential, cosine, one-cycle, plateau and combinations."""

from convcore.optim.lr_scheduler.base import LRScheduler
from convcore.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from convcore.optim.lr_scheduler.cosine import CosineAnnealingLR
from convcore.optim.lr_scheduler.factors import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiStepLR,
    StepLR,
)
from convcore.optim.lr_scheduler.one_cycle import OneCycleLR
from convcore.optim.lr_scheduler.plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
