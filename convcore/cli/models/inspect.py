"""``convcore inspect``: a report on a net as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from convcore._errors import without_hint
from convcore.cli.errors import UsageError, require_place, seed
from convcore.cli.models.files import axes_of, one_line, open_model, open_with_zeros
from convcore.cli.models.pictures import (
    SUFFIXES,
    height_and_width,
    imagenet_units,
    read_picture,
    resize_hint,
)
from convcore.cli.models.summary import default_sizes, designed_for, maker, sizes
from convcore.cli.models.weights import load_weights


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``inspect`` to the parser."""
    parser = commands.add_parser(
        "inspect",
        help="write a report on a net as one HTML page: graph, layers, values, costs, saliency",
        description="Run a net forward and backward and write one HTML page, which loads nothing "
        "and runs no script: the net as a graph and a table; each layer's shapes, costs, "
        "algorithms and reasons, statistics, feature maps and kernels; where the first NaN came "
        "from; and what in the image its answer depends on.",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="resnet18, vgg16_bn, unet ... or a file: net.onnx"
    )
    parser.add_argument(
        "-i",
        "--input",
        metavar="FILE",
        help="a photograph, which is resized to the net's input; x.npy, a batch of any kind; "
        "or sizes as 1,3,224,224, for noise; default: noise of the size that the net is made for",
    )
    parser.add_argument(
        "--size", type=height_and_width, metavar="H,W",
        help="of a photograph, where an ONNX file leaves height and width free; its own by default",
    )  # fmt: skip
    parser.add_argument(
        "--imagenet",
        action="store_true",
        help="give a photograph in the units of ImageNet's checkpoints, not from 0 to 1",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="a checkpoint of the net's weights; default: random ones",
    )
    parser.add_argument(
        "--time",
        action="store_true",
        help="measure times and draw a flame graph; without, the same input makes the same bytes",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), help="default: %(default)s"
    )
    parser.add_argument("--seed", type=seed, default=0, help="random seed; default: 0")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the report."""
    import convcore
    from convcore import inspection
    from convcore.inspection.reporting.writing import check_suffix

    _require_photograph(arguments)
    require_place("--output", arguments.output)
    try:
        check_suffix(arguments.output)
    except ValueError as error:
        raise UsageError(f"--output: {error}") from None
    convcore.manual_seed(arguments.seed)
    model, expected = _model(arguments)
    given = _input(arguments, expected)
    shown = list(given[0].shape) if given else []
    title = Path(arguments.model).name
    if arguments.input and not _is_sizes(arguments.input):
        title += f" on {Path(arguments.input).name}"
    if arguments.weights is None and not arguments.model.endswith(".onnx"):
        title += ", random weights"
    try:
        written = inspection.report(
            model, given, arguments.output, title=title, times=arguments.time
        )
    except OSError as error:
        raise UsageError(f"--output: {one_line(error)}") from None
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        axes = [axis for one in expected for axis in _axes(one)]
        hint = resize_hint(Path(arguments.input or ""), axes, arguments.size)
        other = _dtype_hint(arguments.input, given, model)
        if not arguments.model.endswith(".onnx") and _is_sizes(arguments.input or ""):
            other = other or designed_for(arguments.model)
        why = f"{without_hint(error)}; {other}" if other else one_line(error)
        raise UsageError(f"{arguments.model} cannot take {shown}{hint}: {why}") from None
    print(f"Saved to {written}, {written.stat().st_size / 1e3:.0f} kB")
    return 0


def _require_photograph(arguments: argparse.Namespace) -> None:
    """Raise a `UsageError` for options of a photograph where none is given."""
    given = arguments.input
    if given is not None and Path(given).suffix.lower() in SUFFIXES:
        return
    for option, value in (("--size", arguments.size), ("--imagenet", arguments.imagenet)):
        if value:
            raise UsageError(
                f"{option} is of a photograph, given by --input; sizes are --input 1,3,224,224"
            )


def _model(arguments: argparse.Namespace) -> tuple[Any, tuple[Any, ...]]:
    """Return the net, and arguments of the shapes that it takes; an ONNX file's axes for a file."""
    import convcore

    if arguments.model.endswith(".onnx"):
        if arguments.weights is not None:
            raise UsageError("--weights is for nets of convcore.models; an ONNX file has its own")
        given = arguments.input
        if given is None or _is_sizes(given):
            return open_with_zeros(arguments.model, None if given is None else _sizes(given))
        net, infos = open_model(arguments.model)
        return net, tuple(map(axes_of, infos))
    model = maker(arguments.model)()
    if arguments.weights is not None:
        load_weights(model, arguments.model, arguments.weights)
    given = arguments.input
    wanted = _sizes(given) if given and _is_sizes(given) else default_sizes(arguments.model)
    return model, (convcore.zeros(wanted),)


def _input(arguments: argparse.Namespace, expected: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what the net is called with: a file's content, or noise of the expected shapes."""
    import numpy as np

    import convcore

    given = arguments.input
    if given is None or _is_sizes(given):
        return tuple(
            convcore.rand(one.shape) if one.is_floating_point() else one for one in expected
        )
    if Path(given).suffix.lower() == ".npy":
        return (_array(given),)
    if Path(given).suffix.lower() not in SUFFIXES:
        raise UsageError(f"--input: {given!r} is no .npy file, photograph or sizes as 1,3,224,224")
    if len(expected) != 1:
        raise UsageError(f"--input: {arguments.model} takes {len(expected)} inputs")
    mean, std = imagenet_units() if arguments.imagenet else ([0.0], [1.0])
    pixels, _ = read_picture(
        Path(given), _axes(expected[0]), arguments.size, mean, std, 1.0, "view"
    )
    return (convcore.from_numpy(np.ascontiguousarray(pixels)),)


def _dtype_hint(file: str | None, given: tuple[Any, ...], model: Any) -> str:
    """Say how a file gets the net's dtype; '' where it has it."""
    wanted = {one.dtype for one in model.parameters() if one.is_floating_point()}
    if not given or len(wanted) != 1 or given[0].dtype in wanted:
        return ""
    named = str(wanted.pop()).removeprefix("torch.")
    return f"numpy.save({file!r}, x.astype({named!r})) writes what the net takes"


def _axes(expected: Any) -> list[int | str]:
    """Return the sizes of an argument, of which a file's axes may leave some free."""
    return list(getattr(expected, "shape", expected))


def _is_sizes(given: str) -> bool:
    return not given.strip("0123456789,")


def _sizes(given: str) -> tuple[int, ...]:
    try:
        return sizes(given)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--input: {error}") from None


def _array(file: str) -> Any:
    """Return the array of an npy file as a tensor."""
    import numpy as np

    import convcore

    try:
        return convcore.from_numpy(np.ascontiguousarray(np.load(file, allow_pickle=False)))
    except OSError as error:
        raise UsageError(f"--input: {one_line(error)}") from None
    except (EOFError, TypeError, ValueError) as error:
        raise UsageError(f"--input: {file}: {one_line(error)}") from None
