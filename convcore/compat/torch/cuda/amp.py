"""The older names of `torch.amp` for cuda."""

from __future__ import annotations

from typing import Any

from convcore import amp
from convcore.amp import custom_bwd as custom_bwd
from convcore.amp import custom_fwd as custom_fwd


class autocast(amp.autocast):
    """`convcore.amp.autocast` of cuda."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`convcore.amp.GradScaler` of cuda."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        factors = (init_scale, growth_factor, backoff_factor, growth_interval)
        super().__init__("cuda", *factors, enabled)
