"""The modules: layers, losses and containers, a family a file."""

from typing import TYPE_CHECKING

from convcore.nn.modules import (
    activation,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    upsampling,
)
from convcore.nn.modules.activation import *  # noqa: F403
from convcore.nn.modules.batchnorm import *  # noqa: F403
from convcore.nn.modules.container import *  # noqa: F403
from convcore.nn.modules.conv import *  # noqa: F403
from convcore.nn.modules.distance import *  # noqa: F403
from convcore.nn.modules.dropout import *  # noqa: F403
from convcore.nn.modules.flatten import *  # noqa: F403
from convcore.nn.modules.fold import *  # noqa: F403
from convcore.nn.modules.instancenorm import *  # noqa: F403
from convcore.nn.modules.linear import *  # noqa: F403
from convcore.nn.modules.loss import *  # noqa: F403
from convcore.nn.modules.module import Module as Module
from convcore.nn.modules.normalization import *  # noqa: F403
from convcore.nn.modules.padding import *  # noqa: F403
from convcore.nn.modules.pixelshuffle import *  # noqa: F403
from convcore.nn.modules.pooling import *  # noqa: F403
from convcore.nn.modules.upsampling import *  # noqa: F403

# A family of layers: import the file, import its names, and add the file to this list.
_FAMILIES = (
    *(activation, batchnorm, container, conv, distance, dropout, flatten, fold),
    *(instancenorm, linear, loss, normalization, padding, pixelshuffle, pooling, upsampling),
)

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = ["Module", *[name for family in _FAMILIES for name in family.__all__]]
