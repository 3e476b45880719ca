"""Pages of what was measured: the records in `benchmarks`, as they lie there, and a chart of nets.

Each record starts with the command that wrote it. A new one becomes a page without a word here.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).resolve().parents[2] / "benchmarks"
GREY = "#808080"  # to be read on white and on black


def pages(folder: Path = RECORDS) -> dict[str, str]:
    """Return the text of each record's page; how it was measured is `how`."""
    names = {path.stem: path for path in sorted(folder.glob("*.md"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in names.items()}
    if "README" in texts:
        texts["how"] = texts.pop("README").replace("# Benchmarks", "# How it is measured", 1)
    # Indented lines are commands there, no Python.
    return {name: f"```{{highlight}} none\n```\n\n{text}" for name, text in texts.items()}


def command_of(text: str) -> str:
    """Return the command that wrote a record."""
    return re.search(r"^    (\S.*)$", text, re.MULTILINE)[1]


def net_ratios(text: str) -> dict[str, dict[str, float]]:
    """Return from the record of nets, for each task and net, PyTorch's time over convcore's."""
    found: dict[str, dict[str, float]] = {}
    columns: list[str] = []
    for line in text.partition("\n## Nets\n")[2].partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == "net":
            columns = cells
        elif columns and len(cells) == len(columns):
            row = dict(zip(columns, cells, strict=True))
            if ratio := re.match(r"[\d.]+", row["PyTorch / convcore"]):
                found.setdefault(row["task"], {})[row["net"]] = float(ratio[0])
    return found


def draw_nets(ratios: dict[str, dict[str, float]], file: Path) -> None:
    """Draw a bar for each net and task; the line at 1 is where both are as fast."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(ratios)
    for number, (task, nets) in enumerate(ratios.items()):
        places = [place + number * width for place in range(len(nets))]
        bars = axes.bar(places, list(nets.values()), width, label=task)
        axes.bar_label(bars, fmt="%.1f", fontsize=7, color=GREY)
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(nets))], list(nets))
    axes.set_ylabel("PyTorch's time / convcore's")
    axes.xaxis.label.set_color(GREY)
    axes.yaxis.label.set_color(GREY)
    axes.tick_params(colors=GREY)
    axes.spines[:].set_color(GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, labelcolor=GREY)
    figure.savefig(file, transparent=True, metadata={"Date": None})


def generate(app: Any) -> None:
    folder = Path(app.srcdir) / "performance" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    texts = pages()
    for name, text in texts.items():
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for picture in (*RECORDS.glob("*.svg"), *RECORDS.glob("*.png")):
        shutil.copyfile(picture, folder / picture.name)
    draw_nets(net_ratios(texts["nets"]), folder / "nets.svg")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
