"""Combined schedulers: one after the other (SequentialLR), or all at once (ChainedScheduler)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from convcore.optim.lr_scheduler.base import LRScheduler, set_value, values
from convcore.optim.lr_scheduler.plateau import ReduceLROnPlateau
from convcore.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Combined(LRScheduler):
    """A schedule made of others; its state holds theirs."""

    _schedulers: list[Any]
    _not_saved = (*LRScheduler._not_saved, "_schedulers")

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer | None, none: str) -> None:
        """Raise unless the schedules can be combined; ``none`` is for the message of none.

        Raises
        ------
        TypeError
            An item is not a schedule.
        ValueError
            There are none, one is a `ReduceLROnPlateau`, or one has another optimizer.
        """
        own = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{own} expects at least one scheduler{none}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{own} at index {number} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{own} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{number} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{own} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {number} has "
                    f"{scheduler.optimizer}, which is different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the schedules' states under "_schedulers"."""
        own = {name: value for name, value in vars(self).items() if name not in self._not_saved}
        return {**own, "_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        own = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(own)
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


class SequentialLR(_Combined):
    """Run one schedule after the other.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    schedulers : list of LRScheduler
        In the order in which they run.
    milestones : list of int
        The epochs at which the second and each later schedule starts.

    Raises
    ------
    TypeError
        An item is not a schedule.
    ValueError
        There are none, one is a `ReduceLROnPlateau` or has another optimizer, or the milestones are
        not one fewer than the schedules.

    Examples
    --------
    >>> import convcore
    >>> from convcore.optim import lr_scheduler
    >>> sgd = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], lr=1.0)
    >>> warm_up = lr_scheduler.LinearLR(sgd, start_factor=0.5, total_iters=2)
    >>> schedule = SequentialLR(sgd, [warm_up, lr_scheduler.ExponentialLR(sgd, 0.9)], [2])
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._check(schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule took its initial step when it was made; only the first one's shall count.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        _undo_beginning(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next epoch and set its learning rates."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Apply several schedules at every step, each to the learning rates that the last one set.

    Parameters
    ----------
    schedulers : sequence of LRScheduler
    optimizer : Optimizer, optional
        The schedules' optimizer.

    Raises
    ------
    TypeError
        An item is not a schedule.
    ValueError
        There are none, or one is a `ReduceLROnPlateau` or has another optimizer.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        self._check(schedulers, optimizer, " to be chained")
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or schedulers[0].optimizer
        self._last_lr = values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Advance each schedule by a step."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values(self.optimizer, "lr")


def _undo_beginning(scheduler: Any) -> None:
    """Undo schedules' initial steps, those of nested ones too."""
    inner = getattr(scheduler, "_schedulers", None)
    if inner is None:
        scheduler.last_epoch -= 1
    else:
        for one in inner:
            _undo_beginning(one)
