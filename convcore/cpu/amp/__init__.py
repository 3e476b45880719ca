"""The older names of `torch.amp`, for the CPU."""

from convcore.amp import custom_bwd as custom_bwd
from convcore.amp import custom_fwd as custom_fwd
from convcore.amp import older


class autocast(older.autocast):
    """`convcore.amp.autocast` of the CPU."""

    _device_type = "cpu"


class GradScaler(older.GradScaler):
    """`convcore.amp.GradScaler` of the CPU."""

    _device_type = "cpu"
