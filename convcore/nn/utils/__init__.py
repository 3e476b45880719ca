"""Utilities for modules: clipping, vectors, normalized and pruned weights, fusion, parametrization.

``prune``, and whatever else is not imported below, is loaded when it is asked for.
"""

import importlib
from typing import Any

from convcore.nn.utils import clip_grad as clip_grad
from convcore.nn.utils import convert_parameters as convert_parameters
from convcore.nn.utils import rnn as rnn
from convcore.nn.utils.clip_grad import *  # noqa: F403
from convcore.nn.utils.convert_parameters import *  # noqa: F403
from convcore.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from convcore.nn.utils.spectral_norm import spectral_norm as spectral_norm
from convcore.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from convcore.nn.utils.weight_norm import weight_norm as weight_norm

# Functions of modules that are loaded when they are asked for.
_FUNCTIONS = {
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "skip_init": "init",
}
_MODULES = ("parametrizations", "parametrize", "prune", "stateless", "fusion", "memory_format")

__all__ = [
    *clip_grad.__all__,
    *convert_parameters.__all__,
    *_FUNCTIONS,
    *("parametrizations", "parametrize", "stateless"),
    *("remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"),
]


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        module = importlib.import_module(f"convcore.nn.utils.{_FUNCTIONS[name]}")
        value = globals()[name] = getattr(module, name)
        return value
    if name in _MODULES:
        return importlib.import_module(f"convcore.nn.utils.{name}")
    raise AttributeError(f"module 'convcore.nn.utils' has no attribute {name!r}")
