"""Utilities for modules: clipping, vectors, normalized and pruned weights, fusion, parametrization.

``prune``, and whatever else is not imported below, is loaded when it is asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from convcore._errors import names as _names
from convcore.nn.utils import clip_grad as clip_grad
from convcore.nn.utils import convert_parameters as convert_parameters
from convcore.nn.utils import rnn as rnn
from convcore.nn.utils.clip_grad import *  # noqa: F403
from convcore.nn.utils.convert_parameters import *  # noqa: F403
from convcore.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from convcore.nn.utils.spectral_norm import spectral_norm as spectral_norm
from convcore.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from convcore.nn.utils.weight_norm import weight_norm as weight_norm

if TYPE_CHECKING:  # what __getattr__ does, for type checkers and editors
    from convcore.nn.utils import fusion as fusion
    from convcore.nn.utils import parametrizations as parametrizations
    from convcore.nn.utils import parametrize as parametrize
    from convcore.nn.utils import prune as prune
    from convcore.nn.utils import stateless as stateless
    from convcore.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from convcore.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights

# Functions of modules that are loaded when they are asked for.
_FUNCTIONS = {"fuse_conv_bn_eval": "fusion", "fuse_conv_bn_weights": "fusion"}
_MODULES = ("parametrizations", "parametrize", "prune", "stateless", "fusion")

__all__ = [
    *clip_grad.__all__,
    *convert_parameters.__all__,
    *_FUNCTIONS,
    *("parametrizations", "parametrize", "stateless"),
    *("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"),
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _FUNCTIONS:
            module = importlib.import_module(f"convcore.nn.utils.{_FUNCTIONS[name]}")
            value = globals()[name] = getattr(module, name)
            return value
        if name in _MODULES:
            return importlib.import_module(f"convcore.nn.utils.{name}")
        raise _names.missing_name(__name__, name)
