"""Utilities: gradient clipping, parameters as one vector, and sequences in ``rnn``."""

from convcore.nn.utils import clip_grad as clip_grad
from convcore.nn.utils import convert_parameters as convert_parameters
from convcore.nn.utils import rnn as rnn
from convcore.nn.utils.clip_grad import *  # noqa: F403
from convcore.nn.utils.convert_parameters import *  # noqa: F403

__all__ = [*clip_grad.__all__, *convert_parameters.__all__]
