"""Code as it is read: without what tutorials say to the formatter of their source."""

from __future__ import annotations

from typing import Any


def without_directives(app: Any, docname: str, source: list[str]) -> None:
    source[0] = source[0].replace("  # fmt: skip", "")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", without_directives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
