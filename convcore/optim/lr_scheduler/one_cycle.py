"""One-cycle schedule of learning rate and momentum."""

from __future__ import annotations

import math
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import LRScheduler, checked_optimizer, of_each_group
from convcore.optim.optimizer import Optimizer

__all__ = ["OneCycleLR"]


class OneCycleLR(LRScheduler):
    """One-cycle policy: raise the learning rate to ``max_lr``, then anneal it far below the first.

    Step it after every batch. The momentum, or Adam's first beta, falls while the learning rate
    rises.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    max_lr : float, or a list of one a group
        The largest learning rate.
    total_steps : int, optional
        Steps of the cycle; else ``epochs`` times ``steps_per_epoch``.
    epochs, steps_per_epoch : int, optional
    pct_start : float
        Share of the steps in which the learning rate rises.
    anneal_strategy : 'cos' or 'linear'
    cycle_momentum : bool
        Whether to change the momentum too.
    base_momentum, max_momentum : float, or a list of one a group
        The momentum at the largest learning rate, and at the smallest ones.
    div_factor : float
        The largest learning rate over the first.
    final_div_factor : float
        The first learning rate over the last.
    three_phase : bool
        Whether to fall as it rose first, and below that in a third phase.

    Raises
    ------
    ValueError
        An option is out of its range, or there are more steps than the cycle has.

    References
    ----------
    L. N. Smith, N. Topin, "Super-convergence: very fast training of neural networks using large
    learning rates", arXiv 1708.07120, section 3.
    """

    use_beta1: bool

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = checked_optimizer(optimizer)
        self.total_steps = _checked_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        check_numbers(
            div_factor=div_factor, final_div_factor=final_div_factor, last_epoch=last_epoch
        )
        # All arguments are checked before anything is written into the groups.
        largest = of_each_group("max_lr", max_lr, optimizer)
        initial = [lr / div_factor for lr in largest]
        least = [lr / final_div_factor for lr in initial]
        self.cycle_momentum = cycle_momentum
        momenta = self._momenta(base_momentum, max_momentum) if cycle_momentum else []
        if last_epoch == -1:
            groups = zip(optimizer.param_groups, initial, largest, least, strict=True)
            for group, *lrs in groups:
                group.update(zip(("initial_lr", "max_lr", "min_lr"), lrs, strict=True))
            if cycle_momentum:
                self._begin(momenta)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this step and set their momentum; see `step`."""
        self._warn_if_called_alone()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase, share = self._where(step)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, share))
        return lrs

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

    def _where(self, step: int) -> tuple[dict[str, Any], float]:
        """Return the phase of a step, and the share of it that has passed."""
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        return phase, (step - start) / (phase["end_step"] - start)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


def _phases(total_steps: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Return each phase: its last step, and the group's options that it starts and ends with."""
    rise = float(pct_start * total_steps)
    ends = [rise - 1, 2 * rise - 2, total_steps - 1] if three else [rise - 1, total_steps - 1]
    lrs = ["initial_lr", "max_lr", *(["initial_lr"] if three else []), "min_lr"]
    momenta = ["max_momentum", "base_momentum", "max_momentum", "max_momentum"]
    return [
        {
            "end_step": end,
            "start_lr": lrs[number],
            "end_lr": lrs[number + 1],
            "start_momentum": momenta[number],
            "end_momentum": momenta[number + 1],
        }
        for number, end in enumerate(ends)
    ]


def _checked_steps(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    """Return the steps of the cycle, or raise ValueError."""

    def positive(name: str, value: Any) -> int:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total is not None:
        return positive("total_steps", total)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)
