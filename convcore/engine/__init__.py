"""Convolutions and layers on NumPy arrays: ndarrays in, ndarrays out, no tensors, no graph.

- conv/: the three passes of a convolution, their plans and calls, one folder per algorithm
- layers/: pooling, normalization, activations, padding, interpolation, optimizers
- runtime/: threads, memory, memory formats, instruction sets, BLAS, argument checks
- matmul.py: matrix products; matmul_bfloat16.py: matrix products in bfloat16 (opt-in)
- reference.py: slow, simple reference implementations that everything is tested against

The Python, the compiled kernel (.pyx) and the inner loops in C (microkernels, compiled once per
instruction set) of a subject are in one folder.  Headers are included by their path from here.

Memory formats.  Shapes are always (N, C, *sizes).  Memory is contiguous (NCHW) or channels_last
(NHWC), decided by the strides; a result is channels_last if one of its operands is.  Each format
has its own kernels: nothing is transposed first.

Threads and bits.  A call starts parallel regions of at most `get_num_threads` threads, in which
BLAS is limited to one thread.  Work is cut by shape alone and partial sums are added in index
order, so that the bits of a result do not depend on the number of threads.

Plans.  Geometry, dtype and memory format decide the algorithm of each pass and its memory:
`plan_conv` reports them, `convcore.backends.conv` forces or forbids algorithms.
"""

# Imported first: it raises the error that explains how to build missing kernels.
import convcore.engine.runtime  # noqa: F401
from convcore.engine.conv.conv_nd import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from convcore.engine.conv.passes import (
    conv_bias_grad,
    conv_forward,
    conv_input_grad,
    conv_transpose,
    conv_weight_grad,
)
from convcore.engine.conv.patches import col2im, fold, im2col, im2col_view, unfold
from convcore.engine.conv.plan import Plan, plan_conv
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.conv.shaping import dilate, rotate180, unpad, zero_pad
from convcore.engine.geometry import Axis, Geometry, make_geometry
from convcore.engine.layers.interpolation.interpolation import interpolate, interpolate_grad
from convcore.engine.layers.padding import pad, pad_grad
from convcore.engine.layers.pooling.avg_pooling import (
    adaptive_avg_pool,
    adaptive_avg_pool_grad,
    avg_pool,
    avg_pool_grad,
)
from convcore.engine.layers.pooling.max_pooling import adaptive_max_pool, max_pool
from convcore.engine.layers.pooling.max_unpooling import gather_pixels, place_pixels, scatter_pixels
from convcore.engine.matmul import matmul
from convcore.engine.runtime.memory import (
    empty_cache,
    get_cache_limit,
    memory_stats,
    reset_peak_memory_stats,
    set_cache_limit,
)
from convcore.engine.runtime.threads import get_num_threads, set_num_threads

__all__ = [
    "Axis",
    "Geometry",
    "Plan",
    "PrepackedConvolution",
    "adaptive_avg_pool",
    "adaptive_avg_pool_grad",
    "adaptive_max_pool",
    "avg_pool",
    "avg_pool_grad",
    "col2im",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_bias_grad",
    "conv_forward",
    "conv_input_grad",
    "conv_transpose",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_weight_grad",
    "dilate",
    "empty_cache",
    "fold",
    "gather_pixels",
    "get_cache_limit",
    "get_num_threads",
    "im2col",
    "im2col_view",
    "interpolate",
    "interpolate_grad",
    "make_geometry",
    "matmul",
    "max_pool",
    "memory_stats",
    "pad",
    "pad_grad",
    "place_pixels",
    "plan_conv",
    "reset_peak_memory_stats",
    "rotate180",
    "scatter_pixels",
    "set_cache_limit",
    "set_num_threads",
    "unfold",
    "unpad",
    "zero_pad",
]
