"""``convcore completion bash | zsh | fish``: print what makes a shell complete the command."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from convcore.cli.errors import require_extra

SHELLS = ("bash", "zsh", "fish")
_INSTALL = (
    "  convcore completion bash \\\n    > ~/.local/share/bash-completion/completions/convcore",
    "  convcore completion zsh \\\n    > FOLDER/_convcore    (a folder of $fpath)",
    "  convcore completion fish \\\n    > ~/.config/fish/completions/convcore.fish",
)


def add_command(commands: argparse._SubParsersAction, whole: argparse.ArgumentParser) -> None:
    """Add ``completion`` to the parser, for all commands of the whole parser."""
    parser = commands.add_parser(
        "completion",
        help="print a shell's completion of this command, for bash, zsh or fish",
        description="\n\n".join(
            (
                "Print a shell's completion of commands, options\nand files. Where it goes:",
                *_INSTALL,
                "It needs shtab: pip install 'convcore[completion]'",
            )
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=partial(run, whole))


def run(whole: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Print the script."""
    require_extra("completion", "shtab")
    import shtab

    _complete_files(whole, shtab.FILE)
    print(shtab.complete(whole, arguments.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Have a parser's options that take a path, and those of its commands, completed by files."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, files)
        elif action.type is Path or action.dest == "program":
            action.complete = files  # type: ignore[attr-defined]
            if action.help is argparse.SUPPRESS:  # which shtab would leave out
                action.help = "the program and its arguments"
