"""The chart of whole nets: each library's speed over PyTorch's, as grouped bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from convcore.bench.chart import write_figure
from convcore.bench.nets import TASKS, NetCell
from convcore.bench.peers import OURS, title
from convcore.bench.results import counted

BASE = "torch"
# Of Okabe & Ito's palette, which colour-blind people can tell apart; convcore's is the strong one.
_COLOURS = {
    OURS: "#0072B2",
    "convcore_bfloat16": "#56B4E9",
    "torch_bfloat16": "#E69F00",
    "onnxruntime": "#009E73",
    "openvino": "#CC79A7",
}
_BARS = 0.8  # width of a group, of the distance between two


def save_nets_chart(file: Path, cells: Sequence[NetCell], peers: Sequence[str]) -> None:
    """Draw a run of nets into a file; the ending says the format.

    Raises
    ------
    ValueError
        If no cell has a time of PyTorch's.
    """
    drawn = [cell for cell in cells if cell.best(BASE)]
    if not drawn:
        raise ValueError("speeds are drawn over PyTorch's, which was not measured")
    threads = list(dict.fromkeys(cell.threads for cell in drawn))
    tasks = [task for task in TASKS if any(cell.task == task for cell in drawn)]
    nets = list(dict.fromkeys(cell.net.name for cell in drawn))
    # One task below the other, so that a page of a book's width can be read.
    width = max(3.4, 1.2 + 1.1 * len(nets))
    size = (width * len(threads) + 0.4, 2.1 * len(tasks) + 0.6)
    figure = Figure(size, layout="constrained")
    panels = figure.subplots(len(tasks), len(threads), squeeze=False, sharey="row")
    for row, task in zip(panels, tasks, strict=True):
        for axes, count in zip(row, threads, strict=True):
            mine = [cell for cell in drawn if (cell.threads, cell.task) == (count, task)]
            _draw(axes, mine, [OURS, *(peer for peer in peers if peer != BASE)])
            axes.set_title(f"{task}, {counted(count)}", fontsize=10)
        row[0].set_ylabel("times as fast as PyTorch", fontsize=9)
    handles, labels = [], []
    for axes in panels.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    write_figure(figure, file)


def _draw(axes: Axes, cells: Sequence[NetCell], libraries: Sequence[str]) -> None:
    """Draw a group of bars a net, up or down from PyTorch's 1, the quartiles as a line on each."""
    shown = [one for one in libraries if any(cell.best(one) for cell in cells)]
    wide = _BARS / max(1, len(shown))
    for slot, library in enumerate(shown):
        found = [(at, cell.speed(library, BASE)) for at, cell in enumerate(cells)]
        known = [(at, speed) for at, speed in found if speed is not None]
        medians = [speed.median for _, speed in known]
        reach = [
            [speed.median - speed.low for _, speed in known],
            [speed.high - speed.median for _, speed in known],
        ]
        bars = axes.bar(
            [at + wide * (slot + 0.5) - _BARS / 2 for at, _ in known],
            [median - 1 for median in medians],
            wide,
            bottom=1,
            yerr=reach,
            error_kw={"elinewidth": 0.8},
            color=_COLOURS[library],
            label=title(library),
        )
        axes.bar_label(bars, [f"{median:.2g}" for median in medians], fontsize=7, padding=1)
    axes.axhline(1.0, color="black", linewidth=0.8, label=title(BASE))
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.margins(y=0.12)
    axes.set_xticks(range(len(cells)), [cell.net.name for cell in cells], fontsize=8)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(axis="y", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
