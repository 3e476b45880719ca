"""PyTorch's `distributed` on a build without it: it is not available, and says so."""

from __future__ import annotations


def is_available() -> bool:
    """Return False."""
    return False


is_initialized = is_nccl_available = is_mpi_available = is_gloo_available = is_available
is_torchelastic_launched = is_ucc_available = is_xccl_available = is_available
