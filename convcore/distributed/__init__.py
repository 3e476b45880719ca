"""Distributed training on MPI: process groups and collectives under PyTorch's names.

The command ``mpiexec -n 4`` starts the processes, `init_process_group` joins them, and
`nn.parallel.DistributedDataParallel` trains one model in all. Extra ``[mpi]``; one process needs no
MPI, so that a script for many runs in one as it is.

group.py has the groups, collectives.py what all do together, work.py communications that go on,
faults.py what ends all when one fails, buffers.py tensors as MPI sees them, alone.py one process.
"""

from convcore.distributed.collectives import *
from convcore.distributed.collectives import __all__ as _collectives
from convcore.distributed.faults import DistBackendError as DistBackendError
from convcore.distributed.group import *
from convcore.distributed.group import __all__ as _group
from convcore.distributed.work import ReduceOp as ReduceOp
from convcore.distributed.work import Work as Work

__all__ = ["DistBackendError", "ReduceOp", "Work"]
__all__ += _collectives
__all__ += _group
