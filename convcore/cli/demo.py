"""``convcore demo photo``: the engine at work on something to look at."""

from __future__ import annotations

import argparse
from pathlib import Path

from convcore.cli.errors import UsageError, require_extra


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``demo`` to the parser."""
    parser = commands.add_parser(
        "demo",
        help="filter two photographs and take the gradient back to their pixels",
        description="Run Gabor and Sobel filters over the photographs that scikit-learn carries, "
        "take the gradient of the responses' energy back to the pixels, and draw it all in one "
        "picture.",
    )
    parser.add_argument("subject", choices=("photo",))
    parser.add_argument("--output", type=Path, default=Path("photo.png"), metavar="FILE")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute, draw, save; say what was done and where it is."""
    require_extra("demo", "sklearn", "matplotlib")
    output: Path = arguments.output
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output: there is no directory {output.parent}")
    from convcore.demo.photo import describe, load_photographs, respond
    from convcore.demo.picture import save_picture

    responses = respond(load_photographs())
    try:
        save_picture(responses, output)
    except ValueError as error:
        # matplotlib's own sentence names the formats that it can write.
        raise UsageError(f"--output: {error}") from None
    print(describe(responses))
    print(f"Saved to {output}")
    return 0
