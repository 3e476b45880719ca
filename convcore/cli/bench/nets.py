"""Whole nets, trained and run, beside the same nets in other libraries."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from convcore.cli.bench.asked import keeps_environment, peers_of, rounds_of
from convcore.cli.errors import UsageError
from convcore.cli.machine import cpu_name

if TYPE_CHECKING:
    from rich.console import Console

    from convcore.bench.nets.catalogue import Net
    from convcore.bench.nets.measure import NetCell


def run(arguments: argparse.Namespace) -> int:
    """Time whole nets; return 1 if a result was wrong or a worker failed."""
    from convcore.bench.nets import measure, report
    from convcore.bench.nets.promises import promises
    from convcore.bench.process import WorkerError
    from convcore.bench.report import print_promises

    _check_files(arguments)
    nets = _nets(arguments)
    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in measure.PEERS)
    console = _console(len(peers))
    cells: list[NetCell] = []
    try:
        for cell in _cells(arguments, nets, peers):
            cells.append(cell)
            report.print_progress(console, cell)
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:  # after Ctrl-C too
        if cells:
            report.print_cells(console, cells, peers, rounds_of(arguments))
            _save(arguments, cells, peers)
    found = promises(cells, peers)
    print_promises(console, found)
    broken = arguments.check and not all(promise.kept for promise in found)
    return 1 if broken or any(cell.wrong for cell in cells) else 0


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse, before anything runs, what could not be saved."""
    for option in ("csv", "plot", "compare"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} is for layers; --nets has --json and --page")
    for option in ("json", "page"):
        file = getattr(arguments, option)
        if file is not None and not file.absolute().parent.is_dir():
            raise UsageError(f"--{option}: there is no directory {file.parent}")


def _nets(arguments: argparse.Namespace) -> Sequence[Net]:
    """Return the nets asked for; all of them if none is named."""
    from convcore.bench.nets.catalogue import NETS, net_named

    if arguments.suite or arguments.layer:
        raise UsageError("--nets measures whole nets, not layers: give it without --suite, --layer")
    try:
        return [net_named(name) for name in arguments.nets] or NETS
    except ValueError as error:
        raise UsageError(f"--nets: {error}") from None


def _console(n_peers: int) -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 80 + 50 * n_peers  # a file has no width; the table has
    return console


def _cells(
    arguments: argparse.Namespace, nets: Sequence[Net], peers: tuple[str, ...]
) -> Iterator[NetCell]:
    """Measure; yield what each net costs in each task, on each number of threads."""
    from convcore.bench.nets.catalogue import TASKS
    from convcore.bench.nets.measure import measure
    from convcore.engine.runtime.cpus import cpu_limit

    for threads in arguments.threads or (cpu_limit(),):
        yield from measure(
            *(os.environ, nets, TASKS, peers, threads, rounds_of(arguments)),
            *(arguments.isa, keeps_environment(arguments), arguments.compiled),
        )


def _save(arguments: argparse.Namespace, cells: Sequence[NetCell], peers: tuple[str, ...]) -> None:
    from convcore.bench.nets.page import as_page
    from convcore.bench.nets.report import as_data

    if arguments.json:
        text = json.dumps([as_data(cell) for cell in cells], indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    if arguments.page:
        machine = {"cpu": cpu_name(), "date": datetime.date.today().isoformat()}
        text = as_page(cells, peers, machine, shlex.join(["convcore", *sys.argv[1:]]))
        arguments.page.write_text(text, encoding="utf-8")
