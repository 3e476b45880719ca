"""The inputs that the two fuzzers by coverage start from: those of earlier runs, kept small.

    python tests/fuzz/guided_engine.py LESS FOLDER -merge=1   # the fewest that reach as much
    python tests/fuzz/seed_files.py engine LESS               # are kept

They lie in `seeds/engine.zip` and `seeds/checkpoints.zip`.  The suite replays each once.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "seeds"


def read(which: str) -> list[bytes]:
    """Return the inputs of a fuzzer: 'engine', or 'checkpoints'."""
    file = FOLDER / f"{which}.zip"
    if not file.exists():
        return []
    with zipfile.ZipFile(file) as found:
        return [found.read(name) for name in found.namelist()]


def unpack(which: str, words: Sequence[str]) -> Path | None:
    """Write them into the folder of a fuzzer's command line, and return that; None if it merges."""
    folders = [Path(word) for word in words if not word.startswith("-")]
    is_merge = any(word.startswith("-merge") for word in words)
    folder = None if is_merge else next(iter(folders), None)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(read(which)):
            (folder / f"kept-{number}").write_bytes(content)
    return folder


def keep(which: str, folder: Path) -> int:
    """Keep the inputs of a folder in place of the earlier ones; return how many there are."""
    contents = sorted({file.read_bytes() for file in folder.iterdir() if file.is_file()})
    FOLDER.mkdir(exist_ok=True)
    with zipfile.ZipFile(FOLDER / f"{which}.zip", "w", zipfile.ZIP_DEFLATED) as written:
        for number, content in enumerate(contents):
            written.writestr(zipfile.ZipInfo(str(number)), content, zipfile.ZIP_DEFLATED, 9)
    return len(contents)


if __name__ == "__main__":
    print(keep(sys.argv[1], Path(sys.argv[2])), "inputs")
