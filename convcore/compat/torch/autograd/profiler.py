"""PyTorch's older path of `torch.profiler`."""

from __future__ import annotations

from typing import Any

from convcore.profiler import EventList as EventList
from convcore.profiler import profile as _profile
from convcore.profiler import record_function as record_function


class profile(_profile):
    """`convcore.profiler.profile` with the older switch; options change nothing."""

    def __new__(cls, enabled: bool = True, **options: Any) -> Any:
        """Make it; whatever the options are."""
        return super().__new__(cls)

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, **options: Any) -> None:
        super().__init__(use_cuda=use_cuda)
        self.enabled = enabled

    def start(self) -> None:
        """Begin, if it is enabled."""
        if self.enabled:
            super().start()

    def __str__(self) -> str:
        return str(self.key_averages())

    def __getattr__(self, name: str) -> Any:
        """Return what the sums have, such as ``table``."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.key_averages(), name)
