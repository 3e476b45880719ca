"""The older names of `torch.amp`, for CUDA."""

from convcore.amp import custom_bwd as custom_bwd
from convcore.amp import custom_fwd as custom_fwd
from convcore.amp import older


class autocast(older.autocast):
    """`convcore.amp.autocast` of CUDA."""

    _device_type = "cuda"


class GradScaler(older.GradScaler):
    """`convcore.amp.GradScaler` of CUDA."""

    _device_type = "cuda"
