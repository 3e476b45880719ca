"""The printed form of a summary, as text and for notebooks: a table and totals."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convcore.inspection.summary import Row, Summary

_HEAD = ("Module", "Type", "Output shape", "Parameters", "Multiply-adds")
_MIB = 1 << 20
_WIDEST = 40  # characters of a cell
_MOST = 500  # rows for notebooks


def text(found: Summary, columns: int = 0) -> str:
    """Return a summary's rows, down to its depth, and its totals as text.

    Where ``columns`` are too few for the table, types are left out, then names are cut.
    """
    cells = [_HEAD, *map(_cells, _shown(found))]
    widths = _widths(cells)
    if columns and sum(widths) + 2 * len(widths) - 2 > columns:
        excess = sum(widths) - widths[1] + 2 * len(widths) - 4 - columns
        most = max(widths[0] - max(excess, 0), 12)
        cells = [(_short(line[0], most), "", *line[2:]) for line in cells]
        widths = _widths(cells)
    lines = [_line(line, widths) for line in cells]
    rule = "-" * max(map(len, lines))
    return "\n".join([lines[0], rule, *lines[1:], rule, *_totals(found)])


def page(found: Summary) -> str:
    """Return the same as HTML, of the first `_MOST` rows."""
    rows = _shown(found)
    lines = [_row("th", _HEAD), *(_row("td", _cells(row)) for row in rows[:_MOST])]
    if len(rows) > _MOST:
        lines.append(f"<tr><td>... {len(rows) - _MOST:,} more</td></tr>")
    totals = html.escape("\n".join(_totals(found)))
    return f"<table>{''.join(lines)}</table><pre>{totals}</pre>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    sides = ("left",) * 3 + ("right",) * 2
    style = "white-space: pre; padding: 0.1em 0.5em; text-align:"
    texts = [
        f'<{tag} style="{style} {side}">{html.escape(cell)}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    ]
    return f"<tr>{''.join(texts)}</tr>"


def _shown(found: Summary) -> list[Row]:
    return [row for row in found.rows if found.depth is None or row.depth <= found.depth]


def _cells(row: Row) -> tuple[str, ...]:
    parameters = f"{row.parameters:,}" if row.parameters else "-"
    name = row.name.rpartition(".")[2] if row.is_leaf else row.name
    return (
        "  " * row.depth + _short(name or "(model)"),
        row.type,
        _short(_shape(row.output)),
        "again" if row.again and row.parameters else parameters,
        f"{row.multiply_adds:,}" if row.multiply_adds else "-",
    )


def _shape(output: Any) -> str:
    if isinstance(output, dict):
        return "{" + ", ".join(f"{key}: {_shape(value)}" for key, value in output.items()) + "}"
    if isinstance(output, tuple):
        return "(" + ", ".join(map(_shape, output)) + ")"
    return "-" if output is None else str(output)


def _widths(cells: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*cells, strict=True)]


def _short(cell: str, most: int = _WIDEST) -> str:
    return cell if len(cell) <= most else cell[: most - 3] + "..."


def _line(line: tuple[str, ...], widths: list[int]) -> str:
    texts = [cell.ljust(width) for cell, width in zip(line[:3], widths, strict=False)]
    numbers = [cell.rjust(width) for cell, width in zip(line[3:], widths[3:], strict=True)]
    parts = [texts[0], *texts[1 : 2 if widths[1] else 1], texts[2], *numbers]
    return "  ".join(parts).rstrip()


def _totals(found: Summary) -> list[str]:
    rest = found.total_params - found.trainable_params
    lines = [
        f"Parameters     {found.total_params:,}: {found.trainable_params:,} are trained, "
        f"{rest:,} are not; {found.buffers:,} elements of buffers",
        f"Multiply-adds  {found.multiply_adds:,} of the whole batch",
        f"Memory         {_mib(found.input_bytes)} input, {_mib(found.output_bytes)} results, "
        f"{_mib(found.param_bytes)} parameters and buffers: {_mib(found.total_bytes)}",
    ]
    if found.not_counted:
        lines.insert(2, f"Not counted    {', '.join(found.not_counted)}, called as functions")
    if found.not_called:
        lines.append(f"Not called     {', '.join(found.not_called)}")
    return lines


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / _MIB:.2f} MiB"
