"""Products of matrices and vectors: matmul, einsum, cross, inverses loaded on demand."""
