"""``convcore bench``: layers, small operations or whole nets, checked and timed beside peers.

What is measured has a file each: layers.py, overhead.py, nets.py.
"""

from __future__ import annotations

import argparse

from convcore.cli.bench import layers, nets, overhead
from convcore.cli.bench.asked import OVERHEAD, suites_of
from convcore.cli.bench.options import add_options
from convcore.cli.errors import require_extra


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
    """Measure, print, save; return 1 if any result was wrong or any figure beyond its limit."""
    require_extra("bench", "rich")
    if arguments.nets is not None:
        return nets.run(arguments)
    if OVERHEAD in suites_of(arguments):
        return overhead.run(arguments)
    return layers.run(arguments)
