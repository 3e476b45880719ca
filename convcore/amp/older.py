"""What `torch.cpu.amp` and `torch.cuda.amp` share: the older names of `torch.amp`."""

from __future__ import annotations

from typing import Any, ClassVar

from convcore import amp


class autocast(amp.autocast):
    """`convcore.amp.autocast` of a device that subclasses name."""

    _usual = ""
    _device_type: ClassVar[str]

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True):
        super().__init__(self._device_type, dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`convcore.amp.GradScaler` of a device that subclasses name."""

    _device_type: ClassVar[str]

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        factors = (init_scale, growth_factor, backoff_factor, growth_interval)
        super().__init__(self._device_type, *factors, enabled)
