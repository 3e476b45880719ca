"""Process groups: who takes part, from `init_process_group` to `destroy_process_group`."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from convcore._errors import hinted
from convcore._errors import names as _names
from convcore.distributed import _mpi, faults
from convcore.distributed.agreement import Agreement
from convcore.distributed.alone import Alone

__all__ = [
    "GroupMember",
    "ProcessGroup",
    "default_pg_timeout",
    "destroy_process_group",
    "get_backend",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init",
    "init_process_group",
    "is_available",
    "is_initialized",
    "is_mpi_available",
    "new_group",
    "rank",
    "world_size",
]

default_pg_timeout = timedelta(minutes=30)

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class ProcessGroup:
    """Processes that communicate; made by `init_process_group` and `new_group`.

    Attributes
    ----------
    comm, layers : communicators of mpi4py, or a stand-in for one process
        Of collectives, and of what layers and shards send in a pass, which may come before or after
        what a hook begins. RuntimeError in a process that a rank forks: MPI is its parent's.
    ranks : list of int
        The members, by their ranks among all processes.
    timeout : float
        Seconds after which a wait for the others is given up.
    """

    def __init__(self, comm: Any, ranks: list[int], timeout: float):
        self._comm = comm
        self.ranks = ranks
        self.timeout = timeout
        several = len(ranks) > 1
        self._layers = comm.Dup()
        self.watch = faults.Watch(comm.Dup(), ranks) if several else None
        self._lines = comm.Dup() if several else None
        self.destroyed = False

    def __deepcopy__(self, memo: dict) -> ProcessGroup:
        return self

    def __reduce__(self) -> tuple:
        if self is not _State.group:
            raise RuntimeError("only the default process group can be pickled")
        return resolve, (None,)

    @property
    def comm(self) -> Any:
        """The communicator of collectives."""
        refuse_forks("a process group")
        return self._comm

    @property
    def layers(self) -> Any:
        """The communicator of what layers and shards send."""
        refuse_forks("a process group")
        return self._layers

    def rank(self) -> int:
        """Return the number of this process in the group."""
        return self._comm.rank

    def size(self) -> int:
        """Return the number of processes in the group."""
        return self._comm.size

    def place_of(self, rank: int, name: str) -> int:
        """Return the place in the group of a process, given by its rank among all.

        Raises
        ------
        ValueError
            It is no member.
        """
        if rank not in self.ranks:
            raise ValueError(
                f"{name} must be a rank of the group, one of {self.ranks}, but got {rank}"
            )
        return self.ranks.index(rank)

    def wait(self, request: Any, what: str, limit: float | None = None) -> None:
        """Wait for a request; see `faults.wait`."""
        refuse_forks("a process group")
        faults.wait(request, what, self.watch, self.timeout if limit is None else limit)

    def agreed(self, request: Any, what: str) -> Any:
        """Return a request of a collective, which raises where other ranks began another."""
        if self._lines is None:
            return request
        return Agreement(self._lines, self.ranks, what, request)

    def complete(self, request: Any, what: str) -> None:
        """Wait for a collective that all ranks have to begin alike."""
        self.wait(self.agreed(request, what), what)

    def free(self) -> None:
        """Give back the communicators, of which MPI has some 2,000."""
        self.destroyed = True
        own = [self._lines, self.watch and self.watch.comm, self._layers, self._comm]
        for comm in own:
            if comm is not None:
                comm.Free()


class GroupMember:
    """What `new_group` returns in a process that is no member: functions do nothing with it."""

    NON_GROUP_MEMBER: Any = type("NonGroupMember", (), {"__repr__": lambda _: "NON_GROUP_MEMBER"})()


def _is_fork() -> bool:
    """Return whether this process was forked by a rank."""
    return _State.process not in (None, os.getpid())


def refuse_forks(name: str) -> None:
    """Raise RuntimeError in a process that a rank forks, where MPI would break its parent's."""
    if _is_fork():
        raise RuntimeError(f"{name} cannot be used in a process that a rank forks")


