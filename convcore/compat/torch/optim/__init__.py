"""Modules of torch.optim with names that only PyTorch's programs ask for."""
