"""``convcore run script.py | -m module``: run a program written for PyTorch on convcore."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable
from functools import partial

from convcore.cli.errors import UsageError
from convcore.cli.programs.streams import STANDARD_INPUT, is_stream, run_stream


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``run`` to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a program written for PyTorch, with convcore in PyTorch's place",
        description="Run a script, or with -m a module, as python does, but `import torch` and "
        "every `import torch.X` in it gives convcore. What convcore has not is an error that names "
        "it and says what to use instead. With - the program is read from standard input.",
        usage="convcore run [-h] (SCRIPT | - | -m MODULE) [ARGUMENT ...]",
    )
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the program as ``__main__``; its exit code is the command's."""
    program_of(arguments)()
    return 0


def _require_program(path: str) -> None:
    if path == STANDARD_INPUT:
        return
    if not os.path.exists(path):
        raise UsageError(f"{path}: No such file or directory")
    if os.path.isdir(path) and not os.path.exists(os.path.join(path, "__main__.py")):
        raise UsageError(f"{path!r} is a directory without a __main__.py")
    if os.path.splitext(path)[1].lower() in (".onnx", ".pt", ".pth", ".safetensors"):
        raise UsageError(
            f"{path!r} is no Python script: `convcore run-model` and `convcore summary` take nets"
        )


def _require_module(name: str) -> None:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # something that a package of it imports
        found = None
    if found is None:
        raise UsageError(f"there is no module {name!r}")


def program_of(arguments: argparse.Namespace) -> Callable[[], object]:
    """Return what runs the program that a command line names, once all is prepared for it.

    Raises
    ------
    UsageError
        It names none, or a file that is not there.
    """
    as_module = arguments.module is not None
    program: list[str] = arguments.module if as_module else arguments.program
    if not program:
        raise UsageError("name a script, - for standard input, or -m and a module")
    if not as_module:
        _require_program(program[0])
    from convcore.cli.programs.tracebacks import hide_launcher
    from convcore.compat import as_torch

    hide_launcher()
    as_torch()
    sys.argv = program
    if as_module:
        sys.path.insert(0, os.getcwd())
        _require_module(program[0])
        return partial(runpy.run_module, program[0], run_name="__main__", alter_sys=True)
    if program[0] == STANDARD_INPUT:
        sys.path.insert(0, os.getcwd())
        return partial(run_stream, program[0])
    sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
    if is_stream(program[0]):
        return partial(run_stream, program[0])
    return partial(runpy.run_path, program[0], run_name="__main__")
