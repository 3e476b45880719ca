#!/usr/bin/env python
"""Checkpoints drawn by coverage, by atheris (which `pip install atheris` installs on Linux).

    python tests/fuzz/guided.py FOLDER -runs=1000000 -max_len=4096

FOLDER keeps what has reached something new, and starts with the seeds of `checkpoints.py`, and with
the inputs that `seed_files.py` keeps.  What is checked is the same; an input that fails is written
to a file, which libFuzzer names.
"""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["convcore.serialization", "pickle", "zipfile"]):
    import pickle  # noqa: F401
    import zipfile  # noqa: F401

    import convcore.serialization.load  # noqa: F401

sys.path.insert(0, str(Path(__file__).resolve().parent))

import checkpoints
import seed_files
import world

LOOK_EVERY = 20_000  # inputs


class Target:
    """Reads inputs, and looks at the world now and then."""

    def __init__(self) -> None:
        for content in checkpoints.seeds():
            checkpoints.check(content)  # what loads lazily is there
        self.count, self.world = 0, world.look()

    def __call__(self, content: bytes) -> None:
        """Read a file; raise if anything is wrong with what happens."""
        if self.count % checkpoints.TRACED == 0:
            tracemalloc.start()
        _, wrong = checkpoints.check(checkpoints.framed(content))
        tracemalloc.stop()
        if wrong:
            raise AssertionError(wrong)
        self.count += 1
        if self.count % LOOK_EVERY == 0:
            changed = world.changes(self.world, world.look())
            if changed:
                raise AssertionError(f"changed: {changed[:5]}")


def main() -> None:
    folder = seed_files.unpack("checkpoints", sys.argv[1:])
    if folder is not None:
        for number, content in enumerate(checkpoints.seeds()):
            (folder / f"seed-{number}").write_bytes(bytes([checkpoints.WHOLE]) + content)
        for number in range(400):
            draw, kind = checkpoints.random.Random(number), checkpoints.PICKLE + number % 2
            parts = b"".join(checkpoints._words(draw) for _ in range(draw.randrange(1, 6)))
            (folder / f"words-{number}").write_bytes(bytes([kind]) + parts)
    atheris.Setup(sys.argv, Target())
    atheris.Fuzz()


if __name__ == "__main__":
    main()
