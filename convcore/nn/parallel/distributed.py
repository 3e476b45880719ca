"""DistributedDataParallel: one model trained by all processes of a group, each on its data."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import is_grad_enabled
from convcore.distributed.group import ProcessGroup, resolve
from convcore.engine.runtime._restoring import Ending
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.nn.modules.batchnorm import SyncBatchNorm
from convcore.nn.modules.module import Module
from convcore.nn.parallel.reducer import CommHook, Reducer
from convcore.nn.parallel.replicas import check_alike, copy_from
from convcore.nn.parallel.sharded_step import ShardedStep, tensors_in

__all__ = ["DistributedDataParallel"]

_MEGABYTE = 1024 * 1024


class Uneven(NamedTuple):
    """What `join` was asked for."""

    by_all: bool
    throws: bool


class DistributedDataParallel(Module):
    """Train one model in all processes: gradients are averaged while the backward pass goes on.

    Each process calls the wrapper on its own part of a batch, then ``backward()`` on its loss; the
    gradients are then those of the whole batch, where a loss is a mean over samples: parts count by
    their sizes. With ``shards`` the trained weights have the same bits for any number of processes.

    Parameters
    ----------
    module : Module
        The submodule ``module``: keys of the state begin with "module.". Parameters and buffers
        become those of the first process.
    device_ids, output_device, check_reduction
        Ignored: there is one device.
    dim : int or None
        The batch's axis in the inputs, whose sizes weigh the gradients; None weighs all alike.
    broadcast_buffers : bool
        Whether each forward pass in training begins with the first process's buffers.
    init_sync : bool
        Whether parameters and buffers become those of the first process.
    process_group : ProcessGroup
        The default group by default.
    bucket_cap_mb : float
        About how many MiB of gradients are reduced at once; 25 by default.
    find_unused_parameters : bool
        Whether a forward pass may leave parameters unused, which costs a walk through its graph.
    gradient_as_bucket_view : bool
        Whether gradients are views of the buckets, which saves a copy of each; they change in the
        next backward pass.
    static_graph : bool
        Whether all passes use the same parameters, so that one walk finds those that none uses.
    shards : int
        Train in `backward` with the same bits for any number of processes.

    Raises
    ------
    ValueError
        There is no process group; ``shards`` is below 1, ``bucket_cap_mb`` not above 0.
    RuntimeError
        No parameter requires a gradient, or the processes have different models.

    References
    ----------
    S. Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB
    2020.

    Examples
    --------
    >>> import convcore
    >>> from convcore import distributed, nn
    >>> distributed.init_process_group()
    >>> net = DistributedDataParallel(nn.Linear(2, 1), shards=4)
    >>> x, y = convcore.rand(8, 2), convcore.rand(8, 1)
    >>> loss = net.backward(lambda x, y: nn.functional.mse_loss(net(x), y), x, y)
    >>> net.module.weight.grad.shape
    torch.Size([1, 2])
    >>> distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int | None = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        *,
        shards: int | None = None,
    ) -> None:
        group = resolve(process_group)
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        if shards is not None and (not isinstance(shards, int) or shards < 1):
            raise ValueError(f"shards must be a whole number above 0, but got {shards!r}")
        if shards is not None and dim is None:
            raise ValueError("shards are cut along an axis: dim must be one, but got None")
        cap = 25 if bucket_cap_mb is None else bucket_cap_mb
        if not cap > 0:
            raise ValueError(f"bucket_cap_mb must be above 0, but got {bucket_cap_mb}")
        super().__init__()
        self.module = module
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.process_group = group
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.shards = shards
        self._in_step = False
        self._samples = 0
        self._unused: list[int] | None = None
        self._uneven: Uneven | None = None
        self._source = 0
        for layer in module.modules():
            if isinstance(layer, SyncBatchNorm):
                layer._weighed, layer._alone = dim is not None, shards is not None
        check_alike(module, group)
        if init_sync:
            copy_from(0, [*module.parameters(), *module.buffers()], group)
        self._bucket_bytes = int(cap * _MEGABYTE)
        self._reduce_gradients()

    def _reduce_gradients(self) -> None:
        """Make the reducer, and the hooks by which it gets gradients as long as this lives."""
        named = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        sizes = min(self._bucket_bytes, _MEGABYTE), self._bucket_bytes
        unused = self.find_unused_parameters or self.static_graph
        as_views = self.gradient_as_bucket_view
        self._reducer = Reducer(named, self.process_group, *sizes, as_views, unused)
        # Weakly: the module may be wrapped again, and two reducers would work on one gradient.
        own = weakref.ref(self)
        for i, (_, parameter) in enumerate(named):
            hook = parameter.register_post_accumulate_grad_hook(partial(_accumulated, own, i))
            weakref.finalize(self, hook.remove).atexit = False

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_reducer"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._reduce_gradients()

    def _accumulated(self, i: int) -> None:
        if self.shards is not None:
            if not self._in_step:
                raise RuntimeError(
                    "with shards, gradients are computed by backward(loss_of, *batch) of "
                    "DistributedDataParallel, not by backward() of a loss"
                )
        elif self.require_backward_grad_sync:
            self._reducer.mark(i)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; in training, have the gradients of the pass that follows averaged."""
        if self.shards is not None or not (self.training and is_grad_enabled()):
            return self.module(*inputs, **kwargs)
        self._samples += self._size_of((inputs, kwargs))
        if not self.require_backward_grad_sync:
            return self.module(*inputs, **kwargs)
        samples, self._samples = self._samples, 0
        self._begin_pass(samples)
        output = self.module(*inputs, **kwargs)
        if self.find_unused_parameters or self.static_graph:
            self._leave_out_unused(output)
        return output

    def _size_of(self, arguments: Any) -> int:
        """Return the size of the first tensor's batch, or 1 where parts are weighed alike."""
        found = tensors_in(list(arguments))
        if self.dim is None or not found or found[0].ndim <= self.dim:
            return 1
        return found[0].shape[self.dim]

    def _begin_pass(self, samples: int, exhausted: bool = False) -> bool:
        """Have all processes ready for a pass; return False where none has a batch any more."""
        group = resolve(self.process_group)
        own = np.array([samples, exhausted])
        table = np.empty((group.size(), 2), own.dtype)
        group.complete(group.comm.Iallgather(own, table), "a pass of DistributedDataParallel")
        sizes, over = table[:, 0], table[:, 1]
        if over.all():
            return False
        if self._uneven is not None and self._uneven.throws and over.any():
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            )
        self._source = int(over.argmin())
        alike = (sizes == samples).all() or (
            self.dim is None and self._uneven is not None and self._uneven.by_all
        )
        share = 1 / group.size() if alike else samples / int(sizes.sum())
        self._reducer.prepare(share, self._source)
        if self.broadcast_buffers:
            copy_from(self._source, list(self.module.buffers()), group)
        return True

    def _leave_out_unused(self, output: Any) -> None:
        if self._unused is None or not self.static_graph:
            used = _leaves_of(tensors_in(output))
            parameters = enumerate(self._reducer.parameters)
            self._unused = [i for i, parameter in parameters if id(parameter) not in used]
        self._reducer.leave_out(self._unused)

    @restoring
    def no_sync(self) -> Iterator[Calls]:
        """Add gradients up in each process; the first pass after the block averages the sums.

        Forward passes have to be in the block too.
        """
        before = self.require_backward_grad_sync
        yield ((self.__dict__.__setitem__, ("require_backward_grad_sync", before)),)
        self.require_backward_grad_sync = False

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Ending:
        """Train on uneven numbers of batches: who has none left takes part with no samples.

        At the end of the block all processes have the weights and buffers of one that was last.

        Parameters
        ----------
        divide_by_initial_world_size : bool
            With ``dim=None``: whether processes without batches still count in the mean. Along a
            ``dim``, samples count.
        enable : bool
            False does nothing.
        throw_on_early_termination : bool
            Whether all processes raise RuntimeError as soon as one has no batch.

        Raises
        ------
        RuntimeError
            The wrapper has ``shards``, or a SyncBatchNorm, which all processes have to call.
        """
        uneven = Uneven(divide_by_initial_world_size, throw_on_early_termination)
        return _Joined(self, uneven, enable)

    def _finish_join(self, uneven: Uneven) -> None:
        """Take part in the passes of processes that have batches left."""
        with _Joined(self, uneven, finishes=False):
            self._samples = 0
            while self._begin_pass(0, exhausted=True):
                self._reducer.skip()
        whole = [*self.module.parameters(), *self.module.buffers()]
        copy_from(self._source, whole, self.process_group)

    def register_comm_hook(self, state: Any, hook: CommHook) -> None:
        """Have a function reduce each bucket of gradients.

        Parameters
        ----------
        state : any
        hook : callable
            ``hook(state, bucket)`` gets a `distributed.GradBucket` and returns a Future of a Tensor
            of as many elements as its buffer, which become the gradients. The sum of the buffers of
            all processes, divided by their number, is the mean over samples.

        Raises
        ------
        TypeError
            ``hook`` cannot be called.
        RuntimeError
            There is a hook already; the wrapper has ``shards``.
        """
        if not callable(hook):
            raise TypeError(f"Communication hook must be callable, but got {type(hook).__name__}")
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook can only be called once")
        if self.shards is not None:
            raise RuntimeError("with shards, gradients are added in a fixed tree, not by a hook")
        self._reducer.hook = state, hook

    def backward(self, loss_of: Callable[..., Tensor], *batch: Any) -> Tensor:
        """Compute the gradients of a batch, with the same bits for any number of processes.

        The batch is cut into the wrapper's ``shards``, of sizes that differ by at most one. Each
        is computed by one process as if alone: normalization uses the shard's own statistics,
        dropout draws from a generator that the step and the shard seed. Gradients, changes of
        floating buffers and losses, weighed by sizes, are added in one fixed tree.

        Parameters
        ----------
        loss_of : callable
            Called with the parts of ``batch`` that are in a shard; returns the mean of its losses,
            a Tensor of one element. It calls the wrapper or the module.
        *batch : Tensors, or tuples, lists and dicts of them
            The whole batch, the same in all processes.

        Returns
        -------
        Tensor, () : the mean loss of the whole batch

        Raises
        ------
        RuntimeError
            The wrapper was made without ``shards``.
        ValueError
            Tensors of different sizes, or of none, along the batch's axis.
        TypeError
            ``loss_of`` returned something else.

        Notes
        -----
        Gradients are added to those that are there. Equal bits need the same random state in each
        run, and processors of one instruction set; numbers of NumPy's or Python's generators are
        not seeded.
        """
        if self.shards is None or self.dim is None:
            raise RuntimeError(
                "backward(loss_of, *batch) needs DistributedDataParallel(module, shards=...); "
                "without shards, call backward() of the loss"
            )
        step = ShardedStep(self.module, self.process_group, self.shards, self.dim)
        self._in_step = True
        try:
            return step.run(loss_of, batch)
        finally:
            self._in_step = False


