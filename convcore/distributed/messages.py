"""Messages from one process of a group to another: a tensor at a time, matched by tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.distributed import buffers
from convcore.distributed.collectives import _nothing, _place
from convcore.distributed.group import ProcessGroup, _State, members_only, resolve
from convcore.distributed.work import Work

__all__ = ["irecv", "isend", "recv", "send"]


class _Sending:
    """A request that ends when a message is under way.

    Parameters
    ----------
    request : request of mpi4py
    partners : set of int
        Who takes it, by the rank among all processes.
    """

    def __init__(self, request: Any, partners: set[int]):
        self._request = request
        self.partners = partners

    def Test(self) -> bool:
        """Return whether the message is under way."""
        return self._request.Test()


class _Receipt:
    """A request for a message whose size has to be the tensor's, which `check` says.

    Parameters
    ----------
    request : request of mpi4py
    partners : set of int
        Who may send it, by their ranks among all processes.
    size : int
        The tensor's size in bytes.
    """

    def __init__(self, request: Any, partners: set[int], size: int):
        self._request = request
        self.partners = partners
        self._size = size
        self._status = _State.mpi.Status()
        self._done = False
        self._found: int | str = 0  # bytes

    def Test(self) -> bool:
        """Return whether the message is here."""
        if self._done:
            return True
        try:
            self._done = self._request.Test(self._status)
            self._found = self._status.Get_count()
        except _State.mpi.Exception as error:
            if error.Get_error_class() != _State.mpi.ERR_TRUNCATE:
                raise
            self._done, self._found = True, "more"
        return self._done

    def check(self) -> None:
        """Raise ValueError where the message does not fit the tensor."""
        if self._found != self._size:
            raise ValueError(f"tensor has {self._size} bytes, but the message has {self._found}")

    def source(self) -> int:
        """Return the place in the group of the process that sent the message."""
        return self._status.Get_source()


def _check_tag(tag: int) -> None:
    if isinstance(tag, bool) or not isinstance(tag, int | np.integer):
        raise TypeError(f"tag must be an int, but got {type(tag).__name__}")
    # MPI guarantees no larger ones.
    if not 0 <= tag <= 32767:
        raise ValueError(f"tag must be from 0 to 32767, but got {tag}")


def _check_other(group: ProcessGroup, place: int, name: str) -> None:
    if place == group.rank():
        raise ValueError(f"{name} must be another process than this one, rank {group.ranks[place]}")


@members_only
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work:
    """Begin to send a tensor to a process, and return the `Work`; the rest as `send`.

    The tensor is copied first, so that it may be changed meanwhile.
    """
    group = resolve(group)
    if dst is None and group_dst is None:
        raise ValueError("dst or group_dst must be given")
    place = _place(group, dst, group_dst, "dst")
    _check_other(group, place, "dst")
    _check_tag(tag)
    sent = buffers.moved(buffers.checked(tensor))
    request = _Sending(group.comm.Isend(sent, place, tag), {group.ranks[place]})
    return Work(group, "send", request, _nothing)


@members_only
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a process, which takes it by `recv`.

    Parameters
    ----------
    tensor : Tensor of any shape
    dst : int
        The rank that gets it, another than this one.
    group : ProcessGroup
        The default group by default.
    tag : int
        A number from 0 to 32767; the receiver gives the same.
    group_dst : int
        The rank in the group, in place of ``dst``.

    Raises
    ------
    TypeError, ValueError
        ``tensor`` is none; ``dst`` is this process or no member of the group; ``tag`` is out of
        range.
    DistBackendError
        The group's time limit has passed.
    """
    isend(tensor, dst, group, tag, group_dst).wait()


def _receipt(
    tensor: Tensor, src: int | None, group: ProcessGroup, tag: int, group_src: int | None
) -> tuple[Work, _Receipt]:
    buffers.checked(tensor)
    _check_tag(tag)
    if src is None and group_src is None:
        if group.size() == 1:
            raise ValueError("src must be another process than this one, and there is none")
        place = _State.mpi.ANY_SOURCE
        partners = {*group.ranks} - {group.ranks[group.rank()]}
    else:
        place = _place(group, src, group_src, "src")
        _check_other(group, place, "src")
        partners = {group.ranks[place]}
    buffer = buffers.moved(tensor)
    receipt = _Receipt(group.comm.Irecv(buffer, place, tag), partners, buffer.size)

    def finish() -> None:
        receipt.check()
        buffers.store(tensor, buffer)

    return Work(group, "recv", receipt, finish), receipt


@members_only
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work:
    """Begin to receive a tensor, and return the `Work`; the rest as `recv`."""
    return _receipt(tensor, src, resolve(group), tag, group_src)[0]


@members_only
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor that another process sends by `send`, in place.

    Parameters
    ----------
    tensor : Tensor
        Of as many bytes as the one that is sent; shapes may differ.
    src : int
        The rank that sends it; any by default.
    group : ProcessGroup
        The default group by default.
    tag : int
        The sender's.
    group_src : int
        The rank in the group, in place of ``src``.

    Returns
    -------
    int
        The rank that sent it.

    Raises
    ------
    TypeError, ValueError
        ``tensor`` is none or of another size than the message, and then unchanged; ``src`` is this
        process or no member of the group; ``tag`` is out of range.
    DistBackendError
        The group's time limit has passed.
    """
    group = resolve(group)
    work, receipt = _receipt(tensor, src, group, tag, group_src)
    work.wait()
    return group.ranks[receipt.source()]
