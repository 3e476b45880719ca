"""Data parallelism under PyTorch's paths: over processes by MPI; threads divide one process's work.

distributed.py has the wrapper, reducer.py averages while the backward pass goes on,
sharded_step.py gives the same bits for any number of processes.
"""

from convcore.nn.parallel.data_parallel import DataParallel, data_parallel
from convcore.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
