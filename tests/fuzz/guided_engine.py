"""Calls of the engine on arrays, drawn by coverage, by atheris (`pip install atheris`, on Linux).

    python tests/fuzz/guided_engine.py FOLDER -runs=1000000 -max_len=256

Each argument is drawn by its annotation: small arrays of any rank, dtype and strides, sizes that
fit, and ints far out.  A call gives a result, or one of the engine's errors; an input that does
anything else is written to a file, which libFuzzer names.
"""

from __future__ import annotations

import inspect
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["convcore.engine"]):
    from convcore import engine

warnings.simplefilter("ignore")

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
MEMORY = 4 << 30  # of the process


def array(data: Any, rank: int) -> np.ndarray:
    """Return an array whose strides may be negative, zero, or of another memory format."""
    rank = rank if data.ConsumeProbability() < 0.9 else data.ConsumeIntInRange(0, 6)
    shape = [data.ConsumeIntInRange(0, 5) for _ in range(rank)]
    dtype = np.dtype(data.PickValueInList(list(DTYPES)))
    values = (np.arange(int(np.prod(shape))) % 7).reshape(shape).astype(dtype)
    lay = data.ConsumeIntInRange(0, 7)
    if lay == 1 and rank:
        return np.ascontiguousarray(values.T).T
    if lay == 2 and rank:
        return values[..., ::-1]
    if lay == 3 and rank:
        return np.broadcast_to(values[:1], shape) if shape[0] else values
    if lay == 4 and rank > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 1, -1)), -1, 1)
    return values


def whole(data: Any) -> Any:
    if data.ConsumeIntInRange(0, 15) == 0:
        return data.PickValueInList(list(FAR))
    return data.ConsumeIntInRange(0, 4)


def argument(data: Any, note: str, rank: int) -> Any:
    """Return a value for a parameter of this annotation."""
    if data.ConsumeIntInRange(0, 40) == 0:
        return data.PickValueInList([None, "x", 1.5, True, (), [1, "a"], 1j])
    if "Spatial" in note or "Padding" in note:
        if data.ConsumeBool():
            return whole(data)
        return tuple(whole(data) for _ in range(rank - 2 if rank > 2 else 1))
    if "Pairs" in note:
        return [(whole(data), whole(data)) for _ in range(data.ConsumeIntInRange(0, 4))]
    if "Sequence" in note:
        return [whole(data) for _ in range(data.ConsumeIntInRange(0, 5))]
    if "rray" in note:
        return array(data, rank)
    if "bool" in note:
        return data.ConsumeBool()
    if "str" in note:
        return data.PickValueInList(list(WORDS))
    return whole(data)


def call(content: bytes) -> None:
    """Make the call that some bytes stand for; an error that is none of the engine's comes out."""
    data = atheris.FuzzedDataProvider(content)
    which = data.ConsumeIntInRange(0, len(FUNCTIONS) - 1)
    rank = data.ConsumeIntInRange(3, 5)
    kwargs = {}
    for one in PARAMETERS[which]:
        if one.default is one.empty or data.ConsumeBool():
            kwargs[one.name] = argument(data, str(one.annotation), rank)
    try:
        FUNCTIONS[which](**kwargs)
    except ERRORS:
        return


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for word in sys.argv[1:]:
        if word[0] != "-":
            Path(word).mkdir(exist_ok=True)
    atheris.Setup(sys.argv, call)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
