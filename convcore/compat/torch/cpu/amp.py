"""The older names of `torch.amp`, for the CPU."""

from convcore.amp import custom_bwd as custom_bwd
from convcore.amp import custom_fwd as custom_fwd
from convcore.compat.torch import _older_amp


class autocast(_older_amp.autocast):
    """`convcore.amp.autocast` of the CPU."""

    _device_type = "cpu"


class GradScaler(_older_amp.GradScaler):
    """`convcore.amp.GradScaler` of the CPU."""

    _device_type = "cpu"
