"""oneDNN's switches: there is no oneDNN; ``fp32_precision`` of conv and matmul is convcore's.

``mkldnn.conv.fp32_precision = "bf16"`` lets float32 convolutions, and ``mkldnn.matmul`` products of
matrices, round their factors to bfloat16 where that is faster.  The other switches change nothing.
"""

from __future__ import annotations

from convcore.backends._switches import absent as is_available
from convcore.backends._switches import flags_of
from convcore.engine.conv.selection import current, select

__all__ = ["conv", "flags", "is_available", "matmul", "rnn"]

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = flags_of(__name__)


class _Conv:
    """Convolutions: `convcore.backends.conv.fp32_precision` under PyTorch's name."""

    @property
    def fp32_precision(self) -> str:
        """What products of float32 convolutions may be computed in: 'none', 'ieee', 'bf16'."""
        return current().precision

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        select(precision=precision)


class _Matmul:
    """Products of float32 matrices, linear layers among them."""

    @property
    def fp32_precision(self) -> str:
        """What products of float32 matrices may be computed in: 'none', 'ieee', 'bf16'."""
        return current().matmul

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        select(matmul=precision)


class _Rnn:
    """Recurrent layers, whose products are those of matrices."""

    fp32_precision = "none"


conv, matmul, rnn = _Conv(), _Matmul(), _Rnn()
