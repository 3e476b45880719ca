"""Every int of every public function, far out: right, or one clear error; the long form.

    python tests/fuzz/far_integers.py                # all, compared with PyTorch if it is there
    python tests/fuzz/far_integers.py --only unfold
    python tests/fuzz/far_integers.py --call 4711    # one call again, shown

For each parameter that takes an int, alone or in a list, a call is drawn that is right; then the
int alone is changed to each number of FAR.  So a far int meets no other fault, which would be
refused before it.  Children with a limit on time and memory make the calls (functions.py).
"""

from __future__ import annotations

import functools
import re
import sys
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
import functions

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


def _wrong(place: Place, far: int, compare: bool) -> str:
    """Make a call with a far int in a place; return what is wrong, or ''."""
    seed = right_call(place)
    draw, args, kwargs = _drawn(place, seed or 0, far)
    return functions.judged(place.function, draw, args, kwargs, compare and seed is not None)


SWEEP = functions.Sweep(
    Path(__file__).resolve(),
    places,
    FAR,
    lambda place, far: _drawn(place, right_call(place) or 0, far)[1:],
    lambda place: right_call(place) is not None,
    _wrong,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
