"""``convcore demo photo | digits``: the engine and the graph at work on something to look at."""

from __future__ import annotations

import argparse
from pathlib import Path

from convcore.cli.errors import UsageError, require_extra


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``demo`` to the parser."""
    parser = commands.add_parser(
        "demo",
        help="filter photographs, or learn to read digits, and draw the gradients",
        description="photo: run Gabor and Sobel filters over the photographs that scikit-learn "
        "carries and take the gradient of the responses' energy back to the pixels. digits: train "
        "a small net on the handwritten digits that scikit-learn carries, in well under a minute, "
        "and let hooks show one digit's feature maps and the gradient at its pixels. Each draws "
        "one picture.",
    )
    parser.add_argument("subject", choices=("photo", "digits"))
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="default: photo.png or digits.png"
    )
    parser.add_argument("--epochs", type=_count, default=30, metavar="N", help="of digits")
    parser.add_argument("--seed", type=int, default=0, help="of digits")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute, draw, save; say what was done and where it is."""
    if arguments.subject == "photo":
        require_extra("demo", "sklearn", "matplotlib")
    else:
        require_extra("demo", "sklearn", "matplotlib", "rich")
    output: Path = arguments.output or Path(f"{arguments.subject}.png")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output: there is no directory {output.parent}")
    _check_format(output)
    if arguments.subject == "photo":
        _photo(output)
    else:
        _digits(output, arguments.epochs, arguments.seed)
    print(f"Saved to {output}")
    return 0


def _check_format(output: Path) -> None:
    """Refuse a format that cannot be written before anything is computed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    allowed = FigureCanvasAgg(Figure()).get_supported_filetypes()
    ending = output.suffix.removeprefix(".").lower()
    if ending and ending not in allowed:
        raise UsageError(
            f"--output: format {ending!r} is not supported, only {', '.join(sorted(allowed))}"
        )


def _photo(output: Path) -> None:
    from convcore.demo.photo import describe, load_photographs, respond
    from convcore.demo.picture import save_picture

    responses = respond(load_photographs())
    save_picture(responses, output)
    print(describe(responses))


def _digits(output: Path, epochs: int, seed: int) -> None:
    import convcore
    from convcore.demo import digits
    from convcore.demo.digits_picture import save_picture

    convcore.manual_seed(seed)
    data = digits.load_digits(seed)
    net = digits.Reader()
    print(net)
    last = _train_with_bar(net, data, epochs)
    plural = "" if epochs == 1 else "s"
    print(
        f"{epochs} epoch{plural} over {len(data.train_labels)} digits in {last.seconds:.1f} s; of "
        f"the {len(data.test_labels)} held out, {last.accuracy:.1%} are read right"
    )
    found = digits.look(net, data.test_images[0], int(data.test_labels[0]))
    save_picture(found, last.accuracy, output)


def _train_with_bar(net: object, data: object, epochs: int) -> object:
    """Train behind a progress bar on standard error; return the last epoch."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from convcore.demo import digits

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("learning", total=epochs)
        for epoch in digits.train(net, data, epochs):
            text = f"epoch {epoch.number}: loss {epoch.loss:.3f}, right {epoch.accuracy:.1%}"
            bar.update(task, description=text, advance=1)
    return epoch


def _count(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)
