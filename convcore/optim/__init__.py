"""Optimizers (SGD, Adam, AdamW, RMSprop) and learning rate schedulers."""

from convcore.optim import lr_scheduler as lr_scheduler
from convcore.optim.adam import Adam, AdamW
from convcore.optim.optimizer import Optimizer
from convcore.optim.rmsprop import RMSprop
from convcore.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
