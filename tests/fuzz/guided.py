"""Checkpoints drawn by coverage, by atheris (which `pip install atheris` installs on Linux).

    python tests/fuzz/guided.py FOLDER -runs=1000000 -max_len=4096

FOLDER keeps what has reached something new, and starts with the seeds of `checkpoints.py`.  What
is checked is the same; an input that fails is written to a file, which libFuzzer names.
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
import pickled
import world

LOOK_EVERY = 20_000  # inputs
WHOLE, PICKLE, OLDER = range(3)  # the first byte: what the rest is


class Target:
    """Reads inputs, and looks at the world now and then."""

    def __init__(self) -> None:
        self.count, self.world = 0, world.look()

    def __call__(self, content: bytes) -> None:
        """Read a file; raise if anything is wrong with what happens."""
        kind, body = content[:1], content[1:]
        if kind == bytes([PICKLE]):
            body = pickled.checkpoint(body).getvalue()
        elif kind == bytes([OLDER]):
            body = pickled.older(body).getvalue()
        if self.count % checkpoints.TRACED == 0:
            tracemalloc.start()
        _, wrong = checkpoints.check(body)
        tracemalloc.stop()
        if wrong:
            raise AssertionError(wrong)
        self.count += 1
        if self.count % LOOK_EVERY == 0:
            changed = world.changes(self.world, world.look())
            if changed:
                raise AssertionError(f"changed: {changed[:5]}")


def main() -> None:
    folder = next((Path(word) for word in sys.argv[1:] if word[0] != "-"), None)
    if folder is not None:
        folder.mkdir(exist_ok=True)
        for number, content in enumerate(checkpoints.seeds()):
            (folder / f"seed-{number}").write_bytes(bytes([WHOLE]) + content)
        for number in range(400):
            draw = checkpoints.random.Random(number)
            parts = b"".join(checkpoints._words(draw) for _ in range(draw.randrange(1, 6)))
            (folder / f"words-{number}").write_bytes(bytes([PICKLE + number % 2]) + parts)
    atheris.Setup(sys.argv, Target())
    atheris.Fuzz()


if __name__ == "__main__":
    main()
