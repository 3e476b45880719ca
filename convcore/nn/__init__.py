"""Neural networks: modules, parameters and the functions that modules are made of."""

from convcore.nn import modules
from convcore.nn.modules import *  # noqa: F403
from convcore.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", *modules.__all__]
