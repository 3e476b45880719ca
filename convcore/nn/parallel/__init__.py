"""Data parallelism under PyTorch's paths: one device here, so there is nothing to divide."""

from convcore.nn.parallel.data_parallel import DataParallel, data_parallel
from convcore.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
