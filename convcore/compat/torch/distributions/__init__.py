"""Modules of torch.distributions with names that only PyTorch's programs ask for."""
