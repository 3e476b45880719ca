"""``convcore watch SCRIPT``: loss, gradients and dead units while a script trains."""

from __future__ import annotations

import argparse
import math
import sys

from convcore.cli.errors import UsageError
from convcore.cli.programs.run import program_of


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``watch`` to the parser."""
    parser = commands.add_parser(
        "watch",
        help="run a training script, and show loss, gradients and dead units",
        description="Run a script as `convcore run` does, and show its loss, the norm of each "
        "layer's gradient and its dead units on standard error: in a terminal as a table (with "
        "rich, of the extra bench), else as lines.",
        usage="convcore watch [-h] [--every SECONDS] (SCRIPT | - | -m MODULE) [ARGUMENT ...]",
    )
    parser.add_argument(
        "--every", type=float, default=1.0, metavar="SECONDS", help="between two looks (default 1)"
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the program as ``__main__`` in a watch; its exit code is the command's."""
    if not 0 <= arguments.every < math.inf:
        raise UsageError(f"--every takes seconds, 0 or more, got {arguments.every}")
    program = program_of(arguments)
    from convcore.inspection import watch

    seen = watch(arguments.every)
    try:
        with seen:
            program()
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    if not seen.steps:  # of a program that failed, its own message says more
        print("convcore watch: no optimizer made a step", file=sys.stderr)
    return 0
