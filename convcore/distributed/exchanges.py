"""Collectives that leave each process a part of its own: reduce_scatter and all_to_all.

They are called, and fail, as those of collectives.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from convcore._tensor import Tensor
from convcore.distributed import buffers
from convcore.distributed.collectives import (
    _begun,
    _check_alike,
    _check_op,
    _finish_reduction,
    _mpi_op,
    _reduction,
)
from convcore.distributed.group import ProcessGroup, members_only, resolve
from convcore.distributed.work import ReduceOp, Work

__all__ = ["all_to_all", "all_to_all_single", "reduce_scatter", "reduce_scatter_tensor"]


def _scattered(
    output: Tensor, sent: np.ndarray, op: ReduceOp, group: ProcessGroup, what: str, async_op: bool
) -> Work | None:
    received = np.empty(sent.size // group.size(), sent.dtype)
    request = group.comm.Ireduce_scatter_block(
        buffers.for_mpi(sent), buffers.for_mpi(received), _mpi_op(op, group, sent.dtype)
    )

    def finish() -> None:
        _finish_reduction(output, received, op, group)

    what += f" of {buffers.described(output)}, {op.name}"
    return _begun(group, what, request, finish, async_op, output)


@members_only
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the lists of all processes; each gets the result for its place, in ``output``.

    Parameters
    ----------
    output : Tensor
    input_list : list of Tensors
        One a process, each like ``output``.
    op, group, async_op
        As in `all_reduce`.

    Returns
    -------
    Work with ``async_op``, else None

    Raises
    ------
    TypeError, ValueError
        An argument is no tensor, or of another shape or dtype; the list has another length.
    """
    group = resolve(group)
    _check_op(op)
    inputs = buffers.checked_list(input_list, "input_list", group.size())
    _check_alike(inputs, buffers.checked(output, "output"), "input_list", "output")
    sent = np.concatenate([_reduction(tensor, op) for tensor in inputs])
    return _scattered(output, sent, op, group, "reduce_scatter", async_op)


@members_only
def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all processes; each gets its part of the result, in ``output``.

    ``input`` has as many elements as the outputs of all, joined or stacked along its first axis.
    The rest as `reduce_scatter`.
    """
    group = resolve(group)
    buffers.checked(output, "output")
    buffers.checked(input, "input")
    if input.dtype != output.dtype or input.numel() != group.size() * output.numel():
        raise ValueError(
            f"input must have {group.size()} times the {output.numel()} elements of output, of "
            f"{output.dtype}, but has {input.numel()} of {input.dtype}"
        )
    sent = _reduction(input, op)
    return _scattered(output, sent, op, group, "reduce_scatter_tensor", async_op)


def _bytes_of(tensors: list[Tensor]) -> tuple[np.ndarray, list[int]]:
    parts = [buffers.moved(tensor) for tensor in tensors]
    return np.concatenate(parts), [part.size for part in parts]


@members_only
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each tensor of a list to one process, and put what each sends here into a list.

    Parameters
    ----------
    output_tensor_list, input_tensor_list : lists of Tensors
        One a process, of any sizes; an output has the bytes of what is sent to it.
    group, async_op
        As in `all_reduce`.

    Returns
    -------
    Work with ``async_op``, else None

    Raises
    ------
    TypeError, ValueError
        A list has something else than tensors, or another length.
    """
    group = resolve(group)
    targets = buffers.checked_list(output_tensor_list, "output_tensor_list", group.size())
    sources = buffers.checked_list(input_tensor_list, "input_tensor_list", group.size())
    sent, sent_sizes = _bytes_of(sources)
    received, sizes = _bytes_of(targets)
    ends = np.cumsum(sizes)[:-1]
    request = group.comm.Ialltoallv((sent, sent_sizes), (received, sizes))

    def finish() -> None:
        for target, part in zip(targets, np.split(received, ends), strict=True):
            buffers.store(target, part)

    return _begun(group, "all_to_all", request, finish, async_op, *targets)


def _rows(tensor: Tensor, splits: Sequence[int] | None, name: str, size: int) -> list[int]:
    """Return how many bytes of a tensor go to, or come from, each process."""
    length = tensor.shape[0] if tensor.ndim else 1
    if not splits:
        if length % size:
            raise ValueError(
                f"{name} must have a first axis that {size} processes divide, but has {length}; "
                f"{name}_split_sizes may divide it unevenly"
            )
        splits = [length // size] * size
    if len(splits) != size or min(splits) < 0 or sum(splits) != length:
        raise ValueError(
            f"{name}_split_sizes must be {size} sizes that add up to {length}, the first axis of "
            f"{name}, but got {list(splits)}"
        )
    row = tensor._array.nbytes // max(length, 1)
    return [split * row for split in splits]


@members_only
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each part of a tensor to one process, and join what each sends here.

    Parameters
    ----------
    output, input : Tensors
        Cut along the first axis.
    output_split_sizes, input_split_sizes : lists of int
        The parts' lengths, one a process; equal ones by default.
    group, async_op : as in `all_reduce`

    Returns
    -------
    Work with ``async_op``, else None

    Raises
    ------
    TypeError, ValueError
        An argument is no tensor; dtypes differ; the parts do not add up to the first axis.
    """
    group = resolve(group)
    buffers.checked(output, "output")
    buffers.checked(input, "input")
    if output.dtype != input.dtype:
        raise ValueError(f"output must be of {input.dtype}, as input is, but is of {output.dtype}")
    sizes = _rows(output, output_split_sizes, "output", group.size())
    sent_sizes = _rows(input, input_split_sizes, "input", group.size())
    received = buffers.moved(output)
    request = group.comm.Ialltoallv((buffers.moved(input), sent_sizes), (received, sizes))
    what = f"all_to_all_single of {output.dtype}"
    return _begun(group, what, request, lambda: buffers.store(output, received), async_op, output)
