"""``convcore bench``: layers, small operations or whole nets, checked and timed beside peers.

options.py reads what is asked for; layers.py measures layers, nets.py nets and small operations,
busy.py both beside other processes.
"""

from __future__ import annotations

import argparse
import sys

from convcore.bench.process import WorkerError
from convcore.cli.bench import busy, layers, nets
from convcore.cli.bench.options import OVERHEAD, add_options, suites_of
from convcore.cli.errors import UsageError, require_extra


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``bench`` to the parser."""
    parser = commands.add_parser(
        "bench",
        help="check and time real layers beside PyTorch and other libraries",
        description="Compute layers of real nets, forward and both gradients; check every result "
        "against a slow oracle in float64; time convcore beside its peers, in processes of their "
        "own, taking turns. Exit code 1 if a result is wrong, if --check finds a figure beyond its "
        "limit, or if --compare finds a cell that has become slower.",
    )
    add_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, save; return 1 if a result was wrong, a limit not kept or a worker failed."""
    require_extra("bench", "rich")
    try:
        if arguments.busy:
            return busy.run(arguments)
        if arguments.nets is not None:
            return nets.run(arguments)
        if arguments.precision != "float32":
            raise UsageError("--precision is for --nets")
        if OVERHEAD in suites_of(arguments):
            return nets.run_overhead(arguments)
        return layers.run(arguments)
    except WorkerError as error:
        print(f"convcore bench: {error}", file=sys.stderr)
        return 1
