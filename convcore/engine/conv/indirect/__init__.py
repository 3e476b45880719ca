"""Indirect convolution: products whose rows are pointers to the input; no patch is copied."""
