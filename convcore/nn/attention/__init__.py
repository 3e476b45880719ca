"""Switches of PyTorch's attention kernels, which change nothing here: there is one way."""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum

from convcore._errors import names as _names
from convcore.engine.runtime.restoring import Calls, restoring

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's kernels for scaled dot-product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@restoring
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Generator[Calls, None, dict]:
    """Do nothing: a context in which PyTorch chooses among these kernels for attention.

    Raises
    ------
    AssertionError
        ``backends`` is neither a kernel nor a list.
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    yield ()
    return {}


_names.explain_names(__name__)
