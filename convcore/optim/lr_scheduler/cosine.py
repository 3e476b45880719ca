"""Cosine annealing of the learning rate, without or with restarts."""

from __future__ import annotations

import math
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import LRScheduler
from convcore.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


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


class CosineAnnealingWarmRestarts(LRScheduler):
    """Anneal the learning rate to ``eta_min`` along a cosine, and restart from the first one.

    lr = eta_min + (lr(0) - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, where T_cur counts the
    epochs since the last restart and T_i those between two restarts.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    T_0 : int
        Epochs until the first restart.
    T_mult : int
        Factor of the number of epochs after each restart.
    eta_min : float
        The lowest learning rate.

    Raises
    ------
    ValueError
        An option is out of its range.

    References
    ----------
    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (int, float)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        self._warn_if_called_alone()
        low, height = self.eta_min, 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch and set its learning rates.

        Parameters
        ----------
        epoch : float, optional
            The epoch to set instead, with the share of it that has passed:
            ``epoch + batch / batches``.
        """
        if epoch is not None or self.last_epoch < 0:
            epoch = 0 if epoch is None else epoch
            self._place(epoch)
        else:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        self._update_lr(math.floor(epoch))

    def _place(self, epoch: float) -> None:
        """Set when the last restart was before an epoch, and when the next one is."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        restarts = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        factor = self.T_mult**restarts
        self.T_cur = epoch - self.T_0 * (factor - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * factor
