"""Neural networks: modules, parameters and the functions that modules are made of."""

from typing import TYPE_CHECKING

from convcore.nn import functional as functional
from convcore.nn import grad as grad
from convcore.nn import init as init
from convcore.nn import modules as modules
from convcore.nn import utils as utils
from convcore.nn.modules import *  # noqa: F403
from convcore.nn.parameter import Buffer as Buffer
from convcore.nn.parameter import Parameter as Parameter

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = ["Buffer", "Parameter", "functional", "grad", "init", "utils", *modules.__all__]