def members_only(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Have a function communicate in members of its group, and in no process that one forks.

    It warns and returns None in a process that is no member.
    """

    @functools.wraps(function)
    def called(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
        if any(one is GroupMember.NON_GROUP_MEMBER for one in (*args, *kwargs.values())):
            text = f"Running {function.__name__} on global rank {get_rank()} which does not belong "
            warnings.warn(text + "to the given group.", stacklevel=2)
            return None
        refuse_forks(function.__name__)
        return function(*args, **kwargs)

    return called


class _State:
    """The default group, the others, MPI's module, and the hook of errors that was there before."""

    group: ProcessGroup | None = None
    others: ClassVar[list[ProcessGroup]] = []
    mpi: Any = None
    process: int | None = None  # that MPI was initialized in
    hook: Any = None


def seconds(timeout: float | timedelta) -> float:
    """Return a time limit in seconds.

    Raises
    ------
    ValueError
        It is not above 0.
    """
    value = timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)
    if not value > 0:
        raise ValueError(f"timeout must be above 0 seconds, but got {timeout}")
    return value


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: float | timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join the processes that a launcher, as ``mpiexec``, started; one process is a group of one.

    From here on an error that nobody catches ends all processes, not only its own.

    Parameters
    ----------
    backend : "mpi" or None
        "mpi" loads MPI wherever it is installed; None where a launcher says that there are several
        processes.
    init_method, store, group_name, pg_options, device_id
        Ignored: MPI knows its processes.
    timeout : float or timedelta
        Seconds that a process waits for another before it gives up with an error that names who is
        missing; 30 minutes by default.
    world_size, rank : int
        What the launcher is expected to have given; -1 expects nothing.

    Raises
    ------
    ValueError
        Another backend, rank or number of processes, also in the environment's WORLD_SIZE, which
        torchrun sets; a time limit that is not above 0.
    RuntimeError
        There is a group already; MPI was initialized for a single thread; a rank forked this
        process.
    ImportError
        Several processes were started, and there is no MPI: ``pip install 'convcore[mpi]'``.

    Examples
    --------
    >>> init_process_group()
    >>> get_rank(), get_world_size()
    (0, 1)
    >>> destroy_process_group()
    """
    _check_backend(backend)
    if _State.group is not None:
        raise RuntimeError("trying to initialize the default process group twice!")
    refuse_forks("init_process_group")
    limit = seconds(default_pg_timeout if timeout is None else timeout)
    mpi = _mpi.load() if backend or _mpi.launched() > 1 else None
    world: Any = Alone() if mpi is None else mpi.COMM_WORLD
    places = ("world_size", world_size, world.size), ("rank", rank, world.rank)
    for name, expected, found in places:
        if expected not in (-1, found):
            raise ValueError(f"{name} is {found}, as the launcher says, but got {expected}")
    _check_environment(world.size)
    _State.mpi = mpi
    _State.process = None if mpi is None else os.getpid()
    if world.size > 1:
        _State.hook = faults.abort_on_error(mpi)
    comm, request = world.Idup()
    faults.wait(request, "init_process_group", None, limit)
    _State.group = ProcessGroup(comm, [*range(world.size)], limit)
    if world.size > 1:
        faults.Progress.enter(mpi, comm)


def _check_backend(backend: Any) -> None:
    if backend not in (None, "mpi"):
        error = ValueError(
            f"backend must be 'mpi' or None, but got {backend!r}: MPI is the only one"
        )
        raise hinted(error, _hint_of(backend))


def _hint_of(backend: Any) -> str:
    """Say what to write instead of a backend of PyTorch's, which has its own launcher, too."""
    why = "NCCL is for GPUs, and convcore computes on the CPU: " if backend == "nccl" else ""
    return f"{why}leave the backend out, and start the program by `mpiexec -n 2 python train.py`"


def _check_environment(size: int) -> None:
    """Refuse processes that torchrun started, each of which would train alone."""
    said = os.environ.get("WORLD_SIZE", "")
    if said.isdecimal() and "RANK" in os.environ and int(said) != size:
        raise ValueError(
            f"the environment's WORLD_SIZE is {said}, but MPI, through which processes find one "
            f"another, has started {size}: start them by `mpiexec -n {said}`"
        )


