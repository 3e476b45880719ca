"""Momentum that falls while the learning rate rises: what the cyclic schedules share."""

from __future__ import annotations

from typing import Any

from convcore.optim.lr_scheduler.base import LRScheduler, of_each_group


class CyclesMomentum(LRScheduler):
    """A schedule that also sets the groups' momentum, or Adam's first beta."""

    use_beta1: bool

    def _momenta(self, base: Any, largest: Any) -> list[tuple[Any, Any]]:
        """Return each group's (smallest, largest) momentum, checked.

        Raises
        ------
        ValueError
            The optimizer has no momentum, or a list has not one number a group.
        """
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in defaults
        largest = of_each_group("max_momentum", largest, self.optimizer)
        base = of_each_group("base_momentum", base, self.optimizer)
        return list(zip(base, largest, strict=True))

    def _begin(self, momenta: list[tuple[Any, Any]]) -> None:
        """Set the groups' largest momentum, and keep both ends in the groups."""
        for group, (low, high) in zip(self.optimizer.param_groups, momenta, strict=True):
            self._set_momentum(group, high)
            group.update(max_momentum=high, base_momentum=low)

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum
