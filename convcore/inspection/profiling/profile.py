"""profile: a context manager that measures what a net does in it."""

from __future__ import annotations

import os
from functools import cached_property
from time import perf_counter_ns

from convcore import nn
from convcore.engine.runtime import memory
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.engine.runtime.threads import get_num_threads
from convcore.inspection._models import check_model
from convcore.inspection.profiling import _chrome_trace, _onnxruntime, _table
from convcore.inspection.profiling._peak import peak_gflops
from convcore.inspection.profiling._recorder import Recorder
from convcore.inspection.profiling._tree import ProfileRow, tree_of
from convcore.inspection.profiling._waiting import waited


class Profile(Restoring):
    """A profile, as `profile` makes it: prints as a tree, in at most 100 columns.

    Attributes
    ----------
    seconds : float
        Time inside the ``with`` block.
    threads : int
        The threads that convcore computed with.
    peak_bytes : int
        The most bytes that arrays of 64 KiB and more took at once: see `memory_stats`, whose peaks
        begin anew with a profile.
    waited : float
        Seconds that threads waited for a core meanwhile, for other programs used it; 0 where the
        system does not tell (it is Linux that does).
    """

    def __init__(self, model: nn.Module) -> None:
        check_model(model)
        self._recorder = Recorder(model)
        self._by_output = _onnxruntime.names_by_output(model)
        self._begun = self._ended = 0
        self.seconds = 0.0
        self.threads = 0
        self.peak_bytes = 0
        self.waited = 0.0

    def _back(self) -> Calls:
        if self._begun:
            raise RuntimeError("a profile runs once: make another one")
        return ((self._note_end, ()), *self._recorder.back(), (self._measure, ()))

    def _enter(self) -> Profile:
        self.threads = get_num_threads()
        memory.reset_peak_memory_stats()
        self._recorder.start()
        self._waited_before = waited()
        self._begun = perf_counter_ns()
        return self

    def _note_end(self) -> None:
        self._ended = self._ended or (perf_counter_ns() if self._begun else 0)

    def _measure(self) -> None:
        if self._begun:
            self.waited = max(0.0, waited() - self._waited_before)
            self.seconds = 1e-9 * (self._ended - self._begun)
            self.peak_bytes = memory.memory_stats()["allocated_bytes.peak"]

    @cached_property
    def rows(self) -> ProfileRow:
        """The tree: its root stands for the whole ``with`` block.

        Raises
        ------
        RuntimeError
            The profile is still running.
        """
        if not self._ended:
            raise RuntimeError("the profile is still running: leave its with block first")
        return tree_of(self._recorder, self._ended)

    @property
    def multiply_adds(self) -> int:
        """Multiply-adds of the forward pass, by definition: of convolutions and matrix products."""
        return self.rows.multiply_adds

    @property
    def flops(self) -> int:
        """Operations of both passes, two for each multiply-add."""
        return 2 * (self.rows.multiply_adds + self.rows.backward_multiply_adds)

    @cached_property
    def peak_gflops(self) -> float:
        """The machine's speed in a large float32 matrix product, measured when first asked for."""
        return peak_gflops()

    def slowest(self, count: int = 10) -> list[ProfileRow]:
        """Return the layers and operations that took longest in both passes, slowest first.

        Layers are modules without modules inside; operations, those outside of layers. Of a plan
        it is its steps.
        """
        return sorted(_leaves(self.rows), key=lambda row: -row.seconds)[:count]

    def table(
        self, depth: int | None = None, *, beside: str | os.PathLike[str] | None = None
    ) -> str:
        """Return the tree as text, and the steps of plans.

        Parameters
        ----------
        depth : int, optional
            Of the tree: 0 shows what stands in the block itself. With a depth, steps are left out.
        beside : path, optional
            A profile of the same model that a session of ONNX Runtime wrote. Then the steps of a
            net from `convcore.onnx.load` stand beside the nodes of that profile, matched by names,
            with the times of one call (of ONNX Runtime's runs the first is left out).

        Raises
        ------
        OSError, ValueError
            ``beside`` cannot be read, or has no nodes.
        """
        return _table.text(self, depth, None if beside is None else _onnxruntime.read(beside))

    def __str__(self) -> str:
        return self.table() if self._ended else "<Profile, which has not ended>"

    __repr__ = __str__

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a trace as JSON, which https://ui.perfetto.dev and about:tracing show.

        Raises
        ------
        RuntimeError
            The profile is still running.
        OSError
            The file cannot be written.
        """
        if not self._ended:
            raise RuntimeError("the profile is still running: leave its with block first")
        _chrome_trace.write(self._recorder, self._ended, path)


def _leaves(row: ProfileRow) -> list[ProfileRow]:
    found = []
    for child in row.children:
        inside = any(one.is_module or one.is_step for one in child.children)
        found += _leaves(child) if inside else [child]
    return found


def profile(model: nn.Module) -> Profile:
    """Profile a net: time, memory, multiply-adds and algorithm of each module and operation.

    Parameters
    ----------
    model : Module
        What it does inside the ``with`` block is measured, forward and backward; so are operations
        outside of it, such as a loss.

    Returns
    -------
    Profile
        A context manager. After the block, it prints as a tree; `Profile.rows` is that tree,
        `Profile.slowest` its longest parts, `Profile.export_chrome_trace` writes it for Perfetto.

    Raises
    ------
    TypeError
        ``model`` is no Module.

    Notes
    -----
    Of this thread. An operation's forward time is that since the event before it in the call:
    Python between two operations counts for the second. Operations are seen where gradients are
    recorded; under `no_grad` modules are. A batch norm that is fused with the ReLU after it, as the
    nets of convcore.models do, is one operation of the module that calls it. A net made by
    `optimize_for_inference` runs its plan, of which each step is measured, with the names of all
    layers that are fused in it; its layers are called one by one where it has no plan, for instance
    for a net of several inputs. Multiply-adds are
    those of convolutions and matrix products, by definition. Every event is kept: profile a few
    steps, not an epoch.

    The overhead is below 1.05 of the time, by ``python benchmarks/inspection_profile.py``.

    Examples
    --------
    >>> import convcore
    >>> from convcore import inspection
    >>> net = convcore.models.lenet()
    >>> with inspection.profile(net) as found:
    ...     net(convcore.zeros(1, 1, 28, 28)).sum().backward()
    >>> found.multiply_adds
    480500
    """
    return Profile(model)


vars(profile)["usage"] = "write it as a context: with inspection.profile(net) as found: net(x)"
