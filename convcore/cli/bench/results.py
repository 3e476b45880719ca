"""What is done with measured layers: shown, saved, held to promises and to an older run."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.cli.errors import UsageError, require_extra

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.cell import Outcome
    from convcore.bench.request import Request
    from convcore.bench.saving import Files


def files_asked(arguments: argparse.Namespace) -> Files:
    """Return where to save what; whatever could not be saved is refused before anything runs."""
    from convcore.bench.saving import Files

    files = Files(arguments.json, arguments.csv, arguments.plot, arguments.page)
    for option, file in files.asked():
        if not file.absolute().parent.is_dir():
            raise UsageError(f"--{option}: there is no directory {file.parent}")
    if files.plot or files.page:
        require_extra("bench", "matplotlib")
    if files.plot:
        from convcore.bench.chart import is_drawable

        if not is_drawable(files.plot):
            raise UsageError(f"--plot: cannot write a picture as {files.plot.name!r}, .svg is one")
    return files


def older_run(file: Path | None) -> dict[str, Any] | None:
    """Read the run to compare with, before anything is measured."""
    from convcore.bench.compare import check_readable
    from convcore.bench.record import VERSION

    if file is None:
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        check_readable(data, VERSION)
    except OSError as error:
        raise UsageError(f"--compare: {error}") from None
    except ValueError as error:
        raise UsageError(f"--compare: {file} {error}") from None
    return data


def finish(
    console: Console, request: Request, outcome: Outcome, machine: Mapping[str, Any], check: bool
) -> bool:
    """Print the report; return whether all results are right and, if asked, all promises kept."""
    from convcore.bench import report
    from convcore.bench.promises import promises

    found = promises(outcome, request)
    report.print_workers(console, outcome, machine["cpu"])
    report.print_cells(console, outcome, request)
    report.print_promises(console, found)
    report.print_summary(console, outcome, request)
    kept = all(promise.kept for promise in found)
    if check:
        console.print("All figures are within their limits." if kept else "A limit is not kept.")
    return not outcome.wrong and (kept or not check)


def save(
    console: Console,
    files: Files,
    outcome: Outcome,
    request: Request,
    machine: Mapping[str, Any],
) -> None:
    """Save what was asked for, and print where."""
    from convcore.bench import saving

    command = shlex.join(["convcore", *sys.argv[1:]])
    for line in saving.save(files, outcome, request, machine, command):
        console.print(line, markup=False)


def compared(
    console: Console,
    before: Mapping[str, Any],
    outcome: Outcome,
    request: Request,
    machine: Mapping[str, Any],
    file: Path,
) -> bool:
    """Print what has changed since an older run; return whether nothing has become slower."""
    from convcore.bench import report
    from convcore.bench.compare import compare
    from convcore.bench.record import as_data

    # Through JSON's own text, so that both have what the older has been through.
    after = json.loads(json.dumps(as_data(outcome, request, machine)))
    comparison = compare(before, after)
    if not comparison.changes:
        raise UsageError(f"--compare: {file} has no cell and peer in common with this run")
    report.print_comparison(console, comparison, file.name)
    return not comparison.regressions
