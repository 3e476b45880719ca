"""What all kernels stand on: instruction sets, threads, memory, buffers, gemm."""
