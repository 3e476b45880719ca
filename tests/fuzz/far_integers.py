"""Every int of every public function, far out: right, or one clear error; the long form.

    python tests/fuzz/far_integers.py                # all, compared with PyTorch if it is there
    python tests/fuzz/far_integers.py --only unfold
    python tests/fuzz/far_integers.py --call 4711    # one call again, shown

For each parameter that takes an int, alone or in a list, a call is drawn that is right; then the
int alone is changed to each number of FAR.  So a far int meets no other fault, which would be
refused before it.  Children with a limit on time and memory make the calls (functions.py).
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
_SPEC = spec_from_file_location("function_fuzz", HERE.with_name("functions.py"))
functions = module_from_spec(_SPEC)
_SPEC.loader.exec_module(functions)

FAR = (2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 10**30, -(2**31) - 1, -(2**63), -(2**63) - 1)
PLACES = (*functions.PLACES, "nn", "nn.init", "nn.utils", "nn.utils.rnn", "utils.data")
PLACES += ("distributed",)
TRIES = 300  # draws of other arguments, until a call with a small int is right
SMALL = (1, 0, 2, 3, -1)
_INT = re.compile(r"\b(int|Size|Sizes?Like|Spatial|Dims?)\b")
_LIST = re.compile(r"Sequence|Iterable|tuple|list|Size|Spatial")

# Operands that fit one another, which drawn ones seldom do: (function, spatial axes) to shapes.
_OPERANDS = (
    (re.compile(r"conv_transpose(\d)d"), {"input": (2, 4), "weight": (4, 4)}),
    (re.compile(r"conv(\d)d"), {"input": (2, 4), "weight": (4, 4)}),
    (re.compile(r".*(?:pool|unpool)(\d)d"), {"input": (2, 4), "self": (2, 4)}),
)


class Place(NamedTuple):
    """An int of a call: a parameter, and whether it is an element of a list there."""

    function: Any
    parameter: Parameter
    listed: bool

    def value(self, number: int) -> Any:
        return [1, number] if self.listed else number

    def __str__(self) -> str:
        return f"{self.function}({self.parameter.name}={self.value(0)})"


@functools.cache
def places(only: str = "") -> list[Place]:
    """Return every place of an int in the public functions, methods and constructors."""
    import convcore

    found = []
    for function in functions.public_functions(PLACES, classes="nn"):
        if only and function.name not in only.split(","):
            continue
        for one in functions.parameters(function.of(convcore)):
            note = "" if one.annotation is one.empty else str(one.annotation)
            if not functions.INT_NAMES.match(one.name) and not _INT.search(note):
                continue
            found.append(Place(function, one, False))
            if functions.SEQUENCES.match(one.name) or _LIST.search(note):
                found.append(Place(function, one, True))
    return found


@functools.cache
def right_call(place: Place) -> int | None:
    """Return a seed whose call is right with a small int in this place; None if none is found."""
    for seed in range(TRIES):
        _, args, kwargs = _drawn(place, seed, SMALL[seed % len(SMALL)])
        if functions.is_right(place.function, args, kwargs):
            return seed
    return None


def _drawn(place: Place, seed: int, number: int) -> tuple[Any, list, dict[str, Any]]:
    """Return the arguments of a seed with a number in a place, and the draw that made them."""
    import convcore

    draw = functions.Draw(seed)
    draw.hostile = False
    function = place.function.of(convcore)
    args, kwargs = functions.arguments(draw, function, place.function.place)
    required = [one.name for one in functions.parameters(function) if one.default is one.empty]
    for name, shape in _fitting(place.function.name).items():
        if name in required:
            args[required.index(name)] = functions.Placeholder(draw.array("float32", shape))
    parameter, value = place.parameter, place.value(number)
    if parameter.kind is parameter.VAR_POSITIONAL:
        args.append(value)
    elif parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
        kwargs[parameter.name] = value
    else:
        args[required.index(parameter.name)] = value
    return draw, args, kwargs


def _fitting(name: str) -> dict[str, tuple[int, ...]]:
    """Return shapes of a function's operands, by parameter; none for most functions."""
    for pattern, shapes in _OPERANDS:
        if found := pattern.fullmatch(name):
            return {one: (*ends, *(5,) * int(found[1])) for one, ends in shapes.items()}
    return {}


def call(number: int, only: str, compare: bool) -> tuple[Any, str]:
    """Make a call by its number; return its function, and what is wrong."""
    place, far = _numbered(number, only)
    seed = right_call(place)
    draw, args, kwargs = _drawn(place, seed or 0, far)
    wrong = functions.judged(place.function, draw, args, kwargs, compare and seed is not None)
    return place, f"{far}: {wrong}" if wrong else ""


def _numbered(number: int, only: str) -> tuple[Place, int]:
    return places(only)[number // len(FAR)], FAR[number % len(FAR)]


def hunt(numbers: range, only: str, compare: bool, folder: Path) -> list[list]:
    """Return the findings of some calls as [number, place, what]."""
    command = [str(HERE), "--work", only, str(int(compare))]
    stop = min(numbers.stop, len(places(only)) * len(FAR))
    return functions.in_children(
        command, numbers.start, stop, folder, lambda number: str(_numbered(number, only)[0])
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="names of functions, between commas")
    parser.add_argument("--call", type=int, help="make one call again")
    parser.add_argument("--alone", action="store_true", help="do not compare with PyTorch")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        only, compare, start, stop, progress = options.work
        with_pytorch = functions.with_pytorch(compare == "1")
        functions.make_calls(
            int(start), int(stop), progress, lambda number: call(number, only, with_pytorch)
        )
        return 0
    if options.call is not None:
        place, far = _numbered(options.call, options.only)
        print(place, *_drawn(place, right_call(place) or 0, far)[1:], sep="\n")
        print(call(options.call, options.only, not options.alone)[1] or "right, or a clear error")
        return 0
    every = places(options.only)
    calls = len(every) * len(FAR)
    found = hunt(range(calls), options.only, not options.alone, Path("/tmp"))
    for number, name, what in found:
        print(f"{number}\t{name}\t{what}")
    reached = sum(right_call(place) is not None for place in every)
    print(f"{calls} calls in {len(every)} places, {reached} of them reached; {len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
