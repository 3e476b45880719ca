"""``convcore demo photo | digits | maps | training``: demonstrations that draw a picture."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

from convcore.cli.errors import UsageError, count, require_extra


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``demo`` to the parser."""
    parser = commands.add_parser(
        "demo",
        help="filter photographs, show a net's feature maps, or train a net; draws a picture",
        description="photo: apply Gabor and Sobel filters to scikit-learn's sample photographs, "
        "and compute the gradient of the responses' energy with respect to the pixels. digits: "
        "train a small net on scikit-learn's handwritten digits, in well under a minute, and show "
        "one digit's feature maps and input gradient, captured by hooks. maps: show the input of "
        "every convolution of a ResNet-18 for a photograph, captured by hooks. training: train a "
        "ResNet-8 on the digits, and another on patches of sample photographs of scikit-learn and "
        "matplotlib, and draw the learning curves. Each draws one picture.",
    )
    parser.add_argument("subject", choices=("photo", "digits", "maps", "training"))
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the picture; default: photo.png ..."
    )
    parser.add_argument("--epochs", type=count, metavar="N", help="epochs of digits and training")
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed of digits, maps and training"
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="a checkpoint for maps; default: random weights",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compute, draw and save; print what was done and the picture's file."""
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
    """Raise for a picture format that cannot be written, before anything is computed."""
    from matplotlib.figure import Figure

    allowed = Figure().canvas.get_supported_filetypes()
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
    from convcore.demo import digits, training
    from convcore.demo.digits_picture import save_picture

    convcore.manual_seed(seed)
    task, net = training.digits_task(seed), digits.Reader()
    print(net)
    last = _train(net, task, epochs)[-1]
    plural = "" if epochs == 1 else "s"
    print(
        f"{epochs} epoch{plural} over {len(task.train)} digits in {last.seconds:.1f} s; of "
        f"the {len(task.test)} held out, {last.accuracy:.1%} are read right"
    )
    image, label = task.test[0]
    save_picture(digits.look(net, image, int(label)), last.accuracy, output)


def _training(output: Path, epochs: int | None, seed: int) -> None:
    import convcore
    from convcore.demo import training
    from convcore.demo.training_picture import SHOWN, Run, save_picture

    convcore.manual_seed(seed)
    runs = []
    for task in (training.digits_task(seed), training.patches_task()):
        net = training.make_net(task)
        steps = _train(net, task, epochs)
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


def _train(net: Any, task: Any, epochs: int | None) -> list:
    """Train behind a progress bar on standard error, which then vanishes; return all steps."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from convcore.demo import training

    columns = TextColumn("{task.description}"), BarColumn(bar_width=30), TimeRemainingColumn()
    n_batches = (epochs or task.epochs) * (len(task.train) // training.BATCH)
    steps, tested = [], ""
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(task.name, total=n_batches)
        for step in training.train(net, task, epochs):
            steps.append(step)
            if step.accuracy is not None:
                tested = f", right {step.accuracy:.1%}"
            text = f"{task.name}, epoch {step.epoch}: loss {step.loss:.3f}{tested}"
            progress.update(bar, description=text, advance=1)
    return steps
