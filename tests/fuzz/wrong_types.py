"""Every argument of every public function of a wrong type: refused by its name; the long form.

    python tests/fuzz/wrong_types.py                # all, compared with PyTorch if it is there
    python tests/fuzz/wrong_types.py --only roll
    python tests/fuzz/wrong_types.py --call 4711    # one call again, shown

A call is drawn that is right; then one argument alone, or an element of a list, is changed to each
of WRONG.  A finding is an error in the interpreter's or NumPy's own words, which name no argument,
and a type that is taken where PyTorch refuses it, or refused where PyTorch takes it.  Flags are
left out: what they are given counts by its truth.  What differs and stays is in KNOWN, each kind
with its reason.  Children make the calls (functions.py).
"""

from __future__ import annotations

import functools
import math
import re
import sys
from inspect import Parameter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import functions

PLACES = (*functions.PLACES, "nn", "nn.init", "nn.utils", "nn.utils.rnn")
TRIES = 300  # draws, until a call is right

WRONG = ("2", b"2", None, [1], {}, object(), math.nan, 1, np.array(["2"], object), np.array("2"))
WRONG += (True, 1.5, 1j, np.float32(1), np.int64(1), np.ones(1), -1)
_AT_ONCE = "checked when the layer is made"
# (place, value and what, why that is as it should be)
KNOWN = (
    (
        r".*\((dim|more|rcond|high|reduce|bn_[bw])\)|linalg\.pinv\(args\)",
        r"None: taken",
        "as if it were not given",
    ),
    (
        r".*\((input|other|exponent|test_elements|bn_w)\)",
        r"array\(\[1\.\]\): taken",
        "as operators do",
    ),
    (
        r".*\((output_size|kernel_size|stride|padding|dim|split_size(_or_sections)?)(\[0\])?\)",
        r"np\.int64\(1\): taken",
        "NumPy's numbers are numbers",
    ),
    (r".*_loss\(var\)|.*\(data\)", r"np\.float32\(1\.0\): taken", "NumPy's numbers are numbers"),
    (
        r".*\((stride|\w*padding|dilation|target|p|kernel_size|max_val|dropout|total_norm)\)",
        r"array\(\[1\.\]\): refused",
        "an array is no number, of one element neither",
    ),
    (
        r".*(_loss\(target|clip_grads_with_norm_\(total_norm)\)",
        r".*: refused: .* must be Tensor",
        "a number, which PyTorch computes with by chance",
    ),
    (
        r".*(scale_factor|norm_type|kernel_size|stride|padding|shape)(\[0\])?\)",
        r"('2'|b'2'|True|{}|array\('2'.*): refused",
        "PyTorch reads texts by float() and int(), and takes bools for ints",
    ),
    (r"nn\.(Fractional\w+\(kernel_size|PReLU\(num_parameters)\)", r".*: refused", _AT_ONCE),
    (
        r"nn\.(Lazy)?Conv(Transpose)?\dd\((stride|padding|output_padding|dilation)(\[0\])?\)",
        r".*: refused: \w+ must be an int or a tuple of ints, got ",
        _AT_ONCE,
    ),
    (r".*(split|repeat_interleave)\(\w+\)", r"\[1\]: taken", "a list, as of the other form"),
    (r"Tensor\.is_pinned\(args\)", r".*: taken", "no memory is pinned, whatever the device"),
    (r"Tensor\.to\(args\)", r".*: refused: argument 'dtype'", "PyTorch passes over numbers"),
    (r"Tensor\.view\(size\)", r"-1: taken", "one size, by its name too"),
)
# Arguments that say what is done with the result, or take any value there is.
_LEFT_OUT = re.compile(r"^(out|generator|device|layout|requires_grad|pin_memory|names?|dtype|_.*)$")
# The interpreter's and NumPy's words for what they were given, not knowing for what.
UNCLEAR = re.compile(
    r"object is not (iterable|subscriptable|callable|an iterator)|has no len\(\)|"
    r"not supported between|unsupported operand type|cannot be interpreted as|must be real number|"
    r"can't multiply sequence|can only concatenate|could not convert string|invalid literal|"
    r"argument must be a string|bad operand type|is not iterable|is required|ufunc '|unhashable|"
    r"not enough values|too many values|not all arguments|Cannot cast|data type|object too deep|"
    r"has no attribute|must be None or|indices must be|setting an array element|"
    r"cannot convert|convertible to int|no implementation found for|dtype\('|can't convert|"
    r"unpack|Unsupported|argument \d|invalid type promotion|operands could not be broadcast"
)
# Words like these that are PyTorch's, or an operator's as in Python.
_CLEAR = re.compile(
    r"expected Tensor as element|can't convert np.ndarray of type|new\(\): invalid data type|"
    r"unsupported operand type\(s\) for [^:]+: 'Tensor' and|must be |expected |"
    r"Unsupported nonlinearity|Dict update sequence element"
)


class Place(NamedTuple):
    """An argument of a call, and whether it is an element of the list there."""

    function: Any
    parameter: Parameter
    listed: bool

    def __str__(self) -> str:
        return f"{self.function}({self.parameter.name}{'[0]' * self.listed})"


