"""Charts of a run: ratios by layer, and time over size along a sweep."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from convcore.bench.peers import title
from convcore.bench.results import (
    Growth,
    Outcome,
    Ratio,
    Request,
    better_ratios,
    counted,
    growths,
    ratios,
)

# Blue, orange, green of Okabe & Ito's palette, which colour-blind people can tell apart.
_COLOURS = {"contiguous": "#0072B2", "channels_last": "#D55E00", "better": "#009E73"}
_LABELS = {"contiguous": "NCHW", "channels_last": "NHWC", "better": "each side's better format"}
_TITLES = {"forward": "forward", "input_grad": "input gradient", "weight_grad": "weight gradient"}
_MARKERS = "osDv^"
_ROW_INCHES, _HEAD_INCHES = 0.3, 1.5


def save_chart(file: Path, outcome: Outcome, request: Request) -> None:
    """Draw a run into a file; the ending says the format.

    Raises
    ------
    ValueError
        If there is nothing to draw: no ratio to any peer, and no sweep.
    """
    lines = growths(outcome) if "scaling" in request.suites else []
    figure = _growth_figure(lines) if lines else _ratio_figure(outcome, request)
    write_figure(figure, file)


def write_figure(figure: Figure, file: Path) -> None:
    """Write a figure, as text that is the same for the same run; the ending says the format."""
    # Keeps the hour of drawing out of the file.
    metadata = {"Date": None} if file.suffix.lower() == ".svg" else None
    # Written whole or not at all.
    picture = io.BytesIO()
    # Text stays text, and the same run gives the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "convcore"}):
        figure.savefig(picture, format=file.suffix[1:], dpi=120, metadata=metadata)
    file.write_bytes(picture.getvalue())


def is_drawable(file: Path) -> bool:
    """Return whether a picture can be written in a file's format."""
    return file.suffix[1:].lower() in FigureCanvasAgg(Figure()).get_supported_filetypes()


