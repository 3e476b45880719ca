"""Modules of torch.utils.data with names that only PyTorch's programs ask for."""
