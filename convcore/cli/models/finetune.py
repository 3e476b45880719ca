"""``convcore finetune``: train a net from an ONNX file on folders of pictures."""

from __future__ import annotations

import argparse
import glob
import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from convcore.cli.errors import UsageError, count, require_extra, require_place, seed
from convcore.cli.models.files import axes_of, first_of, lines_of, one_line, open_model
from convcore.cli.models.heads import head_of, logits_of, replace_head
from convcore.cli.models.pictures import (
    SUFFIXES,
    add_options,
    read_picture,
    require_picture,
    scale_of,
)

# Options in which a training that is continued need not be as it was.
_MAY_DIFFER = ("argv", "command", "data", "epochs", "labels", "model", "output", "resume", "run")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``finetune`` to the parser."""
    parser = commands.add_parser(
        "finetune",
        help="train a net from an ONNX file on folders of pictures",
        description="Train an image classifier from an ONNX file, or parts of it, on pictures, "
        "with a folder for each class, and write it as an ONNX file. The training is saved after "
        "each epoch.",
    )
    parser.add_argument("model", type=Path, metavar="NET.onnx")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER",
        help="has a folder of pictures for each class",
    )  # fmt: skip
    parser.add_argument(
        "--labels", type=Path, metavar="FILE",
        help="the classes in the order of the net's outputs, a folder's name a line; default: the "
        "folders in alphabetical order",
    )  # fmt: skip
    parser.add_argument(
        "--train", action="append", metavar="GLOB",
        help="nodes or weights to train, as 'classifier*'; may be repeated; default: the last "
        "layer with weights",
    )  # fmt: skip
    parser.add_argument(
        "--new-head", action="store_true",
        help="replace the last layer with weights by one that has an output for each class",
    )  # fmt: skip
    parser.add_argument("--epochs", type=count, default=5, metavar="N", help="default: 5")
    parser.add_argument("--batch", type=count, default=16, metavar="N", help="default: 16")
    parser.add_argument(
        "--lr", type=_rate, default=1e-3, metavar="RATE", help="of Adam; default: 0.001"
    )
    parser.add_argument(
        "--validation", type=_share, default=0.2, metavar="SHARE",
        help="part of each class's pictures that is held out; default: 0.2",
    )  # fmt: skip
    add_options(parser, "of the pictures")
    parser.add_argument("--seed", type=seed, default=0, help="random seed; default: 0")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("tuned.onnx"), metavar="FILE.onnx",
        help="default: tuned.onnx; the training is saved beside it, as tuned.pt",
    )  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="continue the training saved there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train, and write the net."""
    from convcore.bench.progress import follow

    require_extra("onnx", "onnx", "PIL")
    require_place("--output", arguments.output)
    training = _Training(arguments, *_pictures(arguments))
    print(training.description(), flush=True)
    follow(training.epochs())
    print(training.write())
    return 0


def _pictures(arguments: argparse.Namespace) -> tuple[list[str], list[tuple[Path, int]]]:
    """Return the classes, and all pictures with the indices of their classes."""
    data = arguments.data
    try:
        folders = sorted(each for each in data.iterdir() if each.is_dir())
    except OSError as error:
        raise UsageError(f"--data {data}: {error.strerror or error}") from None
    names = [each.name for each in folders]
    if len(names) < 2:
        raise UsageError(f"--data {data} has {len(names)} folders: one for each class, 2 or more")
    classes = names if arguments.labels is None else lines_of(arguments.labels)
    if unknown := [name for name in names if name not in classes]:
        raise UsageError(f"--labels {arguments.labels} lacks {first_of(unknown)} of {data}")
    if arguments.new_head and (empty := [name for name in classes if name not in names]):
        raise UsageError(f"--data {data} has no folder {first_of(empty)}, of --labels")
    items = []
    for folder in folders:
        files = sorted(each for each in folder.iterdir() if each.suffix.lower() in SUFFIXES)
        if not files:
            raise UsageError(f"{folder} has no pictures: files that end in {', '.join(SUFFIXES)}")
        items += [(file, classes.index(folder.name)) for file in files]
    for file, _ in items:
        require_picture(file)
    return classes, items


