"""CyclicLR: a learning rate that goes up and down between two bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import (
    LRScheduler,
    checked_optimizer,
    copied,
    of_each_group,
    set_value,
)
from convcore.optim.lr_scheduler.momentum import CyclesMomentum
from convcore.optim.optimizer import Optimizer

__all__ = ["CyclicLR"]

# How the height of a cycle falls, and whether that goes by the number of the cycle or of the step.
_MODES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda gamma, x: 1.0, "cycle"),
    "triangular2": (lambda gamma, x: 1 / 2.0 ** (x - 1), "cycle"),
    "exp_range": (lambda gamma, x: gamma**x, "iterations"),
}


class CyclicLR(CyclesMomentum):
    """Cycle the learning rate between ``base_lr`` and ``max_lr``, linearly; step it every batch.

    The momentum, or Adam's first beta, falls while the learning rate rises.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    base_lr, max_lr : float, or a list of one a group
    step_size_up, step_size_down : int
        Steps of the rise and of the fall, which takes as many as the rise by default.
    mode : 'triangular', 'triangular2' or 'exp_range'
        Whether cycles stay as high, are halved each time, or shrink by ``gamma`` a step.
    gamma : float
    scale_fn : callable, optional
        Number -> factor of a cycle's height; takes the place of ``mode``.
    scale_mode : 'cycle' or 'iterations'
        Whether ``scale_fn`` takes the number of the cycle, from 1, or of the step.
    cycle_momentum : bool
        Whether to change the momentum too.
    base_momentum, max_momentum : float, or a list of one a group
        The momentum at the largest learning rate, and at the smallest.

    Raises
    ------
    ValueError
        ``mode`` is none of these, the optimizer has no momentum, or a list has not one number a
        group.

    References
    ----------
    L. N. Smith, "Cyclical learning rates for training neural networks", WACV 2017.
    """

    _not_saved = (*LRScheduler._not_saved, "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = checked_optimizer(optimizer)
        check_numbers(step_size_up=step_size_up, gamma=gamma)
        base_lrs = of_each_group("base_lr", base_lr, optimizer)
        self.max_lrs = of_each_group("max_lr", max_lr, optimizer)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in _MODES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _MODES[mode][1]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            momenta = self._momenta(base_momentum, max_momentum)
            self.base_momentums, self.max_momentums = map(list, zip(*momenta, strict=True))
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_value(group, "lr", lr)
            if cycle_momentum:
                self._begin(momenta)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the factor of the height of cycle, or of step, ``x``."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return _MODES[self.mode][0](self.gamma, x)

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this step and set their momentum; see `step`."""
        self._warn_if_called_alone()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        share = 1.0 + self.last_epoch / self.total_size - cycle
        rising = share <= self.step_ratio
        height = share / self.step_ratio if rising else (share - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            groups = self.optimizer.param_groups
            ends = zip(groups, self.base_momentums, self.max_momentums, strict=True)
            for group, base, largest in ends:
                self._set_momentum(group, largest - (largest - base) * height * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [copied(base) + (largest - base) * height * scale for base, largest in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the attributes of a callable object, but nothing of a function."""
        own = super().state_dict()
        scale = self._scale_fn_custom
        plain = scale is None or not hasattr(scale, "__dict__") or hasattr(scale, "__code__")
        return {**own, "_scale_fn_custom": None if plain else vars(scale).copy()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned; a plain function stays as it is."""
        own = {name: value for name, value in state_dict.items() if name != "_scale_fn_custom"}
        super().load_state_dict(own)
        if state_dict.get("_scale_fn_custom") is not None:
            vars(self._scale_fn_custom).update(state_dict["_scale_fn_custom"])
