"""Layer kernels: ops, norms, pooling, separable, softmax, NLL, sums, copies, optimizers, clip."""