class _Training:
    """A net and the pictures that it is trained on: a dataset of inputs and classes.

    Parameters
    ----------
    arguments : Namespace
    classes : list of str
    items : list of (Path, int)
        Pictures, and the indices of their classes.

    Raises
    ------
    UsageError
        Net and classes do not match, or the net cannot be exported. Raised before training.
    """

    def __init__(
        self, arguments: argparse.Namespace, classes: list[str], items: list[tuple[Path, int]]
    ) -> None:
        import convcore
        from convcore.serialization import TrainingState

        self.arguments, self.classes, self.items = arguments, classes, items
        self.net, infos = open_model(str(arguments.model))
        self.axes = _axes_of_pictures(infos, arguments.size)
        convcore.manual_seed(arguments.seed)
        head = head_of(self.net)
        if arguments.new_head:
            replace_head(self.net, head, len(classes))
            del head[1:]
        self.scores = logits_of(self.net)
        self._check_scores()
        self.globs = list(arguments.train or ())
        if arguments.new_head or not self.globs:
            self.globs += [f"{glob.escape(name)}.*" for name in head]
        self.trained = self._select()
        if arguments.new_head:
            self._program()
        self.training, self.held_out = self._parts()
        parameters = [each for each in self.net.parameters() if each.requires_grad]
        self.optimizer = convcore.optim.Adam(parameters, lr=arguments.lr)
        self.state = TrainingState(net=self.net, optimizer=self.optimizer)
        self.state.extra = {
            **{name: value for name, value in vars(arguments).items() if name not in _MAY_DIFFER},
            **{"classes": classes, "pictures": len(items)},
        }
        self.file = arguments.output.with_suffix(".pt")
        if arguments.resume:
            self._resume()

    def __getitem__(self, number: int) -> tuple[Any, int]:
        import convcore

        file, label = self.items[number]
        scale = scale_of(self.arguments)
        array, _ = read_picture(file, ["N", *self.axes[1:]], self.arguments.size, *scale)
        return convcore.from_numpy(array[0].copy()), label

    def _check_scores(self) -> None:
        """Raise a `UsageError` unless the net computes a score for each class."""
        import convcore

        x = self[0][0][None]
        try:
            with convcore.no_grad():
                y = self.scores(x)
        except (RuntimeError, TypeError, ValueError) as error:
            shown = f"{self.arguments.model} cannot take {list(x.shape)}"
            raise UsageError(f"{shown}: {one_line(error)}") from None
        if y.ndim != 2 or len(y) != 1 or not y.is_floating_point():
            kind = f"{str(y.dtype).removeprefix('torch.')}{list(y.shape)}"
            raise UsageError(f"the output is not logits, floats of (N, classes), but {kind}")
        if y.shape[1] != len(self.classes):
            raise UsageError(
                f"the net has {y.shape[1]} outputs for {len(self.classes)} classes: --labels names "
                "the classes of all outputs, --new-head replaces the last layer"
            )

    def _select(self) -> list[str]:
        """Put what is trained into training mode, all else into evaluation mode."""
        from convcore import onnx

        try:
            return onnx.train_only(self.net, self.globs)
        except ValueError as error:
            said = one_line(error).removeprefix("train_only(): ")
            raise UsageError(f"--train: {said}") from None

    def _parts(self) -> tuple[list[int], list[int]]:
        """Return the indices of the pictures to train on, and of those that are held out."""
        import convcore

        parts: tuple[list[int], list[int]] = [], []
        for label in sorted({label for _, label in self.items}):
            same = [number for number, (_, each) in enumerate(self.items) if each == label]
            n_held = min(math.ceil(self.arguments.validation * len(same)), len(same) - 1)
            for place, number in enumerate(convcore.randperm(len(same)).tolist()):
                parts[place < n_held].append(same[number])
        return parts

    def _resume(self) -> None:
        """Continue the training that was saved."""
        import convcore

        try:
            saved = convcore.load(self.file)
            for name, value in self.state.extra.items():
                if (before := saved["extra"].get(name)) != value:
                    raise UsageError(
                        f"--resume: {self.file} was saved with {name} {before!r}, not {value!r}"
                    )
            self.state.load_state_dict(saved)
        except FileNotFoundError:
            raise UsageError(f"--resume: there is no {self.file}") from None
        except (LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"--resume: {self.file}: {one_line(error)}") from None

    def description(self) -> str:
        """Describe the trained parameters and the data."""
        from convcore import nn
        from convcore.bench.progress import plural
        from convcore.nn.modules.batchnorm import _BatchNorm

        weights = dict(self.net.named_parameters())
        norms = [each for each in self.net.modules() if isinstance(each, _BatchNorm)]
        n_dropouts = sum(isinstance(each, nn.Dropout) for each in self.net.modules())
        n_trained = sum(weights[name].numel() for name in self.trained)
        lines = [
            f"{plural(len(self.training), 'picture')} of {len(self.classes)} classes, and "
            f"{len(self.held_out)} held out",
            f"trained: {n_trained:,} of {sum(each.numel() for each in weights.values()):,} "
            f"parameters: {first_of(self.trained)}",
            f"frozen: {plural(len(weights) - len(self.trained), 'weight')}, "
            f"{plural(sum(not each.training for each in norms), 'batch norm')}",
        ]
        if not norms:
            lines.append("the file has no batch norms: exporters fold them into convolutions")
        if n_dropouts:
            lines.append(f"active: {plural(n_dropouts, 'dropout')}")
        if self.state.epoch:
            lines.append(f"continued after epoch {self.state.epoch}")
        return "\n".join(lines)

    def epochs(self) -> Iterator[Any]:
        """Train, print a line for each epoch, and yield the progress."""
        from convcore.bench.progress import Step
        from convcore.utils.data import DataLoader, Subset

        wanted, first = self.arguments.epochs, self.state.epoch
        start = perf_counter()
        batches = DataLoader(Subset(self, self.training), self.arguments.batch, shuffle=True)
        while self.state.epoch < wanted:
            self._select()
            losses, n_right, n_seen = 0.0, 0, 0
            for number, (images, labels) in enumerate(batches):
                self.optimizer.zero_grad()
                loss, right = self._computed(images, labels)
                self._check(loss)
                self.optimizer.step()
                losses, n_right = losses + loss * len(labels), n_right + right
                n_seen += len(labels)
                done = (self.state.epoch - first + (number + 1) / len(batches)) / (wanted - first)
                left = (perf_counter() - start) * (1 - done) / done
                yield Step(f"epoch {self.state.epoch + 1}: loss {losses / n_seen:.3f}", done, left)
            line = f"loss {losses / n_seen:.4f}, accuracy {n_right / n_seen:.1%}"
            if self.held_out:
                line += "; held out: loss {:.4f}, accuracy {:.1%}".format(*self._tested())
            self.state.epoch += 1
            self.state.save(self.file)
            print(f"epoch {self.state.epoch}/{wanted}: {line}", flush=True)

    def _computed(self, images: Any, labels: Any) -> tuple[float, int]:
        """Return a batch's loss and number of correct answers; add its gradients, if enabled."""
        import convcore
        from convcore.nn.functional import cross_entropy

        at_once = 1 if self.axes[0] == 1 else len(labels)
        total, n_right = 0.0, 0
        for x, targets in zip(images.split(at_once), labels.split(at_once), strict=True):
            scores = self.scores(x)
            loss = cross_entropy(scores, targets, reduction="sum") / len(labels)
            if convcore.is_grad_enabled():
                loss.backward()
            total += loss.item()
            n_right += int((scores.argmax(1) == targets).sum())
        return total, n_right

    def _check(self, loss: float) -> None:
        """Raise `UsageError` if the loss is not finite or a trained weight has no gradient."""
        if not math.isfinite(loss):
            epoch = self.state.epoch + 1
            raise UsageError(f"the loss is {loss} in epoch {epoch}: choose a smaller --lr")
        weights = dict(self.net.named_parameters())
        if lacking := [name for name in self.trained if weights[name].grad is None]:
            raise UsageError(f"--train: no gradient reaches {first_of(lacking)}")

    def _tested(self) -> tuple[float, float]:
        """Return the mean loss and the accuracy on the pictures held out."""
        import convcore
        from convcore.utils.data import DataLoader, Subset

        self.net.eval()
        losses, n_right = 0.0, 0
        with convcore.no_grad():
            for images, labels in DataLoader(Subset(self, self.held_out), self.arguments.batch):
                loss, right = self._computed(images, labels)
                losses, n_right = losses + loss * len(labels), n_right + right
        return losses / len(self.held_out), n_right / len(self.held_out)

    def _program(self) -> Any:
        """Return the net as a new model, whose free axes are those of the file."""
        from convcore import onnx

        free = {k: name for k, name in enumerate(self.axes) if isinstance(name, str)}
        free = {k: f"axis_{k}" if name == "?" else name for k, name in free.items()}
        shapes = {self.net.input_names[0]: free}
        try:
            return onnx.export(self.net, (self[0][0][None],), dynamic_axes=shapes)
        except onnx.OnnxError as error:
            raise UsageError(f"the net cannot be written: {one_line(error)}") from None

    def write(self) -> str:
        """Write the net, and return how it is run."""
        from convcore import onnx

        output = self.arguments.output
        self.net.eval()
        try:
            if self.arguments.new_head:
                self._program().save(output)
            else:
                try:
                    onnx.save(self.net, output)
                except onnx.OnnxError as error:  # such as weights that were quantized
                    program = self._program()
                    print(f"written as a new model: {one_line(error)}")
                    program.save(output)
            labels = self.arguments.labels or output.with_suffix(".txt")
            if self.arguments.labels is None:
                labels.write_text("\n".join([*self.classes, ""]), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--output {output}: {error.strerror or error}") from None
        words = [str(output), "--input", str(self.items[0][0]), "--labels", str(labels)]
        if self.arguments.imagenet:
            words.append("--imagenet")
        for name in ("mean", "std", "size"):
            if numbers := getattr(self.arguments, name):
                words += [f"--{name}", ",".join(map(str, numbers))]
        if self.arguments.largest:
            words += ["--largest", str(self.arguments.largest)]
        return f"Saved to {output}. Run it: convcore run-model {shlex.join(words)}"


def _axes_of_pictures(infos: Sequence[Any], size: tuple[int, int] | None) -> list[int | str]:
    """Return the axes of the one input that a net of pictures has."""
    from onnx import TensorProto

    if len(infos) != 1 or infos[0].type.tensor_type.elem_type != TensorProto.FLOAT:
        names = ", ".join(info.name for info in infos)
        raise UsageError(f"the net has the inputs {names or 'none'}: one is needed, of float32")
    axes = axes_of(infos[0])
    if axes and isinstance(axes[0], int) and axes[0] > 1:
        raise UsageError(f"the net takes {axes[0]} pictures at once: export it with a free axis")
    if size is None and any(isinstance(each, str) for each in axes[1:]):
        raise UsageError("the net leaves height or width free: give them, as --size 224,224")
    return axes


def _rate(text: str) -> float:
    """Parse a learning rate."""
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return rate


def _share(text: str) -> float:
    """Parse a part of the whole."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"must be 0 or more and below 1, got {text!r}")
    return share
