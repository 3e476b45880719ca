"""PyTorch's `cuda` module on a machine without CUDA: there is no device.

Many programs call ``cuda.is_available()`` to choose their device, and seed generators or empty
caches "on all devices" without asking. Functions that need a device raise an error that says so.
"""

from __future__ import annotations

from typing import Any, NoReturn

from convcore._errors import names as _names
from convcore._tensor.device import check_device as _check_device
from convcore.cuda import amp as amp

__all__ = [
    "amp",
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "get_device_properties",
    "get_rng_state_all",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state_all",
    "synchronize",
]


def is_available() -> bool:
    """Return False.

    Examples
    --------
    >>> "cuda" if is_available() else "cpu"
    'cpu'
    """
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def is_bf16_supported() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: no device draws numbers. `convcore.manual_seed` seeds the CPU's generator."""


def seed() -> None:
    """Do nothing, as `manual_seed` does."""


manual_seed_all = manual_seed


def get_rng_state_all() -> list:
    """Return an empty list: there are no devices' generators."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Do nothing: there are no devices' generators."""


seed_all = seed


def empty_cache() -> None:
    """Do nothing: no memory of a device is kept. `convcore.empty_cache` releases the CPU's."""


def memory_allocated(device: Any = None) -> int:
    """Return 0."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def set_device(device: Any) -> NoReturn:
    """Raise RuntimeError: this library computes on the CPU, and there is no other device."""
    _check_device("cuda")
    raise AssertionError("a device other than the CPU was accepted")


def init() -> NoReturn:
    """Raise RuntimeError: there is no device."""
    set_device("cuda")


def synchronize(device: Any = None) -> NoReturn:
    """Raise RuntimeError: there is no device to wait for, or to ask about."""
    set_device(device)


current_device = init
get_device_name = get_device_properties = synchronize

_names.explain_names(__name__)
