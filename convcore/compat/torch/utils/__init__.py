"""Modules of torch.utils that only PyTorch's programs ask for."""
