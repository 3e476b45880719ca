"""PyTorch's `distributed`: convcore's, and what programs ask about backends that are not here."""

from __future__ import annotations

from convcore.distributed import *  # noqa: F403
from convcore.distributed.group import ProcessGroup as ProcessGroup


def _no() -> bool:
    """Return False."""
    return False


is_nccl_available = is_gloo_available = is_torchelastic_launched = _no
is_ucc_available = is_xccl_available = _no
