"""``convcore demo photo | digits | maps | training``: something to look at while one waits."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

from convcore.cli.errors import UsageError, require_extra


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``demo`` to the parser."""
    parser = commands.add_parser(
        "demo",
        help="filter photographs, see a net's maps, or learn to read digits; draw a picture",
        description="photo: run Gabor and Sobel filters over the photographs that scikit-learn "
        "carries and take the gradient of the responses' energy back to the pixels. digits: train "
        "a small net on the handwritten digits that scikit-learn carries, in well under a minute, "
        "and let hooks show one digit's feature maps and the gradient at its pixels. maps: let "
        "hooks show what every convolution of a ResNet-18 is given of a photograph. training: "
        "train a ResNet-8 on the digits, and another on patches of photographs that scikit-learn "
        "and matplotlib carry, and draw the curves. Each draws one picture.",
    )
    parser.add_argument("subject", choices=("photo", "digits", "maps", "training"))
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="default: photo.png, digits.png ..."
    )
    parser.add_argument("--epochs", type=_count, metavar="N", help="of digits and training")
    parser.add_argument("--seed", type=int, default=0, help="of digits, maps and training")
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="of maps: a checkpoint, in place of random ones",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute, draw, save; say what was done and where it is."""
    if arguments.subject in ("photo", "maps"):
        require_extra("demo", "sklearn", "matplotlib")
    else:
        require_extra("demo", "sklearn", "matplotlib", "rich")
    output: Path = arguments.output or Path(f"{arguments.subject}.png")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"--output: there is no directory {output.parent}")
    _check_format(output)
    if arguments.subject == "photo":
        _photo(output)
    elif arguments.subject == "digits":
        _digits(output, arguments.epochs or 30, arguments.seed)
    elif arguments.subject == "maps":
        _maps(output, arguments.weights, arguments.seed)
    else:
        _training(output, arguments.epochs, arguments.seed)
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


def _maps(output: Path, weights: Path | None, seed: int) -> None:
    import convcore
    from convcore.demo import maps
    from convcore.demo.maps_picture import save_picture
    from convcore.demo.photo import load_photographs

    convcore.manual_seed(seed)
    try:
        net = maps.make_net(weights)
    except (OSError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise UsageError(f"--weights: {error}") from error
    found = maps.see(net, load_photographs().pixels[0])
    save_picture(found, output)
    _, height, width = found.photograph.shape
    n_weights = sum(parameter.numel() for parameter in net.parameters())
    print(
        f"ResNet-18, {n_weights:,} parameters, looked at {width} x {height} pixels in "
        f"{found.seconds:.2f} s; hooks saw the inputs of {len(found.inputs)} convolutions"
    )


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
    from convcore.demo import digits

    with _progress() as bar:
        task = bar.add_task("learning", total=epochs)
        for epoch in digits.train(net, data, epochs):
            text = f"epoch {epoch.number}: loss {epoch.loss:.3f}, right {epoch.accuracy:.1%}"
            bar.update(task, description=text, advance=1)
    return epoch


def _training(output: Path, epochs: int | None, seed: int) -> None:
    import convcore
    from convcore.demo import training
    from convcore.demo.training_picture import SHOWN, Run, save_picture

    convcore.manual_seed(seed)
    runs = []
    for task in (training.digits_task(seed), training.patches_task()):
        net = training.make_net(task)
        steps = _steps_with_bar(net, task, epochs)
        last = steps[-1]
        print(
            f"{task.name}: {last.number} batches of {len(task.train)} images in "
            f"{last.seconds:.1f} s; of {len(task.test)} held out, {last.accuracy:.1%} are right"
        )
        chosen = convcore.randperm(len(task.test))[:SHOWN]
        images, labels = (tensor[chosen] for tensor in task.test.tensors)
        answers = training.answers(net, images)
        runs.append(Run(task, steps, images.numpy(), labels.tolist(), answers))
    save_picture(runs, output)


def _steps_with_bar(net: object, task: object, epochs: int | None) -> list:
    """Train behind a progress bar on standard error; return all steps."""
    from convcore.demo import training

    steps, tested = [], ""
    n_batches = (epochs or task.epochs) * (len(task.train) // training.BATCH)
    with _progress() as bar:
        shown = bar.add_task(task.name, total=n_batches)
        for step in training.train(net, task, epochs):
            steps.append(step)
            if step.accuracy is not None:
                tested = f", right {step.accuracy:.1%}"
            text = f"{task.name}, epoch {step.epoch}: loss {step.loss:.3f}{tested}"
            bar.update(shown, description=text, advance=1)
    return steps


def _progress() -> object:
    """Return a progress bar on standard error, which leaves nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _count(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)
