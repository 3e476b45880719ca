"""CUDA's switches: there is no CUDA, and they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convcore.backends._switches import absent as is_built
from convcore.engine.runtime.restoring import Calls, restoring

__all__ = ["is_built", "matmul", "sdp_kernel"]


class _Matmul:
    """How CUDA multiplies matrices."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True
    fp32_precision = "none"


matmul = _Matmul()


def _enabled() -> bool:
    """Return True, PyTorch's default."""
    return True


def _ignored(enabled: bool) -> None:
    """Do nothing: attention has one implementation."""


flash_sdp_enabled = mem_efficient_sdp_enabled = math_sdp_enabled = cudnn_sdp_enabled = _enabled
enable_flash_sdp = enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = _ignored


@restoring
def sdp_kernel(*args: Any, **kwargs: Any) -> Iterator[Calls]:
    """Choose no implementation of attention: there is one."""
    yield ()
