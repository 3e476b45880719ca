"""Convolutions on NumPy arrays: ndarrays in, ndarrays out, no tensors, no graph.

The three maps are in conv.py, what surrounds them (im2col, col2im, folds) in patches.py, padding
and its like in shaping.py, products of matrices in matmul.py; pools in maximum_pooling.py and
average_pooling.py, what a pool has picked, by its indices, in pixels.py, other sizes of images in
interpolation.py, padding in all modes with its adjoint in pad.py.  geometry.py has the sizes,
algorithms/ the ways to compute a map and the choice among them, plan.py what that comes to,
threads.py and memory.py what they run on.  reference.py is the slow, obvious oracle that all of it
is tested against.
"""

from convcore.engine.average_pooling import (
    adaptive_avg_pool,
    adaptive_avg_pool_grad,
    avg_pool,
    avg_pool_grad,
)
from convcore.engine.conv import (
    conv_bias_grad,
    conv_forward,
    conv_input_grad,
    conv_transpose,
    conv_weight_grad,
)
from convcore.engine.fixed import FixedConvolution
from convcore.engine.functional import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from convcore.engine.geometry import Axis, Geometry, make_geometry
from convcore.engine.interpolation import interpolate, interpolate_grad
from convcore.engine.matmul import matmul
from convcore.engine.maximum_pooling import adaptive_max_pool, max_pool
from convcore.engine.memory import (
    empty_cache,
    get_cache_limit,
    memory_stats,
    reset_peak_memory_stats,
    set_cache_limit,
)
from convcore.engine.pad import pad, pad_grad
from convcore.engine.patches import col2im, fold, im2col, im2col_view, unfold
from convcore.engine.pixels import gather_pixels, place_pixels, scatter_pixels
from convcore.engine.plan import Plan, plan_conv
from convcore.engine.shaping import dilate, rotate180, unpad, zero_pad
from convcore.engine.threads import get_num_threads, set_num_threads

__all__ = [
    "Axis",
    "FixedConvolution",
    "Geometry",
    "Plan",
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
