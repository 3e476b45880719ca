"""``convcore bench --busy``: nets and small layers beside other processes."""

from __future__ import annotations

import argparse
import json

from convcore.cli.bench.options import (
    command_line,
    console_of,
    environment_of,
    machine_now,
    peers_of,
    refuse,
    require_folders,
)
from convcore.cli.errors import UsageError

TRIALS, QUICK_TRIALS = 3, 1
# Options that mean nothing here.
_OF_OTHERS = (
    "csv", "compare", "strict", "algorithm", "passes", "formats", "dtypes", "seed", "plot", "page",
    "check", "compiled", "precision", "suite", "layer", "nets",
)  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Time all workloads beside all loads, and print the worst trials; return 0."""
    from convcore.bench.busy import LOADS, PEERS, Effort, measure
    from convcore.bench.progress import about, follow
    from convcore.bench.report import print_busy
    from convcore.engine.runtime.cpus import cpu_limit

    refuse(arguments, "--busy", *_OF_OTHERS)
    require_folders(arguments, "json")
    if arguments.threads and len(arguments.threads) > 1:
        raise UsageError("--threads: --busy takes one number of threads")
    threads = (arguments.threads or (cpu_limit(),))[0]
    peers = [peer for peer in peers_of(arguments.peers) if peer in PEERS]
    trials = arguments.rounds or (QUICK_TRIALS if arguments.quick else TRIALS)
    effort = Effort(LOADS, peers, trials)
    rows = effort.rows()
    console = console_of(110)
    console.print(f"{len(rows)} rows beside {len(LOADS)} loads: {about(effort.whole)}.")
    try:
        follow(measure(environment_of(arguments, threads), threads, effort, rows))
    finally:  # after Ctrl-C too
        print_busy(console, rows, LOADS)
        if arguments.json:
            data = {
                "command": command_line(arguments),
                "machine": machine_now(),
                "threads": threads,
                "rows": [row.as_data() for row in rows],
            }
            arguments.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
            console.print(f"saved {arguments.json}", markup=False)
    return 0
