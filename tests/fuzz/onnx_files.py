"""Mutated ONNX files: each is loaded, or refused with one clear error.

    python tests/fuzz/onnx_files.py --count 10000 --seed 1

The seeds are the models that the onnx package carries.  A bit, a run of bytes or a cut is changed;
what loads is not run.  Exit code 1 if a file raised anything but OnnxError.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from pathlib import Path

import onnx.backend.test

from convcore.onnx import OnnxError, load

SEEDS = Path(onnx.backend.test.__file__).parent / "data"
SMALL = 20_000  # bytes: in larger files most mutations hit a weight


def seeds() -> list[bytes]:
    """Return the small models of the package."""
    files = sorted(SEEDS.rglob("model.onnx"))
    return [data for file in files if len(data := file.read_bytes()) <= SMALL]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a file with a few changes."""
    result = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        if not result:
            break
        at = draw.randrange(len(result))
        match draw.randrange(5):
            case 0:
                result[at] ^= 1 << draw.randrange(8)
            case 1:
                result[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del result[at : at + draw.randint(1, 30)]
            case 3:
                result[at:at] = draw.randbytes(draw.randint(1, 10))
            case _:
                other = draw.randrange(len(result))
                result[at : at + 8] = result[other : other + 8]
    return bytes(result)


def fault(data: bytes) -> str | None:
    """Return what a file raised that it should not have."""
    try:
        load(data)
    except OnnxError:
        return None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {error}"
    return None


def run(count: int, seed: int) -> Counter[str]:
    """Return the faults of so many mutated files."""
    draw, models = random.Random(seed), seeds()
    found = (fault(mutated(draw.choice(models), draw)) for _ in range(count))
    return Counter(each for each in found if each)


def main() -> int:
    """Print the faults."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    faults = run(arguments.count, arguments.seed)
    for text, times in faults.most_common(40):
        print(f"{times:5} {text[:200]}")
    print(f"{arguments.count} files, {sum(faults.values())} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
