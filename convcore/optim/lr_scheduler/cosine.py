"""Cosine annealing of the learning rate."""

from __future__ import annotations

import math
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import LRScheduler
from convcore.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR"]


class CosineAnnealingLR(LRScheduler):
    """Anneal the learning rate to ``eta_min`` along a cosine, and back up again after it.

    lr(t) = eta_min + (lr(0) - eta_min) * (1 + cos(pi t / T_max)) / 2, computed recursively from the
    epoch before, so that other schedules can act too.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    T_max : int
        The epoch of the lowest learning rate.
    eta_min : float
        The lowest learning rate.

    References
    ----------
    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017,
    equation 5; without the restarts.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        check_numbers(T_max=T_max, eta_min=eta_min)
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        self._warn_if_called_alone()
        lrs = [group["lr"] for group in self.optimizer.param_groups]
        low = self.eta_min
        if self._is_initial:
            return lrs
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The epoch before was at the minimum: there is nothing to multiply.
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * rise for lr, base in zip(lrs, self.base_lrs, strict=True)]
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return [ratio * (lr - low) + low for lr in lrs]

    def _height(self, epoch: int) -> float:
        """Return the height of the cosine at an epoch, from 0 to 2."""
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _get_closed_form_lr(self) -> list[Any]:
        low, height = self.eta_min, self._height(self.last_epoch)
        return [low + (base - low) * height / 2 for base in self.base_lrs]
