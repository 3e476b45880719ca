"""The older names of `torch.amp`, for CUDA."""

from convcore.amp import custom_bwd as custom_bwd
from convcore.amp import custom_fwd as custom_fwd
from convcore.compat.torch import _older_amp


class autocast(_older_amp.autocast):
    """`convcore.amp.autocast` of CUDA."""

    _device_type = "cuda"


class GradScaler(_older_amp.GradScaler):
    """`convcore.amp.GradScaler` of CUDA."""

    _device_type = "cuda"
