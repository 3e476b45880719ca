"""Replicas of a module in all processes of a group: whether they are alike, and made equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore import distributed
from convcore.distributed import buffers
from convcore.distributed.buckets import order_of_axes
from convcore.distributed.group import ProcessGroup
from convcore.nn.modules.module import Module


def check_alike(module: Module, group: ProcessGroup) -> None:
    """Raise RuntimeError unless all processes have the same parameters and buffers."""
    own = [
        (name, tuple(t.shape), str(t.dtype), t.requires_grad, order_of_axes(t._array))
        for name, t in [*module.named_parameters(), *module.named_buffers()]
    ]
    all_of_them: list[Any] = [None] * group.size()
    distributed.all_gather_object(all_of_them, own, group)
    for rank, other in enumerate(all_of_them):
        if other != all_of_them[0]:
            differs = [
                pair for pair in zip(other, all_of_them[0], strict=False) if pair[0] != pair[1]
            ]
            found = differs[0] if differs else (f"{len(other)} tensors", f"{len(all_of_them[0])}")
            raise RuntimeError(
                f"process {rank} has another model than process 0: {found[0]}, not {found[1]}"
            )


def copy_from(source: int, tensors: list[Any], group: ProcessGroup) -> None:
    """Copy the tensors of one process of a group into those of all others, in one message."""
    if group.size() == 1 or not tensors:
        return
    parts = [buffers.moved(t) for t in tensors]
    joined = np.concatenate(parts)
    what = f"a copy of {joined.size} bytes of parameters or buffers"
    group.complete(group.comm.Ibcast(joined, source), what)
    if group.rank() != source:
        for tensor, part in zip(
            tensors, np.split(joined, np.cumsum([p.size for p in parts])[:-1]), strict=True
        ):
            buffers.store(tensor, part)
