"""``convcore bench`` on whole nets and on small operations."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from convcore.cli.bench.options import (
    OVERHEAD,
    command_line,
    console_of,
    environment_of,
    machine_now,
    peers_of,
    require_folders,
    rounds_of,
    suites_of,
)
from convcore.cli.errors import UsageError
from convcore.cli.machine import cpu_name

if TYPE_CHECKING:
    from convcore.bench.nets import Net, NetCell
    from convcore.bench.overhead import Cost


def run(arguments: argparse.Namespace) -> int:
    """Time whole nets; return 1 if a result was wrong or, if asked, a limit not kept."""
    from convcore.bench.nets import PEERS
    from convcore.bench.promises import net_promises
    from convcore.bench.report import print_net, print_nets, print_promises

    for option in ("csv", "plot", "compare"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} is for layers; --nets has --json and --page")
    require_folders(arguments, "json", "page")
    nets = _nets(arguments)
    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in PEERS)
    console = console_of(80 + 50 * len(peers))
    cells: list[NetCell] = []
    try:
        for cell in _cells(arguments, nets, peers):
            cells.append(cell)
            print_net(console, cell)
    finally:  # after Ctrl-C too
        if cells:
            print_nets(console, cells, peers, rounds_of(arguments))
            _save(arguments, cells, peers)
    found = net_promises(cells, peers)
    print_promises(console, found)
    broken = arguments.check and not all(promise.kept for promise in found)
    return 1 if broken or any(cell.wrong for cell in cells) else 0


def _nets(arguments: argparse.Namespace) -> Sequence[Net]:
    """Return the nets asked for; all of them if none is named."""
    from convcore.bench.nets import NETS, net_named

    if arguments.suite or arguments.layer:
        raise UsageError("--nets measures whole nets, not layers: give it without --suite, --layer")
    try:
        return [net_named(name) for name in arguments.nets] or NETS
    except ValueError as error:
        raise UsageError(f"--nets: {error}") from None


def _cells(
    arguments: argparse.Namespace, nets: Sequence[Net], peers: tuple[str, ...]
) -> Iterator[NetCell]:
    """Measure; yield what each net costs in each task, on each number of threads."""
    from convcore.bench.nets import measure
    from convcore.engine.runtime.cpus import cpu_limit

    rounds, compiled = rounds_of(arguments), arguments.compiled
    for threads in arguments.threads or (cpu_limit(),):
        environment = environment_of(arguments, threads)
        yield from measure(environment, nets, peers, threads, rounds, compiled)


def _save(arguments: argparse.Namespace, cells: Sequence[NetCell], peers: tuple[str, ...]) -> None:
    from convcore.bench.page import as_nets_page

    if arguments.json:
        text = json.dumps([cell.as_data() for cell in cells], indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    if arguments.page:
        text = as_nets_page(cells, peers, machine_now(), command_line())
        arguments.page.write_text(text, encoding="utf-8")


def run_overhead(arguments: argparse.Namespace) -> int:
    """Time small operations, by which the cost of a call shows; return 1 if a result was wrong."""
    from convcore.bench import overhead, report
    from convcore.bench.results import Outcome

    if suites_of(arguments) != (OVERHEAD,) or arguments.layer:
        raise UsageError("--suite overhead measures operations, not layers: give it alone")
    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in overhead.PEERS)
    console = console_of()
    costs: list[Cost] = []
    outcome = Outcome()
    try:
        with console.status("timing small operations") as status:
            given = (environment_of(arguments, 1), peers, rounds_of(arguments))
            for cost in overhead.measure(*given, outcome.workers):
                costs.append(cost)
                status.update(f"timed {cost.operation.name}")
    finally:  # after Ctrl-C too
        if costs:
            report.print_workers(console, outcome, cpu_name())
            report.print_costs(console, costs, peers)
            if arguments.json:
                data = [cost.as_data() for cost in costs]
                arguments.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 1 if any(cost.wrong for cost in costs) else 0
