"""The page of PyTorch's names, written from convcore's own lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convcore.compat import table


def generate(app: Any) -> None:
    Path(app.srcdir, "pytorch_names.md").write_text("\n".join(table.page()) + "\n", "utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
