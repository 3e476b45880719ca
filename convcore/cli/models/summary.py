"""``convcore summary``: the modules of a net, ours or an ONNX file, and their costs."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

from convcore._errors import without_hint
from convcore.cli.errors import UsageError, whole_number
from convcore.cli.models.files import one_line, open_with_zeros
from convcore.cli.parser import nearest
from convcore.cli.terminal import columns, fitted

DTYPES = ("float32", "float64")

# Default input shapes; all other nets take photographs.
_SHAPES = {
    "autoencoder": (1, 3, 64, 64),
    "lenet": (1, 1, 28, 28),
    "resnet8": (1, 3, 32, 32),
    "unet": (1, 3, 256, 256),
}
_PHOTOGRAPH = (1, 3, 224, 224)


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``summary`` to the parser."""
    parser = commands.add_parser(
        "summary",
        help="list a net's modules: shapes, parameters, multiply-adds, memory",
        description="Build a net, call it once and print each module's output shape, parameters "
        "and multiply-adds, and the totals including memory.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="resnet18, vgg16_bn, unet ... or a file: net.onnx"
    )
    parser.add_argument(
        "--input",
        "--input-size",
        type=sizes,
        metavar="N,C,H,W",
        help="input shape; default: one image of the size that the net is designed for, or the "
        "sizes in an ONNX file",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument(
        "--depth",
        type=whole_number,
        metavar="N",
        help="depth of the table: 1 shows the net's direct children",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the table."""
    import convcore
    from convcore import inspection
    from convcore.inspection import table

    dtype = getattr(convcore, arguments.dtype)
    given: tuple[Any, ...]
    designed = ""
    if arguments.model.endswith(".onnx"):
        if arguments.dtype != "float32":
            raise UsageError("--dtype is for nets of convcore.models; an ONNX file has its own")
        model, given = open_with_zeros(arguments.model, arguments.input)
        shown = [list(each.shape) for each in given]
    else:
        model = maker(arguments.model)().to(dtype)
        given = arguments.input or default_sizes(arguments.model)
        shown = list(given)
        designed = f"; {designed_for(arguments.model)}"
    try:
        found = inspection.summary(model, given, dtype=dtype, depth=arguments.depth)
    except (RuntimeError, ValueError) as error:
        why = without_hint(error) if designed else one_line(error)  # hints are for programs
        raise UsageError(f"{arguments.model} cannot take {shown}: {why}{designed}") from None
    print(fitted(table.text(found, columns())))
    return 0


def maker(name: str) -> Any:
    """Return the function of convcore.models that builds a net."""
    from convcore import models

    names = sorted(
        found
        for found, value in vars(models).items()
        if inspect.isfunction(value) and not found.startswith("_")
    )
    if name not in names:
        if Path(name).suffix in (".pt", ".pth", ".npz", ".safetensors"):
            raise UsageError(
                f"{name} is a file of weights, and says nothing of the net that has them: name the "
                f"net, as in `convcore inspect resnet18 --weights {name}`"
            )
        if Path(name).suffix == ".py":
            raise UsageError(
                f"{name} is a program: have it print convcore.summary(net, (1, 3, 224, 224)) of "
                "its net, or write convcore.inspection.report(net, x, 'net.html'); here stand nets "
                "of convcore.models, as resnet18, and ONNX files"
            )
        raise UsageError(
            f"there is no model {name!r}, only {', '.join(names)}{nearest(name, names)}"
        )
    return getattr(models, name)


def default_sizes(name: str) -> tuple[int, ...]:
    """Return the shape of one image of the size that a net of convcore.models is designed for."""
    return _SHAPES.get(name, _PHOTOGRAPH)


def designed_for(name: str) -> str:
    """Say what --input is, by the example of what a net of convcore.models is designed for."""
    return f"--input is N,C,H,W, as {','.join(map(str, default_sizes(name)))}"


def sizes(text: str) -> tuple[int, ...]:
    """Parse comma-separated sizes."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"must be sizes above 0 as 1,3,224,224, got {text!r}")
    return tuple(map(int, parts))
