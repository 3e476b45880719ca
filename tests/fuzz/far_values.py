"""Right calls in whose tensors one number is far out: a result, or one clear error; the long form.

    python tests/fuzz/far_values.py --tries 100     # draws of each function's arguments
    python tests/fuzz/far_values.py --only bincount

Indices and sizes that come in tensors go to NumPy's C code and to our own.  In each call that is
right, the first or the last number of one tensor is changed.  Children make the calls, so that a
crash is one more finding; a build with CONVCORE_DEBUG=1 under AddressSanitizer sees every access
outside of arrays.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
import functions
import in_place
import right_calls
from right_calls import Call, Operands

HERE = Path(__file__).resolve()
FAR = {
    "i": (2**63 - 1, -(2**63), 2**62, 2**31, -(2**31), 2**20, -1),
    "u": (2**63, 2**31, 255),
    "f": (np.nan, np.inf, -np.inf, 1e30, 2.0**63, -1e13, 1e13),
}


class _Changed(Operands):
    """Operands of which one number, of the tensor with an index, is another one."""

    def __init__(self, number: int, place: int, value: Any) -> None:
        super().__init__()
        self.change = number, place, value

    def read(self, tensor: Any) -> Any:
        import convcore

        number, place, value = self.change
        array = tensor._array
        if len(self.reads) == number and array.size and array.dtype.kind in FAR:
            with convcore.no_grad(), np.errstate(all="ignore"):
                changed = array.copy()
                changed.flat[place] = np.asarray(value).astype(array.dtype)
                array[...] = changed
        return super().read(tensor)


class Made(NamedTuple):
    name: str
    call: Call


def calls(tries: int, only: str) -> list[Made]:
    """Return calls that are right: those written by hand, and drawn ones."""
    found = [
        Made(name, call)
        for name, call in (right_calls.FUNCTIONS | right_calls.LAYERS).items()
        if only in ("", name.split(",")[0])
    ]
    for function in functions.public_functions() if tries else ():
        if only in ("", function.name):
            for call in in_place.right_calls(function, tries).values():
                found.append(Made(str(function), call))
    return found


def findings(call: Call) -> Iterator[str]:
    """Yield what is wrong with a call in which one number is far out."""
    import convcore

    operands = Operands()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(operands)
    for number, (tensor, _, _) in enumerate(operands.reads):
        array = tensor._array
        for value in FAR.get(array.dtype.kind, ()) if array.size else ():
            if array.dtype.kind in "iu" and not _fits(value, array.dtype):
                continue
            for place in {0, array.size - 1}:
                state = functions._state(convcore)
                wrong = _wrong(call, _Changed(number, place, value))
                if not wrong and functions._state(convcore) != state:
                    wrong = "changed the process's state"
                if wrong:
                    yield f"{value} in tensor {number}: {wrong}"
                    break


def _fits(value: int, dtype: np.dtype) -> bool:
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def _wrong(call: Call, operands: Operands) -> str:
    """Make a call, and its backward; return what is wrong with its error, or ''."""
    import convcore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = [t for t in in_place.tensors_in(call(operands)) if t.requires_grad]
            if found:
                seeds = [convcore.ones_like(t) for t in found]
                convcore.autograd.grad(found, operands.leaves, seeds, allow_unused=True)
        except Exception as error:
            return functions._bad_error(error)
    return ""


def hunt(tries: int, only: str, folder: Path) -> list[list]:
    """Return the findings as [number of the call, function, what]."""
    made = calls(tries, only)
    command = [str(HERE), "--work", str(tries), only]
    return functions.in_children(command, 0, len(made), folder, lambda number: made[number].name)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=60, help="draws of each function's arguments")
    parser.add_argument("--only", default="", help="the name of one function")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        tries, only, start, stop, progress = options.work
        made = calls(int(tries), only)

        def call(number: int) -> tuple[Any, str]:
            return made[number].name, "; ".join(findings(made[number].call))

        functions.make_calls(int(start), int(stop), progress, call)
        return 0
    found = hunt(options.tries, options.only, Path("/tmp"))
    for number, name, what in found:
        print(f"{number}\t{name}\t{what}")
    print(f"{len(calls(options.tries, options.only))} calls, {len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
