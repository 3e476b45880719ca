"""Kill a process that saves onto a file, at random moments: the old or the new one must be whole.

    python tests/fuzz/kills.py --count=300

A child saves one checkpoint after the other onto the same file; after each kill -9 the file is
read.  The exit code is 1 if one was not whole.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import convcore

SIZE = 200_000  # elements of each of the tensors
N_TENSORS = 4


def checkpoint(number: int) -> dict:
    return {f"{key}": convcore.full((SIZE,), number) for key in range(N_TENSORS)}


def is_whole(file: Path) -> int:
    """Return the number of a checkpoint, all of whose elements must be that number."""
    found = convcore.load(file)
    (number,) = {int(element) for value in found.values() for element in value.unique()}
    assert list(found) == [f"{key}" for key in range(N_TENSORS)]
    assert all(value.shape == (SIZE,) for value in found.values())
    return number


def save_forever(file: Path, number: int) -> None:
    while True:
        number += 1
        convcore.save(checkpoint(number), file)


def kill_one(file: Path, number: int, draw: random.Random) -> None:
    """Start a process that saves, and kill it within its first few."""
    child = os.fork()
    if not child:
        save_forever(file, number)
    time.sleep(draw.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="how many kills")
    parser.add_argument("--seed", type=int, default=20)
    options = parser.parse_args()
    draw, folder, lost, left = random.Random(options.seed), Path(tempfile.mkdtemp()), 0, 0
    try:
        convcore.save(checkpoint(0), folder / "a.pt")
        number, moved = 0, 0
        for _ in range(options.count):
            kill_one(folder / "a.pt", number, draw)
            try:
                found = is_whole(folder / "a.pt")
                moved, number = moved + (found != number), found
            except (OSError, ValueError, AssertionError) as error:
                lost += 1
                print(f"not whole: {error!r}")
                convcore.save(checkpoint(number), folder / "a.pt")
            others = [other for other in os.listdir(folder) if other != "a.pt"]
            left += bool(others)
            for other in others:
                os.unlink(folder / other)
    finally:
        shutil.rmtree(folder)
    print(
        f"{options.count} kills: {lost} files lost, {moved} replaced before the kill, {left} kills "
        "within a save, which leave the unfinished file beside it"
    )
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
