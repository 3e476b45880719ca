"""The modules: layers, losses and containers, a family a file."""

from convcore.nn.modules import container
from convcore.nn.modules.container import *  # noqa: F403
from convcore.nn.modules.module import Module

# A family of layers: import the file, import its names, and add its __all__ to the list.
__all__ = ["Module", *container.__all__]
