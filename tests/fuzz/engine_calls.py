"""Calls of the engine on arrays, each made of some bytes, which `guided_engine.py` draws.

    python tests/fuzz/engine_calls.py       # those that `seed_files.py` keeps, once more

Each argument is drawn by its annotation: small arrays of any rank, dtype and strides, sizes that
fit, and ints far out.  A call gives a result, or one of the engine's errors.
"""

from __future__ import annotations

import inspect
import resource
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import seed_files

from convcore import engine

ERRORS = (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError, MemoryError)
NAMES = """adaptive_avg_pool adaptive_avg_pool_grad adaptive_max_pool avg_pool avg_pool_grad col2im
conv1d conv2d conv3d conv_bias_grad conv_forward conv_input_grad conv_transpose conv_transpose1d
conv_transpose2d conv_transpose3d conv_weight_grad dilate fold gather_pixels im2col im2col_view
interpolate interpolate_grad make_geometry matmul max_pool pad pad_grad place_pixels"""
FUNCTIONS = [getattr(engine, name) for name in NAMES.split()]
PARAMETERS = [list(inspect.signature(one).parameters.values()) for one in FUNCTIONS]
FAR = (-1, -2, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, -(2**31), -(2**63), -(2**63) - 1)
DTYPES = ("f4", "f4", "f4", "f8", "f8", "i8", "i4", "u1", "?", "c8", "f2")
WORDS = ("nearest", "bilinear", "linear", "bicubic", "constant", "reflect", "replicate", "same")
MEMORY = 4 << 30  # of the process: calls that take more are MemoryErrors


class Draw:
    """Numbers made of bytes: zeros when these have run out."""

    def __init__(self, content: bytes) -> None:
        self._content, self._place = content, 0

    def whole(self, low: int, high: int) -> int:
        """Return an int of that range, both ends included."""
        self._place += 1
        return low + int.from_bytes(self._content[self._place - 1 : self._place]) % (high - low + 1)

    def pick(self, values: Sequence) -> Any:
        return values[self.whole(0, len(values) - 1)]

    def chance(self, one_of: int) -> bool:
        """Return True for the highest of so many numbers."""
        return self.whole(1, one_of) == one_of


def array(draw: Draw, rank: int) -> np.ndarray:
    """Return an array whose strides may be negative, zero, or of another memory format."""
    rank = draw.whole(0, 6) if draw.chance(10) else rank
    shape = [draw.whole(0, 5) for _ in range(rank)]
    dtype = np.dtype(draw.pick(DTYPES))
    values = (np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype)
    lay = draw.whole(0, 7)
    if lay == 1 and rank:
        return np.ascontiguousarray(values.T).T
    if lay == 2 and rank:
        return values[..., ::-1]
    if lay == 3 and rank:
        return np.broadcast_to(values[:1], shape) if shape[0] else values
    if lay == 4 and rank > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)
    return values


def size(draw: Draw) -> int:
    return draw.pick(FAR) if draw.chance(16) else draw.whole(0, 4)


def argument(draw: Draw, note: str, rank: int) -> Any:
    """Return a value for a parameter of this annotation."""
    if draw.chance(41):
        return draw.pick([None, "x", 1.5, True, (), [1, "a"], 1j])
    if "Spatial" in note or "Padding" in note:
        if draw.chance(2):
            return size(draw)
        return tuple(size(draw) for _ in range(rank - 2 if rank > 2 else 1))
    if "Pairs" in note:
        return [(size(draw), size(draw)) for _ in range(draw.whole(0, 4))]
    if "Sequence" in note:
        return [size(draw) for _ in range(draw.whole(0, 5))]
    if "rray" in note:
        return array(draw, rank)
    if "bool" in note:
        return draw.chance(2)
    if "str" in note:
        return draw.pick(WORDS)
    return size(draw)


def call(content: bytes) -> str:
    """Make the call that some bytes stand for, and return its function's name.

    An error that is none of the engine's comes out.
    """
    draw = Draw(content)
    which = draw.whole(0, len(FUNCTIONS) - 1)
    rank = draw.whole(3, 5)
    kwargs = {}
    for one in PARAMETERS[which]:
        if one.default is one.empty or draw.chance(2):
            kwargs[one.name] = argument(draw, str(one.annotation), rank)
    try:
        FUNCTIONS[which](**kwargs)
    except ERRORS as error:
        if not str(error):
            raise AssertionError(f"{FUNCTIONS[which].__name__}: no text") from error
    return FUNCTIONS[which].__name__


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    limit_memory()
    warnings.simplefilter("ignore")
    called = Counter(map(call, seed_files.read("engine")))
    print(f"{called.total()} calls of {len(called)} functions, each right or refused")
