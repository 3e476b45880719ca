"""Calls of functions as ONNX nodes, a family a file; importing this enters them all.

Some are written as nodes, others as calls of functions that are: `composes`.
"""

from convcore.onnx.translations import (
    along_axes,
    arithmetic,
    attention,
    comparing,
    distances,
    elementwise,
    indexing,
    making,
    ordering,
    products,
    rearranging,
    reducing,
    sampling,
    writing,
)

__all__ = [
    "along_axes",
    "arithmetic",
    "attention",
    "comparing",
    "distances",
    "elementwise",
    "indexing",
    "making",
    "ordering",
    "products",
    "rearranging",
    "reducing",
    "sampling",
    "writing",
]