class _Joined(Ending):
    """The context of `DistributedDataParallel.join`."""

    def __init__(self, wrapper: DistributedDataParallel, uneven: Uneven, finishes: bool) -> None:
        self._wrapper, self._uneven, self._finishes = wrapper, uneven, finishes

    def _back(self) -> Calls:
        wrapper = self._wrapper
        if wrapper.shards is not None or any(
            isinstance(module, SyncBatchNorm) for module in wrapper.modules()
        ):
            raise RuntimeError("join() works neither with shards nor with SyncBatchNorm")
        return ((vars(wrapper).__setitem__, ("_uneven", None)),)

    def _enter(self) -> None:
        self._wrapper._uneven = self._uneven

    def _ended(self, error: BaseException | None) -> None:
        if error is None and self._finishes:
            self._wrapper._finish_join(self._uneven)


def _accumulated(wrapper: weakref.ref[DistributedDataParallel], i: int, parameter: Tensor) -> None:
    if (alive := wrapper()) is not None:
        alive._accumulated(i)


def _leaves_of(outputs: list[Tensor]) -> set[int]:
    """Return the ids of the leaves that a graph leads to."""
    waiting = [t.grad_fn for t in outputs if t.grad_fn is not None]
    seen, found = set(), {id(t) for t in outputs}
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            found.add(id(leaf))
        waiting += [following for following, _ in node.next_functions if following is not None]
    return found
