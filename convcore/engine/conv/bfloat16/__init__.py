"""Products in bfloat16 with float32 sums: bfloat16.c multiplies, indirect/ has the kernels."""