def _ratio_figure(outcome: Outcome, request: Request) -> Figure:
    """Return a row of panels a peer, a column a pass: a line a layer, a mark a ratio."""
    drawn = {peer: kinds for peer in request.peers if (kinds := _by_kind(outcome, peer))}
    found = [ratio for kinds in drawn.values() for ratios in kinds.values() for ratio in ratios]
    if not found:
        raise ValueError("no ratio to any peer was measured")
    shown = {ratio.ours.layer.name for ratio in found}
    names = [layer.name for layer in request.layers if layer.name in shown]
    measured = {ratio.ours.pass_name for ratio in found}
    passes = [name for name in request.passes if name in measured]
    threads = sorted(request.threads)
    height = len(drawn) * (_ROW_INCHES * len(names) + _HEAD_INCHES) + 0.6
    figure = Figure((4.0 * len(passes) + 3.0, height), layout="constrained")
    if request.algorithm:
        figure.suptitle(f"convcore held to {request.algorithm}", fontsize=11)
    panels = figure.subplots(len(drawn), len(passes), squeeze=False, sharey=True, sharex="row")
    for (peer, kinds), row in zip(drawn.items(), panels, strict=True):
        for name, axes in zip(passes, row, strict=True):
            mine = {k: [r for r in rs if r.ours.pass_name == name] for k, rs in kinds.items()}
            if any(mine.values()):
                _draw_ratios(axes, mine, names, threads)
                axes.set_title(f"{title(peer)}: {_TITLES[name]}", fontsize=10)
                axes.set_xlabel(f"{title(peer)}'s time / convcore's", fontsize=9)
            else:
                axes.set_visible(False)
    kinds = dict.fromkeys(kind for kinds in drawn.values() for kind in kinds)
    handles = [
        *(Line2D([], [], color=_COLOURS[k], linewidth=3, label=_LABELS[k]) for k in kinds),
        *(
            Line2D([], [], linestyle="none", label=counted(t), **_mark(t, threads, "0.3", None))
            for t in threads
        ),
        Line2D([], [], color="black", linewidth=0.8, label="right of it convcore leads"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=6, frameon=False)
    return figure


def _by_kind(outcome: Outcome, peer: str) -> dict[str, list[Ratio]]:
    """Return a peer's ratios by format, or those of better formats if it has one format only."""
    same = ratios(outcome, peer)
    formats = sorted({ratio.ours.format for ratio in same}, reverse=True)
    if len(formats) > 1:
        return {form: [r for r in same if r.ours.format == form] for form in formats}
    better = better_ratios(outcome, peer)
    return {"better": better} if better else {}


def _mark(
    count: int, threads: Sequence[int], colour: str, size: float | None = 4
) -> dict[str, Any]:
    """Return how points on so many threads are drawn: hollow on the least of several."""
    hollow = count == threads[0] and len(threads) > 1
    return {
        "marker": _MARKERS[threads.index(count) % len(_MARKERS)],
        "markersize": size,
        "color": colour,
        "markerfacecolor": "white" if hollow else colour,
    }


def _draw_ratios(
    axes: Axes, kinds: dict[str, list[Ratio]], names: Sequence[str], threads: Sequence[int]
) -> None:
    """Draw one panel: quartiles as a line, the median as a mark, a row of its own each."""
    slots = [(kind, count) for kind in kinds for count in threads]
    for slot, (kind, count) in enumerate(slots):
        mine = [ratio for ratio in kinds[kind] if ratio.ours.threads == count]
        offset = 0.64 * ((slot + 0.5) / len(slots) - 0.5)
        rows = [names.index(ratio.ours.layer.name) + offset for ratio in mine]
        lows, highs = ([getattr(r.quartiles, end) for r in mine] for end in ("low", "high"))
        axes.hlines(rows, lows, highs, _COLOURS[kind], linewidth=1)
        medians = [ratio.quartiles.median for ratio in mine]
        axes.plot(medians, rows, linestyle="none", **_mark(count, threads, _COLOURS[kind]))
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    for row in range(1, len(names), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="0.96", zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _growth_figure(lines: Sequence[Growth]) -> Figure:
    """Return a panel a sweep and a pass: time over size, both by powers, beside a linear slope."""
    sweeps = list(dict.fromkeys(line.sweep for line in lines))
    passes = list(dict.fromkeys(line.pass_name for line in lines))
    figure = Figure((4.2 * len(passes) + 0.6, 3.2 * len(sweeps) + 0.6), layout="constrained")
    panels = figure.subplots(len(sweeps), len(passes), squeeze=False, sharex="row", sharey="row")
    for sweep, row in zip(sweeps, panels, strict=True):
        for name, axes in zip(passes, row, strict=True):
            _draw_growth(axes, [x for x in lines if x.sweep == sweep and x.pass_name == name])
            axes.set_title(f"{sweep}: {_TITLES[name]}", fontsize=10)
        row[0].set_ylabel("ms a call", fontsize=9)
    for axes in panels[-1]:
        axes.set_xlabel("output pixels of the batch, N x OH x OW", fontsize=9)
    return figure


def _draw_growth(axes: Axes, lines: Sequence[Growth]) -> None:
    threads = sorted({line.threads for line in lines})
    for line in lines:
        mark = _mark(line.threads, threads, _COLOURS[line.format])
        axes.plot(
            line.sizes,
            [1e3 * seconds for seconds in line.seconds],
            linewidth=1,
            linestyle="--" if mark["markerfacecolor"] == "white" else "-",
            label=f"{_LABELS[line.format]}, {counted(line.threads)}: size^{line.exponent:.2f}",
            **mark,
        )
    _draw_linear(axes, lines)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(color="0.9", linewidth=0.6)
    axes.legend(fontsize=7, frameon=False)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_linear(axes: Axes, lines: Sequence[Growth]) -> None:
    """Draw the slope that linear growth has, below all lines."""
    sizes = sorted({size for line in lines for size in line.sizes})
    least = min(s / n for line in lines for n, s in zip(line.sizes, line.seconds, strict=True))
    axes.plot(
        sizes,
        [0.7e3 * least * size for size in sizes],
        color="0.6",
        linewidth=3,
        alpha=0.6,
        label="linear",
    )
