"""profile: records what a thread does, all of it or the steps of a schedule."""

from __future__ import annotations

import enum
import gzip
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from convcore._hints import hinted
from convcore._misnamed import KeywordHints
from convcore.autograd.grad_mode import Uncalled
from convcore.inspection.profiling import _chrome_trace
from convcore.kernels.runtime._restoring import Ending, undo
from convcore.kernels.runtime.restoring import Calls
from convcore.profiler.averages import EventList, averages
from convcore.profiler.recording import Event, Recording, region
from convcore.profiler.scheduling import ProfilerAction
from convcore.profiler.scheduling import schedule as schedule

_RECORDED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class ProfilerActivity(enum.Enum):
    """What a profile looks at; here the CPU alone."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """Return what a profile can look at."""
    return {ProfilerActivity.CPU}


class profile(KeywordHints, Ending, metaclass=Uncalled):
    """Record the functions that this thread calls, their backward passes, and named regions.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        What is not the CPU sees nothing, and is warned of.
    schedule : callable, optional
        Says what is done in each step; see `schedule`. All is recorded by default.
    on_trace_ready : callable, optional
        Gets the profile at the end of each cycle; see `tensorboard_trace_handler`.
    acc_events : bool
        Whether the events of earlier cycles are kept.
    record_shapes, profile_memory, with_stack, with_flops, with_modules, experimental_config
        Ignored, as are the others that are not listed: times alone are measured.

    Notes
    -----
    Functions are those of the public API, and what is inside them has no rows of its own; a net of
    `optimize_for_inference` calls none. Threads of loaders and others are not seen.

    Examples
    --------
    >>> import convcore
    >>> from convcore.profiler import profile, record_function
    >>> with profile() as found:
    ...     with record_function("twice"):
    ...         x = convcore.ones(2) + 1
    >>> [one.key for one in found.key_averages()]
    ['twice', 'aten::ones', 'aten::add']
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Raise TypeError for a net, which is called inside the context."""
        if args:
            error = TypeError("profile() takes keywords alone: it is a context, for any program")
            usage = "with profile() as found: net(x), or with convcore.inspection.profile(net) as"
            raise hinted(error, f"{usage} found: net(x)")
        return super().__new__(cls, **kwargs)

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        for one in activities or ():
            if not isinstance(one, ProfilerActivity):
                raise TypeError(
                    f"activities are values such as ProfilerActivity.CPU, got {one!r:.99}"
                )
        others = {str(one) for one in activities or ()} - {str(ProfilerActivity.CPU)}
        if others or use_cuda:
            warnings.warn(
                f"{', '.join(sorted(others)) or 'use_cuda'} sees nothing: convcore computes on the "
                "CPU",
                stacklevel=2,
            )
        self._schedule, self._ready, self._keeps = schedule, on_trace_ready, acc_events
        self._events: list[Event] = []
        self._recording: Recording | None = None
        self._step: Calls = ()  # what ends the present step
        self._running = False
        self.step_num = 0
        self.current_action = self._action()

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def start(self) -> None:
        """Begin, as ``with`` does."""
        self._running = True
        self._enter_step()

    def stop(self) -> None:
        """End, as ``with`` does; what was recorded is given to ``on_trace_ready``."""
        self._halt()
        self._ended()

    def step(self) -> None:
        """Say that the program's next step begins; after the end it does nothing."""
        if not self._running:
            return
        action = self.current_action
        self.step_num += 1
        self._leave_step(
            ends=action is ProfilerAction.RECORD_AND_SAVE
            or (action is ProfilerAction.RECORD and self._action() not in _RECORDED)
        )
        self.current_action = self._action()
        self._enter_step()

    def _enter_step(self) -> None:
        if self.current_action not in _RECORDED:
            return
        if self._recording is None:
            self._recording = Recording()
            self._recording.start()
            if not self._keeps:
                self._events = []
        if self._schedule is not None:
            step = region(f"ProfilerStep#{self.step_num}", "step")
            self._step = step._back()
            step._enter()

    def _leave_step(self, ends: bool) -> None:
        undo(self._step)
        self._step = ()
        if self._recording is None or not ends:
            return
        self._recording.stop()
        self._events += self._recording.events
        self._recording = None
        if self._ready is not None:
            self._ready(self)

    def _back(self) -> Calls:
        return ((self._halt, ()),)

    def _enter(self) -> Self:
        self.start()
        return self

    def _halt(self) -> None:
        """Record no longer; it may be called again."""
        self._running = False
        undo(self._step)
        if self._recording is not None:
            self._recording.stop()

    def _ended(self, error: BaseException | None = None) -> None:
        self._leave_step(ends=True)
        self.current_action = ProfilerAction.NONE

    def events(self) -> list[Event]:
        """Return what was recorded, in the order in which it ended."""
        return [*self._events, *(self._recording.events if self._recording else ())]

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Return times by name, which ``.table(sort_by="cpu_time_total")`` shows.

        The arguments are ignored: neither shapes nor stacks are kept.
        """
        return averages(self.events())

    def export_chrome_trace(
        self, path: str | os.PathLike[str], use_python_export: bool = False
    ) -> None:
        """Write a trace as JSON, which https://ui.perfetto.dev shows; compressed if it ends in .gz.

        Parameters
        ----------
        path : str or path
        use_python_export : bool
            Ignored.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        spans: list[_chrome_trace.Span] = [
            (one.start, one.end, one.kind, one.name, {}) for one in self.events()
        ]
        _chrome_trace.write_spans(spans, path)
        if os.fspath(path).endswith(".gz"):
            plain = Path(path).read_bytes()
            Path(path).write_bytes(gzip.compress(plain))


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """Return an ``on_trace_ready`` that writes each trace into a folder.

    Parameters
    ----------
    dir_name : str
        The folder, which is made.
    worker_name : str, optional
        The beginning of the files' names; the machine and the process by default.
    use_gzip : bool
        Whether files are compressed.
    use_python_export : bool
        Ignored.
    """

    def write(found: profile) -> None:
        Path(dir_name).mkdir(parents=True, exist_ok=True)
        name = f"{worker_name or f'{socket.gethostname()}_{os.getpid()}'}.{time.time_ns()}"
        found.export_chrome_trace(
            Path(dir_name, f"{name}.pt.trace.json{'.gz' if use_gzip else ''}")
        )

    return write
