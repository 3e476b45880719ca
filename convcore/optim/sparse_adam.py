"""SparseAdam: a name that raises, for there are no sparse tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from convcore.optim.optimizer import Optimizer

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Raise NotImplementedError: PyTorch's variant of Adam for sparse gradients.

    Gradients are dense here, those of embeddings too; use `Adam`.
    """

    def __init__(
        self,
        params: Iterable,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        raise NotImplementedError(
            "SparseAdam needs sparse gradients, and gradients are dense here: use Adam"
        )