@functools.cache
def places(only: str = "") -> list[Place]:
    """Return every argument of the public functions, methods and constructors."""
    import convcore

    found = []
    for function in functions.public_functions(PLACES, classes="nn"):
        if only and function.name not in only.split(","):
            continue
        for position, one in enumerate(functions.parameters(function.of(convcore))):
            is_self = function.place == "Tensor" and position == 0
            is_flag = "bool" in str(one.annotation) or one.name == "inplace"
            left_out = one.kind is one.VAR_KEYWORD or _LEFT_OUT.match(one.name)
            if is_self or is_flag or left_out:
                continue
            found += [Place(function, one, listed) for listed in (False, True)]
    return found


@functools.cache
def right_call(function: Any) -> int | None:
    """Return a seed whose call is right, of tensors that hold something; None if none is found."""
    for seed in range(TRIES):
        _, args, kwargs = _right(function, seed)
        given = [one.array for one in (*args, *kwargs.values()) if hasattr(one, "array")]
        if all(one.size for one in given) and functions.is_right(function, args, kwargs):
            return seed
    return None


def _right(function: Any, seed: int) -> tuple[Any, list, dict[str, Any]]:
    import convcore

    draw = functions.Draw(seed)
    draw.hostile = False
    return draw, *functions.arguments(draw, function.of(convcore), function.place)


def _drawn(place: Place, seed: int, wrong: Any) -> tuple[Any, list, dict[str, Any]] | None:
    """Return the arguments of a right call with a wrong one in a place, and their draw."""
    import convcore

    draw, args, kwargs = _right(place.function, seed)
    one = place.parameter
    every = functions.parameters(place.function.of(convcore))
    kinds = (one.KEYWORD_ONLY, one.VAR_KEYWORD)
    required = [o.name for o in every if o.default is o.empty and o.kind not in kinds]
    if one.kind is one.VAR_POSITIONAL:
        owner, key = args, required.index(one.name)
        args[key:] = args[key:] or [None]
    elif one.kind is one.KEYWORD_ONLY or one.default is not one.empty:
        owner, key = kwargs, one.name
    else:
        owner, key = args, required.index(one.name)
    if place.listed:
        before = owner.get(key) if owner is kwargs else owner[key]
        if not isinstance(before, list) or not before:
            return None
        wrong = [wrong, *before[1:]]
    owner[key] = wrong
    return draw, args, kwargs


def _changed(place: Place, value: Any) -> tuple[Any, list, dict[str, Any]] | None:
    """Return the arguments of a call as `_drawn`, or None where no call is right."""
    seed = right_call(place.function)
    return None if seed is None else _drawn(place, seed, value)


def _wrong(place: Place, value: Any, compare: bool) -> str:
    """Make a call with a value of a wrong type in a place; return what is wrong, or ''."""
    import convcore

    drawn = _changed(place, value)
    if drawn is None:
        return ""
    given = list(drawn[1:])
    _, error = functions._called(place.function, convcore, *functions.built(convcore, given))
    said = ""
    if error is not None:
        said = functions._bad_error(error) or _unclear(place, error)
    if compare and not said:
        said = _unlike_pytorch(place, right_call(place.function), given, error)
    return "" if said and _is_known(place, value, said) else said


def _unclear(place: Place, error: Exception) -> str:
    """Return what is wrong with an error's text, or ''."""
    text = str(error)
    if f"'{place.parameter.name}'" in text or _CLEAR.search(text) or not UNCLEAR.search(text):
        return ""
    return f"{type(error).__name__}: {text} @ {functions._where(error)}"


def _is_known(place: Place, value: Any, said: str) -> bool:
    text = f"{value!r}: {said}"
    return any(re.fullmatch(a, str(place)) and re.match(b, text) for a, b, _ in KNOWN)


def _unlike_pytorch(place: Place, seed: int, given: list, error: Exception | None) -> str:
    """Return how a call's outcome differs from PyTorch's, which makes the right call; '' if not.

    Of errors the TypeErrors count: others are about values.
    """
    if error is not None and not isinstance(error, TypeError):
        return ""
    if _of_pytorch(place.function, list(_right(place.function, seed)[1:])) is not None:
        return ""
    theirs = _of_pytorch(place.function, given)
    if error is not None:
        return f"refused: {error}" if theirs is None else ""
    return "taken" if isinstance(theirs, TypeError) and _has_place(place, seed) else ""


def _of_pytorch(function: Any, given: list) -> Exception | None:
    """Return PyTorch's error of a call, if it has the function."""
    import torch

    if function.of(torch) is None:
        return NotImplementedError()
    return functions._called(function, torch, *functions.built(torch, given))[1]


@functools.cache
def _has_place(place: Place, seed: int) -> bool:
    """Return whether PyTorch's function has such an argument: takes there anything at all."""
    calls = [_drawn(place, seed, wrong) for wrong in WRONG]
    errors = [_of_pytorch(place.function, list(drawn[1:])) for drawn in calls if drawn]
    return not all(isinstance(error, TypeError) for error in errors)


SWEEP = functions.Sweep(
    Path(__file__).resolve(),
    places,
    WRONG,
    _changed,
    lambda place: right_call(place.function) is not None,
    _wrong,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main(__doc__.splitlines()[0]))
