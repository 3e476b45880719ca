"""The command line tool ``convcore``: each sub-command is a file, or a folder.

``import convcore`` does not load it. Sub-commands import what they need when they run, so that
``convcore --help`` is fast and ``convcore info`` needs no extra.

Exit codes: 0 success, 1 a wrong result, or the machine lacks memory, room or descriptors, 2 a usage
error or a missing extra, 130 interrupted, 141 nobody reads the output any longer, as after
``| head -1``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import convcore
from convcore._errors.hints import stale_kernels
from convcore.cli import bench, completion, demo, info, plan, verify
from convcore.cli.errors import UsageError, is_of_setting, lacking
from convcore.cli.models import finetune, inspect, run_model, summary
from convcore.cli.overview import overview
from convcore.cli.parser import Parser
from convcore.cli.programs import run, watch
from convcore.cli.terminal import (
    open_standard_streams,
    output_fault,
    reader_is_gone,
    silence_output,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line with ``argv``, by default ``sys.argv[1:]``; return the exit code."""
    open_standard_streams()
    try:
        try:
            return _run(argv)
        finally:
            print(end="", flush=True)  # what is left is written here, where its failure is met
    except BrokenPipeError:
        if not reader_is_gone():
            raise
        silence_output()
        return 141
    except OSError:
        fault = output_fault()
        if fault is None:
            raise
        silence_output()
        print(f"convcore: standard output: {lacking(fault)}", file=sys.stderr)
        return 1


# Commands that run somebody's program, whose errors are shown as Python shows them.
_PROGRAMS = ("run", "watch")


def _run(argv: Sequence[str] | None) -> int:
    given = sys.argv[1:] if argv is None else list(argv)
    if given[:1] == ["help"]:  # as git's
        given = [*given[1:], "--help"]
    if given == ["version"]:
        given = ["--version"]
    arguments = _parser().parse_args(given, argparse.Namespace(argv=given))
    if arguments.command is None:
        print(overview())
        return 0
    try:
        return arguments.run(arguments)
    except UsageError as error:
        print(f"convcore {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    except Exception as error:
        if stale := stale_kernels(error):
            raise stale from error
        if arguments.command not in _PROGRAMS and is_of_setting(error):
            print(f"convcore {arguments.command}: {error}", file=sys.stderr)
            return 2
        said = None if arguments.command in _PROGRAMS else lacking(error)
        if said is None or isinstance(error, BrokenPipeError) or output_fault():
            raise
        print(f"convcore {arguments.command}: {said}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="convcore",
        description="Convolutional nets on the CPU. Without a command: what one can do with it.",
    )
    parser.add_argument(
        "-v", "--version", action="version", version=f"convcore {convcore.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in (
        run,
        watch,
        bench,
        info,
        verify,
        plan,
        summary,
        inspect,
        run_model,
        finetune,
        demo,
    ):
        module.add_command(commands)
    completion.add_command(commands, parser)
    return parser
