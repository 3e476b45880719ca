"""Neural networks: modules, parameters and the functions that modules are made of."""

import convcore.functions  # noqa: F401  hangs on Tensor the methods that modules call
from convcore.nn import modules
from convcore.nn.modules import *  # noqa: F403
from convcore.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", *modules.__all__]
