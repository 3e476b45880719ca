"""Neural networks: modules, parameters and the functions that modules are made of."""

from convcore.nn import functional, init, modules
from convcore.nn.modules import *  # noqa: F403
from convcore.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", *modules.__all__]
