"""Write the examples of the README and of the site's pages as programs: `examples.py FOLDER`.

Type checkers read them there as they read anybody's program: `bash .ci/run lint`.
"""

from __future__ import annotations

import doctest
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def pages() -> list[Path]:
    """List the README and the pages of the site that are written by hand."""
    docs = ROOT / "docs"
    rooms = ("start", "howto", "explanations")
    written = [page for room in rooms for page in sorted((docs / room).glob("*.rst"))]
    return [ROOT / "README.md", *sorted(docs.glob("*.md")), *written]


def program(page: Path) -> str:
    """Return the lines of Python that a page shows; '' if it shows none."""
    examples = doctest.DocTestParser().get_examples(page.read_text("utf-8"), page.name)
    return "".join(example.source for example in examples)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        if text := program(page):
            (folder / f"{page.parent.name}_{page.stem}.py").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
