"""The modules of `convcore.nn`: Module, layers, losses and containers, under PyTorch's names.

Module, the base class, is in ``module.py`` and is put together from five private files:

- ``_members.py``: registering, finding and listing parameters, buffers and submodules.
- ``_conversion.py``: their dtype, device and memory format.
- ``_hooks.py``: module hooks, where they are stored and in which order one call runs them.
- ``_boundary.py``: how full backward hooks fire: the two autograd nodes around a module's forward.
- ``_state.py``: ``state_dict``, ``load_state_dict`` and their hooks.

Layers, a family a file:

- ``conv``, ``linear``, ``fold``: convolutions, fully connected layers, im2col and col2im.
- ``pooling``, ``upsampling``, ``pixelshuffle``, ``padding``, ``flatten``: layers without weights.
- ``batchnorm``, ``instancenorm``, ``normalization`` (group, layer and RMS norm), ``dropout``.
- ``rnn``, ``rnn_cells``, ``sparse`` (embeddings), ``multihead_attention``, ``transformer``.
- ``loss``, ``margin_loss``: losses; ``activation``, ``distance``.
- ``lazy``: layers that take their number of input channels from the first input.
- ``container``: Sequential, and modules and parameters in lists and dictionaries.

A layer takes its parameters in ``__init__`` and calls a function of `convcore.nn.functional` in
``forward``. To add a family, write its file and import its names below.
"""

from typing import TYPE_CHECKING

from convcore._errors.calls import name_methods, names_in_constructor
from convcore.nn.modules.activation import *  # noqa: F403
from convcore.nn.modules.batchnorm import *  # noqa: F403
from convcore.nn.modules.container import *  # noqa: F403
from convcore.nn.modules.conv import *  # noqa: F403
from convcore.nn.modules.distance import *  # noqa: F403
from convcore.nn.modules.dropout import *  # noqa: F403
from convcore.nn.modules.flatten import *  # noqa: F403
from convcore.nn.modules.fold import *  # noqa: F403
from convcore.nn.modules.instancenorm import *  # noqa: F403
from convcore.nn.modules.lazy import *  # noqa: F403
from convcore.nn.modules.linear import *  # noqa: F403
from convcore.nn.modules.loss import *  # noqa: F403
from convcore.nn.modules.margin_loss import *  # noqa: F403
from convcore.nn.modules.module import Module as Module
from convcore.nn.modules.normalization import *  # noqa: F403
from convcore.nn.modules.padding import *  # noqa: F403
from convcore.nn.modules.pixelshuffle import *  # noqa: F403
from convcore.nn.modules.pooling import *  # noqa: F403
from convcore.nn.modules.rnn import *  # noqa: F403
from convcore.nn.modules.sparse import *  # noqa: F403
from convcore.nn.modules.transformer import *  # noqa: F403
from convcore.nn.modules.upsampling import *  # noqa: F403

for _class in [value for value in vars().values() if isinstance(value, type)]:
    name_methods(_class, ("__init__", "forward"))
    names_in_constructor(_class)
del _class

if not TYPE_CHECKING:  # type checkers understand the imports above, and no computed list
    __all__ = [name for name, value in vars().items() if isinstance(value, type)]
