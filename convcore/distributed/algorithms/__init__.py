"""What data-parallel training may do with its gradients, under PyTorch's paths."""

__all__: list[str] = []
