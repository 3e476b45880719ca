"""Distributed training on MPI: process groups and collectives under PyTorch's names.

The command ``mpiexec -n 4`` starts the processes, `init_process_group` joins them, and
`nn.parallel.DistributedDataParallel` trains one model in all. Extra ``[mpi]``; one process needs no
MPI, so that a script for many runs in one as it is.

group.py has the groups, collectives.py what all do together, messages.py what two
do, work.py communications that go on, shard_tree.py sums in one order for any number of ranks,
agreement.py sees that all do the same, faults.py ends all when one fails, monitor.py names one that
was killed. buffers.py has tensors as MPI sees them, buckets.py many gradients as one, algorithms/
how these are reduced in fewer bytes; _mpi.py MPI itself, alone.py what one process has instead.
"""

from convcore._errors import names as _names
from convcore.distributed.buckets import GradBucket as GradBucket
from convcore.distributed.collectives import *
from convcore.distributed.collectives import __all__ as _collectives
from convcore.distributed.faults import DistBackendError as DistBackendError
from convcore.distributed.group import *
from convcore.distributed.group import __all__ as _group
from convcore.distributed.messages import *
from convcore.distributed.messages import __all__ as _messages
from convcore.distributed.work import ReduceOp as ReduceOp
from convcore.distributed.work import Work as Work

__all__ = ["DistBackendError", "GradBucket", "ReduceOp", "Work"]
__all__ += _collectives
__all__ += _group
__all__ += _messages

_names.explain_names(__name__)
