"""watch: a live view of a training loop, as a context manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.inspection.live.report import Report
from convcore.inspection.live.training import Training
from convcore.inspection.live.views import view


class Watch(Restoring):
    """What `watch` returns.

    Attributes
    ----------
    last : Report or None
        What was shown last: ``step``, ``seconds``, ``loss``, and ``layers``, by name, with
        ``gradient``, ``dead`` and ``units``.
    """

    def __init__(self, every: float, show: Callable[[Report], Any] | None) -> None:
        self.last: Report | None = None
        self._show = show
        self._training = Training(self._told, every)
        self._is_open = False

    @property
    def steps(self) -> int:
        """How many steps optimizers made in the block."""
        return self._training.steps

    def _back(self) -> Calls:
        if self._is_open:
            raise RuntimeError("watch: this block is open already: make another one")
        self._view = view() if self._show is None else None
        closed = () if self._view is None else ((self._view.close, ()),)
        return ((self._training.close, ()), *closed, (setattr, (self, "_is_open", False)))

    def _enter(self) -> Watch:
        self._is_open = True
        if self._view is not None:
            self._view.open()
            self._shown = self._view.show
        else:
            self._shown = self._show
        self._training.open()
        return self

    def _told(self, report: Report) -> None:
        self.last = report
        self._shown(report)


def watch(every: float = 1.0, *, show: Callable[[Report], Any] | None = None) -> Watch:
    """Watch training live: loss, gradient norm by layer and dead units, as a context manager.

    Parameters
    ----------
    every : float
        The least seconds between two looks, 0 or more.
    show : callable, optional
        Gets each report. Default: in a terminal with rich a table on standard error that changes in
        place, else a line there.

    Returns
    -------
    Watch

    Raises
    ------
    ValueError
        ``every`` is no number from 0 on.

    Notes
    -----
    Any loop is seen that calls ``loss.backward()`` and an optimizer's ``step()`` in the thread that
    opened the block; of a scaled loss the scaled value. The net is the module with most of the
    optimizer's parameters; of several nets, that of the first optimizer that steps.

    A unit, a channel or feature of a ReLU, is dead where it is 0 for the whole batch of the step
    that is looked at. Other steps cost microseconds.

    Examples
    --------
    >>> import convcore
    >>> from convcore import inspection, nn
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> optimizer = convcore.optim.SGD(net.parameters(), lr=0.1)
    >>> with inspection.watch(show=lambda report: None) as seen:
    ...     net(convcore.ones(4, 2)).sum().backward()
    ...     optimizer.step()
    >>> seen.steps, list(seen.last.layers)
    (1, ['0', '2'])
    """
    if isinstance(every, bool) or not isinstance(every, int | float) or not every >= 0:
        raise ValueError(f"every must be seconds, 0 or more, got {_shown(every)}")
    return Watch(every, show)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | str) else type(value).__name__
