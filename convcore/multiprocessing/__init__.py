"""Processes: Python's `multiprocessing`, with tensors in shared memory, and `spawn`.

Everything of Python's module is here. A tensor after `Tensor.share_memory_` is the same memory in
all processes that get it; another tensor is copied when it is sent.
"""

from __future__ import annotations

import multiprocessing as _python
from typing import Any

from convcore.multiprocessing import spawn as _spawn
from convcore.multiprocessing.spawn import ProcessContext as ProcessContext
from convcore.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from convcore.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from convcore.multiprocessing.spawn import spawn as spawn
from convcore.multiprocessing.spawn import start_processes as start_processes

_STRATEGY = ("get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy")
__all__ = [*_python.__all__, *_STRATEGY, *_spawn.__all__]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return PyTorch's names of the ways to share memory."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name that `set_sharing_strategy` was given."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept one of PyTorch's strategies; memory is always shared by file descriptors.

    Raises
    ------
    AssertionError
        There is no such strategy.
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
        )
    _strategy = new_strategy


def __getattr__(name: str) -> Any:
    """Return what Python's module has, as its own modules are."""
    return getattr(_python, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
