"""Random calls of every public function with tensors on meta: PyTorch's shape, or one clear error.

    python tests/fuzz/on_meta.py --calls 20       # of each function, compared with PyTorch's
    python tests/fuzz/on_meta.py --only diag_embed

What has no values gives no values: a result on the CPU, or a shape that depends on values, would be
made up.  An error is right wherever something has to be computed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import functions
from functions import Dtype, Function, Placeholder

# What PyTorch's meta tensors answer otherwise, and why.
KNOWN = {
    "cross": "of two dtypes: PyTorch refuses them elsewhere",
    "equal": "tensors of two shapes are not",
    "full_like": "a number without a value",
    "glu": "of bools: PyTorch refuses them elsewhere",
    "pow": "of bools: PyTorch refuses them elsewhere",
    "subtract": "in the older order: PyTorch refuses the numbers elsewhere",
    "stride": "of an expanded or turned tensor: strides are not kept",
}


def findings(calls: int, only: str = "", torch: Any = None) -> Iterator[tuple[str, int, str]]:
    """Yield (function, seed, what is wrong) of so many calls of each function."""
    for function in functions.public_functions():
        if only and function.name != only:
            continue
        first = zlib.crc32(str(function).encode())
        for seed in range(first, first + calls):
            wrong = finding(function, seed, torch)
            if wrong:
                yield str(function), seed, wrong


def finding(function: Function, seed: int, torch: Any = None) -> str:
    """Make the call of a seed; return what is wrong with it, or ''."""
    import convcore

    draw = functions.Draw(seed)
    draw.hostile = False
    given = list(functions.arguments(draw, function.of(convcore), function.place))
    if not any(True for _ in _placeholders(given)):
        return ""
    found, error = _called(function, convcore, given)
    if error is not None:
        return functions._bad_error(error)
    off = [one for one in _tensors(found) if not one.is_meta]
    if off:
        return f"left the device: {tuple(off[0].shape)} {off[0].dtype}"
    if torch is None or function.of(torch) is None or function.name in KNOWN:
        return ""
    expected, refused = _called(function, torch, given)
    if isinstance(refused, NotImplementedError):
        return f"{_shown(found)} depends on values"
    in_place = function.name.endswith("_")  # PyTorch resizes there what does not fit
    if refused is None and not in_place and _shown(found) != _shown(expected):
        return f"{_shown(found)}, not {_shown(expected)}"
    return ""


def _placeholders(value: Any) -> Iterator[Placeholder]:
    if isinstance(value, Placeholder):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _placeholders(one)


def _called(function: Function, library: Any, given: list) -> tuple[Any, Exception | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            args, kwargs = _built(library, given)
            return function.of(library)(*args, **kwargs), None
        except Exception as error:
            return None, error


def _built(library: Any, value: Any) -> Any:
    if isinstance(value, Placeholder):
        dtype = value.dtype or value.array.dtype.name
        return library.empty(value.array.shape, dtype=getattr(library, dtype), device="meta")
    if isinstance(value, Dtype):
        return getattr(library, value.name)
    if isinstance(value, list):
        return [_built(library, one) for one in value]
    if isinstance(value, dict):
        return {key: _built(library, one) for key, one in value.items()}
    return value


def _tensors(value: Any) -> Iterator[Any]:
    if hasattr(value, "is_meta"):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _shown(value: Any) -> Any:
    """Return what two libraries' results are compared by."""
    if isinstance(value, tuple | list) and any(True for _ in _tensors(value)):
        return [_shown(one) for one in value]
    if hasattr(value, "is_meta"):
        return tuple(value.shape), str(value.dtype), value.device.type
    return repr(value) if isinstance(value, bool | int | float | np.number) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20, help="of each function")
    parser.add_argument("--only", default="", help="the name of one function")
    parser.add_argument("--alone", action="store_true", help="do not compare with PyTorch")
    options = parser.parse_args()
    torch = None
    if not options.alone and importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
    count = 0
    for name, seed, wrong in findings(options.calls, options.only, torch):
        print(f"{seed}\t{name}\t{wrong}")
        count += 1
    print(f"{options.calls} calls of each function, {count} findings")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
