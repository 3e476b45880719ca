"""Kernels of all layers but convolutions: elementwise, norms, pooling, softmax, sums."""
