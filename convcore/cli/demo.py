"""``convcore demo digits | maps | training``: demonstrations that draw a picture."""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from convcore.cli.errors import UsageError, count, require_extra, require_place, seed
from convcore.cli.models.files import one_line

# Seconds of an epoch on two cores, for the estimate at the start; progress then goes by the clock.
_DIGITS_EPOCH, _RESNET_DIGITS_EPOCH, _PATCHES_EPOCH = 0.25, 0.55, 2.5
_DIGITS_EPOCHS = 30
# Enough for nineteen patches in twenty: the maps are of a net that has learned.
_MAPS_EPOCHS = 2
# Of a batch, with --distributed: as many processes at most have work.
_SHARDS = 8
# Part of the training from which on it says what is left: the first batches are slower.
_LEAST_DONE = 0.05
_SCALES = ("own", "one")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``demo`` to the parser, and its subjects to that."""
    parser = commands.add_parser(
        "demo",
        help="train a net, or show a net's feature maps; draws a picture",
        description="Demonstrations, each of which draws one picture. Without a network: all data "
        "are scikit-learn's and matplotlib's samples.",
    )
    subjects = parser.add_subparsers(dest="subject", required=True, metavar="SUBJECT")
    for add in (_add_digits, _add_maps, _add_training):
        add(subjects)


def _add_subject(
    subjects: argparse._SubParsersAction, name: str, text: str, description: str
) -> argparse.ArgumentParser:
    """Add a subject, with the one option that all have."""
    parser = subjects.add_parser(name, help=text, description=description)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=Path(f"{name}.png"),
        help=f"the picture; its ending is the format; default: {name}.png",
    )
    return parser


def _add_digits(subjects: argparse._SubParsersAction) -> None:
    parser = _add_subject(
        subjects,
        "digits",
        "train a small net to read digits, and look inside it",
        "Train a small net on scikit-learn's handwritten digits, and show one digit's feature maps "
        "and input gradient, captured by hooks.",
    )
    parser.add_argument(
        "--epochs", type=count, metavar="N", default=_DIGITS_EPOCHS, help="default: %(default)s"
    )
    _add_seed(parser)
    _add_scale(parser, "one")
    parser.set_defaults(run=_digits)


def _add_maps(subjects: argparse._SubParsersAction) -> None:
    parser = _add_subject(
        subjects,
        "maps",
        "show what each convolution of a net is given, for a photograph",
        "Show the input of every convolution of a net for a photograph, captured by hooks. The net "
        f"is a ResNet-8, trained for {_MAPS_EPOCHS} epochs to tell patches of three photographs "
        "apart; or, with --weights, a ResNet-18 with the weights of a checkpoint.",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="a checkpoint of a ResNet-18 for ImageNet, in place of a net trained here",
    )
    _add_seed(parser)
    _add_scale(parser, "own")
    parser.set_defaults(run=_maps)


def _add_training(subjects: argparse._SubParsersAction) -> None:
    parser = _add_subject(
        subjects,
        "training",
        "train two nets, and draw their learning curves",
        "Train a ResNet-8 on the digits, and another on patches of sample photographs of "
        "scikit-learn and matplotlib; draw the losses and accuracies, in training and held out.",
    )
    parser.add_argument(
        "--epochs", type=count, metavar="N", help="default: 15 of the digits, 8 of the patches"
    )
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="cut each batch into 8 shards, for the processes that mpiexec started: "
        "mpiexec -n 4 convcore demo training --distributed; the net is the same for any number",
    )
    _add_seed(parser)
    parser.set_defaults(run=_training)


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=seed, default=0, help="random seed; default: 0")


def _add_scale(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--scale",
        choices=_SCALES,
        default=default,
        help="colours of the maps: each map its own scale, or one for a convolution's maps, which "
        "shows how strong they are beside one another; default: %(default)s",
    )


def _prepare(arguments: argparse.Namespace, *modules: str) -> None:
    """Raise for a missing package or a picture that cannot be written, before anything runs."""
    require_extra("demo", "sklearn", "matplotlib", *modules)
    output: Path = arguments.output
    require_place("--output", output)
    from matplotlib.figure import Figure

    allowed = Figure().canvas.get_supported_filetypes()
    ending = output.suffix.removeprefix(".").lower()
    if ending and ending not in allowed:
        raise UsageError(
            f"--output: format {ending!r} is not supported, only {', '.join(sorted(allowed))}"
        )


def _maps(arguments: argparse.Namespace) -> int:
    _prepare(arguments, "rich")
    import convcore
    from convcore.demo import maps
    from convcore.demo.maps_picture import save_picture
    from convcore.demo.training import load_photographs

    convcore.manual_seed(arguments.seed)
    if arguments.weights is None:
        net, name = _learned()
    else:
        try:
            net, name = maps.load_net(arguments.weights), f"ResNet-18 of {arguments.weights.name}"
        except (OSError, RuntimeError, TypeError, ValueError, pickle.UnpicklingError) as error:
            raise UsageError(f"--weights: {one_line(error)}") from error
        _announce("maps", "one photograph", 5.0)
    photograph = load_photographs()["china"].transpose(2, 0, 1)
    found = maps.see(net, photograph, imagenet=arguments.weights is not None)
    save_picture(found, name, arguments.scale == "one", arguments.output)
    _, height, width = found.photograph.shape
    n_weights = sum(parameter.numel() for parameter in net.parameters())
    print(
        f"{name}, {n_weights:,} parameters, looked at {width} x {height} pixels in "
        f"{found.seconds:.2f} s; hooks saw the inputs of {len(found.inputs)} convolutions"
    )
    return _saved(arguments)


def _learned() -> tuple[Any, str]:
    """Train a net for the maps; return it and what a picture calls it."""
    from convcore.demo import training

    _announce("maps", "a ResNet-8 is trained first", 3.0 + _MAPS_EPOCHS * _PATCHES_EPOCH)
    task = training.patches_task()
    net = training.make_net(task)
    last = _train(net, task, _MAPS_EPOCHS)[-1]
    print(
        f"{_MAPS_EPOCHS} epochs over {len(task.train)} patches in {last.seconds:.1f} s; of the "
        f"{len(task.test)} held out, {last.accuracy:.1%} are right"
    )
    return net, f"ResNet-8, trained to tell {len(task.classes)} photographs apart"


def _digits(arguments: argparse.Namespace) -> int:
    _prepare(arguments, "rich")
    import convcore
    from convcore.demo import digits, training
    from convcore.demo.digits_picture import save_picture

    epochs = arguments.epochs
    plural = "" if epochs == 1 else "s"
    convcore.manual_seed(arguments.seed)
    _announce("digits", f"{epochs} epoch{plural}", 2.0 + epochs * _DIGITS_EPOCH)
    task, net = training.digits_task(arguments.seed), digits.Reader()
    print(net)
    last = _train(net, task, epochs)[-1]
    print(
        f"{epochs} epoch{plural} over {len(task.train)} digits in {last.seconds:.1f} s; of "
        f"the {len(task.test)} held out, {last.accuracy:.1%} are read right"
    )
    image, label = task.test[0]
    look = digits.look(net, image, int(label))
    save_picture(look, last.accuracy, arguments.scale == "one", arguments.output)
    return _saved(arguments)


def _training(arguments: argparse.Namespace) -> int:
    _prepare(arguments, "rich")
    if not arguments.distributed:
        return _train_both(arguments, None)
    from convcore import distributed

    try:
        distributed.init_process_group(timeout=300)
    except ImportError as error:
        raise UsageError(str(error)) from error
    try:
        if distributed.get_rank() == 0:
            return _train_both(arguments, _SHARDS)
        # The first process alone reports.
        with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
            return _train_both(arguments, _SHARDS, draws=False)
    finally:
        distributed.destroy_process_group()


def _train_both(arguments: argparse.Namespace, shards: int | None, draws: bool = True) -> int:
    import hashlib

    import convcore
    from convcore.demo import training
    from convcore.demo.training_picture import SHOWN, Run, save_picture

    convcore.manual_seed(arguments.seed)
    tasks = (training.digits_task(arguments.seed), training.patches_task())
    first, second = (arguments.epochs or task.epochs for task in tasks)
    seconds = 5.0 + first * _RESNET_DIGITS_EPOCH + second * _PATCHES_EPOCH
    _announce("training", f"two nets, {first} and {second} epochs", seconds)
    runs = []
    for task in tasks:
        net = training.make_net(task)
        steps = _train(net, task, arguments.epochs, shards)
        last = steps[-1]
        print(
            f"{task.name}: {last.number} batches from {len(task.train)} images in "
            f"{last.seconds:.1f} s; of {len(task.test)} held out, {last.accuracy:.1%} are right",
            flush=True,
        )
        if shards is not None:
            weights = b"".join(p.detach().numpy().tobytes() for p in net.parameters())
            print(f"{task.name}: SHA-256 of the weights {hashlib.sha256(weights).hexdigest()}")
        chosen = convcore.randperm(len(task.test))[:SHOWN]
        images, labels = (tensor[chosen] for tensor in task.test.tensors)
        answers = training.answers(net, images)
        runs.append(Run(task, steps, images.numpy(), labels.tolist(), answers))
    if not draws:
        return 0
    save_picture(runs, arguments.output)
    return _saved(arguments)


def _announce(subject: str, what: str, seconds: float) -> None:
    """Say on standard error what is about to run, and for how long."""
    from convcore.bench.progress import about

    print(f"{subject}: {what}; {about(seconds)} on two cores", file=sys.stderr, flush=True)


def _saved(arguments: argparse.Namespace) -> int:
    print(f"Saved to {arguments.output}")
    return 0


def _train(net: Any, task: Any, epochs: int | None, shards: int | None = None) -> list:
    """Train, and show progress on standard error; return all steps."""
    from convcore.bench.progress import follow

    steps: list = []
    follow(_progress(net, task, epochs, shards, steps))
    return steps


def _progress(
    net: Any, task: Any, epochs: int | None, shards: int | None, steps: list
) -> Iterator[Any]:
    """Yield the progress of training, and fill ``steps``."""
    from convcore.bench.progress import Step
    from convcore.demo import training

    n_batches = (epochs or task.epochs) * (len(task.train) // training.BATCH)
    tested = ""
    for step in training.train(net, task, epochs, shards):
        steps.append(step)
        if step.accuracy is not None:
            tested = f", right {step.accuracy:.1%}"
        text = f"{task.name}, epoch {step.epoch}: loss {step.loss:.3f}{tested}"
        done = step.number / n_batches
        left = step.seconds / done * (1 - done) if done >= _LEAST_DONE else None
        yield Step(text, done, left)
