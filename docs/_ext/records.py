"""Pages of what was measured: the records in `benchmarks` and their charts, as they lie there.

Each record starts with the command that wrote it. A new one becomes a page without a word here.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks"


def pages(folder: Path = RECORDS) -> dict[str, str]:
    """Return the text of each record's page; how it was measured is `how`."""
    names = {path.stem: path for path in sorted(folder.glob("*.md"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in names.items()}
    heads = [text.partition("\n")[0] for text in texts.values()]
    for name, text in texts.items():
        head, _, rest = text.partition("\n")
        if heads.count(head) > 1:  # the same command on another machine
            cpu = re.search(r"^(.+), \d{4}-\d\d-\d\d\.$", rest, re.MULTILINE)[1]
            texts[name] = f"{head} on an {cpu}\n{rest}"
    if "README" in texts:
        texts["how"] = texts.pop("README").replace("# Benchmarks", "# How it is measured", 1)
    # Indented lines are commands there, no Python.
    return {name: f"```{{highlight}} none\n```\n\n{text}" for name, text in texts.items()}


def command_of(text: str) -> str:
    """Return the command that wrote a record."""
    return re.search(r"^    (\S.*)$", text, re.MULTILINE)[1]


def generate(app: Any) -> None:
    folder = Path(app.srcdir) / "performance" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for picture in (*RECORDS.glob("*.svg"), *RECORDS.glob("*.png")):
        shutil.copyfile(picture, folder / picture.name)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
