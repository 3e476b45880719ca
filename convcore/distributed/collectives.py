"""Communication of all processes of a group: sums, copies and parts of tensors, and barriers.

All processes call the same functions in the same order, with tensors of the same shape and dtype.
Results go into tensors that are given, in place. With ``async_op=True`` a function returns at
once, with a `Work` whose `wait` ends it; else it returns None when its result is there. Each
raises `DistBackendError` when the group's time limit has passed, or another process called another
function or with another size, dtype or operation; and ValueError without a group.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.distributed import buffers
from convcore.distributed.alone import Alone
from convcore.distributed.group import ProcessGroup, _State, members_only, resolve
from convcore.distributed.work import ReduceOp, Work

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "reduce",
    "scatter",
]


def _nothing() -> None:
    pass


def _begun(
    group: ProcessGroup,
    what: str,
    request: Any,
    finish: Callable[[], None],
    async_op: bool,
    *results: Tensor,
) -> Work | None:
    work = Work(group, what, group.agreed(request, what), finish, results)
    if async_op:
        return work
    work.wait()
    return None


_UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum}


def _check_op(op: Any) -> None:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op must be a ReduceOp, but got {type(op).__name__}")


def _mpi_op(op: ReduceOp, group: ProcessGroup, dtype: np.dtype) -> Any:
    """Return MPI's operation for elements of a dtype."""
    if isinstance(group.comm, Alone):
        return None
    name = "SUM" if op is ReduceOp.AVG else op.value
    return _half_op(name, dtype) if buffers.is_half(dtype) else getattr(_State.mpi, name)


@functools.cache
def _half_op(name: str, dtype: np.dtype) -> Any:
    """Make an operation on floating numbers of two bytes, rounded after each."""

    def combine(these: Any, those: Any, _: Any) -> None:
        into = np.frombuffer(those, dtype)
        _UFUNCS[name](np.frombuffer(these, dtype), into, out=into)

    return _State.mpi.Op.Create(combine, commute=True)


def _finish_reduction(
    tensor: Tensor, received: np.ndarray, op: ReduceOp, group: ProcessGroup
) -> None:
    if op is ReduceOp.AVG:
        received = (received / group.size()).astype(received.dtype)
    buffers.store(tensor, received != 0 if tensor._array.dtype == np.bool_ else received)


def _reduction(tensor: Any, op: ReduceOp) -> np.ndarray:
    """Return what a reduction sends, or raise for what cannot be reduced."""
    _check_op(op)
    sent = buffers.added(buffers.checked(tensor))
    if op is ReduceOp.AVG and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"ReduceOp.AVG needs floating point numbers, but tensor is {tensor.dtype}")
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and sent.dtype.kind not in "iu":
        raise ValueError(f"{op} needs integers, but tensor is {tensor.dtype}")
    if op in (ReduceOp.MIN, ReduceOp.MAX) and sent.dtype.kind == "c":
        raise ValueError(f"{op} needs an order, but tensor is {tensor.dtype}")
    return sent


@members_only
def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all processes; each gets the result, in place.

    Parameters
    ----------
    tensor : Tensor of any shape
    op : ReduceOp
        Sum by default.
    group : ProcessGroup
        The default group by default.
    async_op : bool
        Whether to return at once.

    Returns
    -------
    Work with ``async_op``, else None

    Raises
    ------
    TypeError, ValueError
        ``tensor`` is none, or of a dtype that ``op`` does not work on.

    Examples
    --------
    >>> import convcore
    >>> convcore.distributed.init_process_group()
    >>> x = convcore.ones(2)
    >>> all_reduce(x)
    >>> x.tolist()
    [1.0, 1.0]
    >>> convcore.distributed.destroy_process_group()
    """
    group = resolve(group)
    sent = _reduction(tensor, op)
    received = np.empty_like(sent)
    mpi_op = _mpi_op(op, group, sent.dtype)
    request = group.comm.Iallreduce(buffers.for_mpi(sent), buffers.for_mpi(received), mpi_op)

    def finish() -> None:
        _finish_reduction(tensor, received, op, group)

    what = f"all_reduce of {buffers.described(tensor)}, {op.name}"
    return _begun(group, what, request, finish, async_op, tensor)


@members_only
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all processes; process ``dst`` gets the result, in place.

    The rest as `all_reduce`.
    """
    group = resolve(group)
    root = _place(group, dst, group_dst, "dst")
    sent = _reduction(tensor, op)
    received = np.empty_like(sent)
    mpi_op = _mpi_op(op, group, sent.dtype)
    request = group.comm.Ireduce(buffers.for_mpi(sent), buffers.for_mpi(received), mpi_op, root)

    def finish() -> None:
        if group.rank() == root:
            _finish_reduction(tensor, received, op, group)

    what = f"reduce of {buffers.described(tensor)}, {op.name}, to rank {group.ranks[root]}"
    return _begun(group, what, request, finish, async_op, tensor)


def _place(group: ProcessGroup, rank: int | None, in_group: int | None, name: str) -> int:
    """Return a place in the group, given by the rank among all or in the group; 0 by default."""
    if rank is not None and in_group is not None:
        raise ValueError(f"{name} and group_{name} cannot both be given")
    if in_group is not None:
        if not 0 <= in_group < group.size():
            raise ValueError(f"group_{name} must be below {group.size()}, but got {in_group}")
        return in_group
    return group.place_of(group.ranks[0] if rank is None else rank, name)


