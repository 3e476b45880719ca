"""ReduceLROnPlateau: reduce the learning rate when a metric stops improving."""

from __future__ import annotations

import math
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import (
    LRScheduler,
    checked_optimizer,
    set_value,
    values,
    warn_of_epoch,
)
from convcore.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiply the learning rate by ``factor`` when a metric has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
    mode : 'min' or 'max'
        Whether a lower metric is better, or a higher one.
    factor : float
        Below 1.
    patience : int
        Epochs without improvement before the learning rate is reduced.
    threshold : float
        The smallest improvement that counts.
    threshold_mode : 'rel' or 'abs'
        Whether that is relative to the best metric, or absolute.
    cooldown : int
        Epochs after a reduction that do not count.
    min_lr : float, or a list of one a group
        Lower bound of the learning rate.
    eps : float
        A smaller reduction, or one of this size, is not made.

    Raises
    ------
    TypeError
        ``optimizer`` is not an Optimizer.
    ValueError
        An option is out of its range, or ``min_lr`` has not one number a group.

    Examples
    --------
    >>> import convcore
    >>> sgd = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = ReduceLROnPlateau(sgd, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        check_numbers(
            factor=factor, patience=patience, threshold=threshold, cooldown=cooldown, eps=eps
        )
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        self.optimizer = checked_optimizer(optimizer)
        n = len(optimizer.param_groups)
        several = isinstance(min_lr, (list, tuple))
        if several and len(min_lr) != n:
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")
        for least in min_lr if several else [min_lr]:
            check_numbers(min_lr=least)
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * n
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values(optimizer, "lr")
        for name, value, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} {value} is unknown!")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule's state, for `load_state_dict`, without the optimizer's."""
        return {name: value for name, value in vars(self).items() if name != "optimizer"}

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take an epoch's metric, and reduce the learning rates if it is time.

        Parameters
        ----------
        metrics : float, or a tensor of one element
        epoch : int, optional
            The epoch's number; deprecated, as in PyTorch.
        """
        metric = float(metrics)
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(metric, self.best):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values(self.optimizer, "lr")

    @property
    def in_cooldown(self) -> bool:
        """Whether this epoch does not count, soon after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, metric: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "abs":
            return sign * metric > sign * (best + sign * self.threshold)
        return sign * metric > sign * (best * (1.0 + sign * self.threshold))

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(self.min_lrs) != len(groups):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_value(group, "lr", new)
