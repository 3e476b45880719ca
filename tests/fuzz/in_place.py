"""Drawn calls of every public function whose tensors are changed in place before backward.

    python tests/fuzz/in_place.py --tries 300       # of each function
    python tests/fuzz/in_place.py --only gather

A gradient is right, or the in-place error, and what is written into has a new version: see
tests/helpers/in_place_changes.py.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
import functions
from functions import Dtype, Function, Placeholder
from in_place_changes import findings, tensors_in
from right_calls import Call, Operands, values_of

TRIES = 60  # draws of each function's arguments
CALLS = 3  # with tensors in other places, which are right


def hunt(tries: int = TRIES, only: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield (function, seed, what is wrong) of drawn calls."""
    for function in functions.public_functions():
        if not only or function.name == only:
            for seed, call in right_calls(function, tries).items():
                for wrong in (*findings(call), *written_out(call)):
                    yield str(function), seed, wrong


def written_out(call: Call) -> Iterator[str]:
    """Yield that ``out`` keeps its version, of a call that takes ``out``."""
    import convcore

    o = Operands()
    with convcore.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outs = [t.new_zeros(t.shape) for t in tensors_in(call(o))]
        before = [(t._version, values_of(t)) for t in outs]
        try:
            call(o, out=outs[0] if len(outs) == 1 else tuple(outs))
        except Exception:
            return
    for t, (version, values) in zip(outs, before, strict=True):
        if t._version == version and values_of(t) != values:
            yield f"out was written into, and its version stays {version}"


def right_calls(function: Function, tries: int) -> dict[int, Call]:
    """Return calls that are right, by seed, each with a tensor where the ones before had none."""
    first = zlib.crc32(str(function).encode())
    found: dict[int, Call] = {}
    covered: set = set()
    for seed in range(first, first + tries):
        drawn = _drawn(function, seed)
        places = set(_places(drawn))
        if places <= covered:
            continue
        call = _call(function, drawn)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call(Operands())
            except Exception:
                continue
        covered |= places
        found[seed] = call
        if len(found) == CALLS:
            break
    return found


def _drawn(function: Function, seed: int) -> dict[Any, Any]:
    import convcore

    draw = functions.Draw(seed)
    draw.hostile = False
    args, kwargs = functions.arguments(draw, function.of(convcore), function.place)
    return {**dict(enumerate(args)), **kwargs}


def _places(drawn: dict[Any, Any]) -> Iterator[tuple]:
    """Yield (argument, dtype's kind) of the tensors."""
    for name, value in drawn.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Placeholder):
                yield name, one.array.dtype.kind


def _call(function: Function, drawn: dict[Any, Any]) -> Call:
    """Return a drawn call as a function of its operands; those of floats come from leaves."""
    import convcore

    def operand(o: Operands, value: Any) -> Any:
        if isinstance(value, Placeholder):
            made = convcore.from_numpy(np.array(value.array))
            made = made.to(getattr(convcore, value.dtype)) if value.dtype else made
            if made.dtype.is_floating_point or made.dtype.is_complex:
                o.leaves.append(made.requires_grad_())
                made = made.clone()
            return o.read(made)
        if isinstance(value, list):
            return [operand(o, one) for one in value]
        return getattr(convcore, value.name) if isinstance(value, Dtype) else value

    def call(o: Operands, **more: Any) -> Any:
        given = {name: operand(o, value) for name, value in drawn.items()}
        args = [given.pop(name) for name in list(given) if isinstance(name, int)]
        return function.of(convcore)(*args, **given, **more)

    return call


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=TRIES)
    parser.add_argument("--only", default="", help="the name of one function")
    options = parser.parse_args()
    count = 0
    for name, seed, wrong in hunt(options.tries, options.only):
        print(f"{seed}\t{name}\t{wrong}", flush=True)
        count += 1
    print(f"{options.tries} draws of each function, {count} findings")
    return bool(count)


if __name__ == "__main__":
    sys.exit(main())
