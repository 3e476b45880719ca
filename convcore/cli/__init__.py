"""The command ``convcore``: a sub-command a file, or a folder.

``import convcore`` loads nothing of this, and a sub-command loads what it needs when it runs, so
that ``convcore --help`` answers at once and ``convcore info`` needs no extra.

Exit codes: 0 all is well, 1 a result was wrong, 2 the command was not understood or lacks an extra,
130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from convcore.cli import bench, demo, info, plan, summary
from convcore.cli.errors import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        The exit code.
    """
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except UsageError as error:
        print(f"convcore {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="convcore", description="Convolutions on the CPU.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (bench, info, plan, summary, demo):
        module.add_command(commands)
    return parser
