"""Calls of functions as ONNX nodes, a family a file; importing this enters them all.

Some are written as nodes, others as calls of functions that are: `composes`.
"""

from convcore.onnx.translations import (
    activations,
    along_axes,
    arithmetic,
    attention,
    comparing,
    distances,
    elementwise,
    indexing,
    making,
    normalizing,
    ordering,
    pooling,
    products,
    rearranging,
    reducing,
    reshaping,
    resizing,
    sampling,
    weighted,
    writing,
)

__all__ = [
    "activations",
    "along_axes",
    "arithmetic",
    "attention",
    "comparing",
    "distances",
    "elementwise",
    "indexing",
    "making",
    "normalizing",
    "ordering",
    "pooling",
    "products",
    "rearranging",
    "reducing",
    "reshaping",
    "resizing",
    "sampling",
    "weighted",
    "writing",
]
