"""Which steps of a program a profile records."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable


class ProfilerAction(enum.Enum):
    """What a profile does in a step; RECORD_AND_SAVE is the last step of a cycle."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Return a schedule: ``wait`` and ``warmup`` steps without a record, ``active`` with one.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of a cycle.
    repeat : int
        Cycles; 0 does not end.
    skip_first : int
        Steps before the first cycle.
    skip_first_wait : int
        Whether the first cycle begins without its wait, if it is not 0.

    Raises
    ------
    AssertionError
        A number is negative, or nothing is active.
    """
    if min(wait, warmup, active - 1, repeat, skip_first) < 0:
        raise AssertionError(
            f"wait={wait}, warmup={warmup}, repeat={repeat} and skip_first={skip_first} have to be "
            f"0 or more, and active={active} 1 or more"
        )
    if not warmup:
        warnings.warn("without warmup, the first steps make times too long", stacklevel=2)
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        step += wait if skip_first_wait else 0
        place = step % cycle
        if place < wait or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action
