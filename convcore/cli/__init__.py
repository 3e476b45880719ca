"""The command line tool ``convcore``: each sub-command is a file, or a folder.

``import convcore`` does not load it. Sub-commands import what they need when they run, so that
``convcore --help`` is fast and ``convcore info`` needs no extra.

Exit codes: 0 success, 1 a wrong result, 2 a usage error or a missing extra, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from convcore.cli import bench, demo, info, plan, run, summary, verify
from convcore.cli.errors import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with ``argv``, by default ``sys.argv[1:]``; return the exit code."""
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
    for module in (run, bench, info, verify, plan, summary, demo):
        module.add_command(commands)
    return parser
