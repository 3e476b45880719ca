"""Convolution kernels: a .pyx an algorithm and pass, its microkernels in the header beside it."""
