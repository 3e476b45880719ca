"""Modules of torch.autograd that only PyTorch's programs ask for."""
