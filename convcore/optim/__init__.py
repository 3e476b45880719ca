"""Optimizers: what changes parameters by their gradients."""

from convcore.optim.optimizer import Optimizer
from convcore.optim.sgd import SGD

__all__ = ["SGD", "Optimizer"]
