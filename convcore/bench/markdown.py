"""Sections and tables of the pages that show a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convcore.bench.promises import Promise


def section(heading: str, lines: Iterable[str]) -> list[str]:
    """Return the lines below a heading; nothing if there are none."""
    lines = list(lines)
    return ["", heading, "", *lines] if lines else []


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield _line(headings)
    yield _line(["---"] * len(headings))
    yield from map(_line, rows)


def promise_table(found: Sequence[Promise]) -> Iterator[str]:
    """Yield the lines of a table of promises; none if there are none."""
    if found:
        rows = [(p.text, p.value, p.limit, "yes" if p.kept else "**no**", p.worst) for p in found]
        yield from table(("figure", "is", "limit", "kept", "worst"), rows)


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"
