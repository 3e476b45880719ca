"""bfloat16 products with float32 sums: microkernels (bfloat16.c), run by indirect/'s kernels."""