def init(timeout: float | timedelta | None = None) -> None:
    """Join the processes that ``mpiexec`` started: `init_process_group` with MPI."""
    init_process_group("mpi", timeout=timeout)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group; the default group with all others.

    A process that a rank forks forgets it, and tells nobody.

    Raises
    ------
    ValueError
        There is no default group, or the group has been left.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    default, left = resolve(None), resolve(group)
    # On the way out of an error, as in a `finally`, the error is still to end all processes.
    if failing := sys.exc_info()[0] is not None:
        left.destroyed = True
    for one in [*_State.others, default] if left is default else [left]:
        if not failing and not one.destroyed and not _is_fork():
            one.free()
    if left is not default:
        return
    if _State.hook is not None and not failing:
        sys.excepthook = _State.hook
        if not _is_fork():
            faults.Progress.leave()
    _State.group = _State.hook = None
    _State.others = []


def is_available() -> bool:
    """Return True: one process needs nothing, several need MPI."""
    return True


def is_mpi_available() -> bool:
    """Return whether MPI can be loaded."""
    try:
        return _mpi.load() is not None
    except (ImportError, RuntimeError):
        return False


def is_initialized() -> bool:
    """Return whether there is a default group."""
    return _State.group is not None


def resolve(group: ProcessGroup | None) -> ProcessGroup:
    """Return a group, by default the default one.

    Raises
    ------
    ValueError
        There is none; this process is no member; the group was destroyed.
    TypeError
        It is no group.
    """
    found = _State.group if group is None else group
    if found is GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified: this process is no member of it")
    if not isinstance(found, ProcessGroup | None):
        kind = type(found).__name__
        raise TypeError(f"argument 'group' must be ProcessGroup or None, not {kind}")
    if found is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    if found.destroyed:
        raise ValueError("the process group was destroyed by destroy_process_group")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return the number of this process in a group, from 0 on; -1 where it is no member.

    ValueError without a group.
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolve(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of processes in a group; -1 where this process is no member.

    ValueError without a group.
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else resolve(group).size()


rank, world_size = get_rank, get_world_size


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return "mpi", the name of the only backend."""
    resolve(group)
    return "mpi"


def get_process_group_ranks(group: ProcessGroup | None = None) -> list[int]:
    """Return the members of a group, by their ranks among all processes."""
    return list(resolve(group).ranks)


def new_group(
    ranks: list[int] | None = None,
    timeout: float | timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
) -> ProcessGroup:
    """Make a group of some processes; all processes of the default group call this.

    Parameters
    ----------
    ranks : list of int
        The members; None for all.
    timeout : float or timedelta
        As in `init_process_group`; the default group's by default.
    backend : "mpi" or None
    pg_options
        Ignored.

    Returns
    -------
    ProcessGroup, or GroupMember.NON_GROUP_MEMBER in a process that is no member

    Raises
    ------
    ValueError
        A rank that there is not, or twice.
    RuntimeError
        A rank forked this process.
    """
    default = resolve(None)
    _check_backend(backend)
    members = list(default.ranks) if ranks is None else sorted(ranks)
    if not members or not set(members) <= set(default.ranks) or len(set(members)) < len(members):
        raise ValueError(f"ranks must be different ones of {default.ranks}, but got {ranks}")
    limit = default.timeout if timeout is None else seconds(timeout)
    refuse_forks("new_group")
    if isinstance(default.comm, Alone):
        return _kept(ProcessGroup(Alone(), members, limit))
    # All come, and with the same list, before what has no time limit.
    default.complete(default.comm.Ibarrier(), f"new_group of {members}")
    member = default.rank() in members
    comm = default.comm.Split(0 if member else _State.mpi.UNDEFINED, default.rank())
    return _kept(ProcessGroup(comm, members, limit)) if member else GroupMember.NON_GROUP_MEMBER


def _kept(group: ProcessGroup) -> ProcessGroup:
    _State.others.append(group)
    return group


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "WORLD":  # PyTorch's name of the default group, None without one
            return _State.group
        raise _names.missing_name(__name__, name)
