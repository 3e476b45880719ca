"""Small operations, by which the cost of a call and of the graph shows."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convcore.cli.bench.asked import OVERHEAD, keeps_environment, peers_of, rounds_of, suites_of
from convcore.cli.errors import UsageError
from convcore.cli.machine import cpu_name

if TYPE_CHECKING:
    from convcore.bench.overhead import Cost


def run(arguments: argparse.Namespace) -> int:
    """Time small operations; return 1 if a result was wrong or a worker failed."""
    from rich.console import Console

    from convcore.bench import overhead, report
    from convcore.bench.cell import Outcome
    from convcore.bench.process import WorkerError

    if suites_of(arguments) != (OVERHEAD,) or arguments.layer:
        raise UsageError("--suite overhead measures operations, not layers: give it alone")
    peers = tuple(peer for peer in peers_of(arguments.peers) if peer in overhead.PEERS)
    console = Console(highlight=False)
    costs: list[Cost] = []
    outcome = Outcome()
    try:
        with console.status("timing small operations") as status:
            for cost in overhead.measure(
                *(os.environ, peers, rounds_of(arguments)),
                *(arguments.isa, keeps_environment(arguments), outcome.workers),
            ):
                costs.append(cost)
                status.update(f"timed {cost.operation.name}")
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
    finally:  # after Ctrl-C too
        if costs:
            report.print_workers(console, outcome, cpu_name())
            report.print_costs(console, costs, peers)
            if arguments.json:
                _save(arguments.json, costs)
    return 1 if any(cost.wrong for cost in costs) else 0


def _save(file: Path, costs: Sequence[Cost]) -> None:
    data = [
        {"operation": c.operation.name, "limit_us": c.operation.limit, "seconds": c.seconds}
        for c in costs
    ]
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
