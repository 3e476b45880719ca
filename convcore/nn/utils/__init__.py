"""Utilities for training loops: gradient clipping, and parameters as one vector."""

from convcore.nn.utils import clip_grad as clip_grad
from convcore.nn.utils import convert_parameters as convert_parameters
from convcore.nn.utils.clip_grad import *  # noqa: F403
from convcore.nn.utils.convert_parameters import *  # noqa: F403

__all__ = [*clip_grad.__all__, *convert_parameters.__all__]
