"""DistributedDataParallel: a name that raises, for there are no process groups."""

from __future__ import annotations

from typing import Any

from convcore.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Raise ValueError, as PyTorch does without a process group: there are none here.

    `DataParallel` has the same ``module`` and the same keys of the state, in one process.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group. There are no process groups here: use the module itself, or "
            "DataParallel."
        )
