"""PyTorch's older path of `torch.profiler`'s marks."""

from convcore.compat.torch.profiler import record_function as record_function
