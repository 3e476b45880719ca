"""Communication hooks of DistributedDataParallel, under PyTorch's paths."""

from convcore.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks

__all__ = ["default_hooks"]
