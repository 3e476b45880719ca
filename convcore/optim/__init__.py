"""Optimizers (SGD, Adam, L-BFGS and others) and learning rate schedulers, and weight averaging."""

import importlib
from typing import TYPE_CHECKING, Any

from convcore._errors import names as _names
from convcore.optim import lr_scheduler as lr_scheduler
from convcore.optim.adadelta import Adadelta
from convcore.optim.adagrad import Adagrad
from convcore.optim.adam import Adam, AdamW
from convcore.optim.lbfgs import LBFGS
from convcore.optim.nadam import NAdam
from convcore.optim.optimizer import Optimizer
from convcore.optim.radam import RAdam
from convcore.optim.rmsprop import RMSprop
from convcore.optim.sgd import SGD

if TYPE_CHECKING:
    from convcore.optim import swa_utils as swa_utils

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "lr_scheduler",
    "swa_utils",
]


if not TYPE_CHECKING:  # type checkers find the module, and misspelt names

    def __getattr__(name: str) -> Any:
        if name == "swa_utils":  # it needs nn, which training by plain functions does not
            return importlib.import_module("convcore.optim.swa_utils")
        raise _names.missing_name(__name__, name)


_names.explain_names(__name__)