@members_only
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of process ``src`` into those of all others, in place."""
    group = resolve(group)
    root = _place(group, src, group_src, "src")
    buffer = buffers.moved(buffers.checked(tensor))
    request = group.comm.Ibcast(buffer, root)
    what = f"broadcast of {buffers.described(tensor)} from rank {group.ranks[root]}"
    return _begun(group, what, request, lambda: buffers.store(tensor, buffer), async_op, tensor)


@members_only
def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensor of each process into a list of tensors, in every process."""
    group = resolve(group)
    targets = buffers.checked_list(tensor_list, "tensor_list", group.size())
    sent = buffers.moved(buffers.checked(tensor))
    _check_alike(targets, tensor, "tensor_list")
    received = np.empty((group.size(), sent.size), np.uint8)
    request = group.comm.Iallgather(sent, received)

    def finish() -> None:
        for target, part in zip(targets, received, strict=True):
            buffers.store(target, part[: sent.size])

    what = f"all_gather of {buffers.described(tensor)}"
    return _begun(group, what, request, finish, async_op, *targets)


@members_only
def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensor of each process into one tensor, one after the other, in every process.

    ``output_tensor`` has as many elements as all inputs, joined or stacked along its first axis.
    """
    group = resolve(group)
    sent = buffers.moved(buffers.checked(input_tensor, "input_tensor"))
    target = buffers.checked(output_tensor, "output_tensor")
    if target.dtype != input_tensor.dtype or target.numel() != group.size() * input_tensor.numel():
        raise ValueError(
            f"output_tensor must have {group.size()} times the {input_tensor.numel()} elements of "
            f"input_tensor, of {input_tensor.dtype}, but has {target.numel()} of {target.dtype}"
        )
    received = np.empty((group.size(), sent.size), np.uint8)
    request = group.comm.Iallgather(sent, received)

    def finish() -> None:
        buffers.store(target, buffers.as_bytes(received)[: group.size() * sent.size])

    what = f"all_gather_into_tensor of {buffers.described(input_tensor)}"
    return _begun(group, what, request, finish, async_op, target)


def _check_alike(tensors: list[Tensor], tensor: Tensor, name: str) -> None:
    for i, other in enumerate(tensors):
        if other.shape != tensor.shape or other.dtype != tensor.dtype:
            raise ValueError(
                f"{name}[{i}] must be of shape {tuple(tensor.shape)} and {tensor.dtype}, as "
                f"tensor is, but is of {tuple(other.shape)} and {other.dtype}"
            )


@members_only
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Put the tensor of each process into a list of tensors of process ``dst``."""
    group = resolve(group)
    root = _place(group, dst, group_dst, "dst")
    sent = buffers.moved(buffers.checked(tensor))
    own = group.rank() == root
    targets = buffers.checked_list(gather_list, "gather_list", group.size()) if own else []
    _check_alike(targets, tensor, "gather_list")
    received = np.empty((group.size() if own else 0, sent.size), np.uint8)
    request = group.comm.Igather(sent, received if own else None, root)

    def finish() -> None:
        for target, part in zip(targets, received, strict=True):
            buffers.store(target, part[: sent.size])

    what = f"gather of {buffers.described(tensor)} to rank {group.ranks[root]}"
    return _begun(group, what, request, finish, async_op, *targets)


@members_only
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy each tensor of a list of process ``src`` into the tensor of one process."""
    group = resolve(group)
    root = _place(group, src, group_src, "src")
    buffer = buffers.moved(buffers.checked(tensor))
    sent = None
    if group.rank() == root:
        sources = buffers.checked_list(scatter_list, "scatter_list", group.size())
        _check_alike(sources, tensor, "scatter_list")
        sent = np.stack([buffers.moved(source) for source in sources])
    request = group.comm.Iscatter(sent, buffer, root)
    what = f"scatter of {buffers.described(tensor)} from rank {group.ranks[root]}"
    return _begun(group, what, request, lambda: buffers.store(tensor, buffer), async_op, tensor)


@members_only
def barrier(
    group: ProcessGroup | None = None, async_op: bool = False, device_ids: Any = None
) -> Work | None:
    """Wait until all processes are here."""
    group = resolve(group)
    return _begun(group, "barrier", group.comm.Ibarrier(), _nothing, async_op)


@members_only
def all_gather_object(object_list: list, obj: Any, group: ProcessGroup | None = None) -> None:
    """Put an object of each process into a list, in every process, by pickle.

    Raises
    ------
    ValueError
        The list has another length than the group has processes.
    """
    group = resolve(group)
    if len(object_list) != group.size():
        raise ValueError(f"object_list must have {group.size()} places, but has {len(object_list)}")
    own = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty((group.size(), 1), np.int64)
    group.complete(group.comm.Iallgather(np.array([own.size]), sizes), "all_gather_object")
    longest = int(sizes.max())
    received = np.empty((group.size(), longest), np.uint8)
    sent = np.zeros(longest, np.uint8)
    sent[: own.size] = own
    group.wait(group.comm.Iallgather(sent, received), "all_gather_object")
    for i, (row, size) in enumerate(zip(received, sizes[:, 0], strict=True)):
        object_list[i] = pickle.loads(row[:size].tobytes())


@members_only
def broadcast_object_list(
    object_list: list,
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copy the objects of a list of process ``src`` into the lists of all others, by pickle."""
    group = resolve(group)
    root = _place(group, src, group_src, "src")
    data = np.frombuffer(pickle.dumps(list(object_list)), np.uint8).copy()
    size = np.array([data.size])
    what = f"broadcast_object_list from rank {group.ranks[root]}"
    group.complete(group.comm.Ibcast(size, root), what)
    data = data if group.rank() == root else np.empty(int(size[0]), np.uint8)
    group.wait(group.comm.Ibcast(data, root), "broadcast_object_list")
    object_list[:] = pickle.loads(data.tobytes())
