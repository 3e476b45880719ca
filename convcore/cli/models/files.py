"""ONNX files that commands are given: read, with inputs of the sizes that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from convcore._errors import HINT
from convcore._errors.text import printable
from convcore.cli.errors import UsageError, lacking, require_extra


def open_model(file: str) -> tuple[Any, list[Any]]:
    """Return the net of a file, and what the file says of its inputs."""
    require_extra("onnx", "onnx")
    from convcore import onnx

    try:
        net = onnx.load(file)
        proto, _ = net._source.read()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from None
    except onnx.OnnxError as error:
        said = one_line(error).removeprefix(f"{file} ")
        raise UsageError(f"{file}: {said}") from None
    return net, [info for info in proto.graph.input if info.name in net.input_names]


def open_with_zeros(file: str, sizes: tuple[int, ...] | None) -> tuple[Any, tuple[Any, ...]]:
    """Return the net of a file, and zeros for its inputs: of these sizes, or of the graph's own."""
    net, infos = open_model(file)
    if sizes is not None and len(infos) != 1:
        names = ", ".join(map(printable, net.input_names)) or "none"
        raise UsageError(f"sizes are for nets of one input; those of {file}: {names}")
    return net, tuple(_zeros(file, info, sizes) for info in infos)


def one_line(error: Exception) -> str:
    """Return an error's message and hint without line breaks; the system's in its words."""
    text, hint, advice = (lacking(error) or str(error)).partition(HINT)
    said = f"{text.removesuffix('.')}. {hint}{advice}" if hint else text
    return " ".join(said.split())


def lines_of(file: Path) -> list[str]:
    """Return the lines of --labels: names of classes."""
    try:
        return [printable(line) for line in file.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise UsageError(f"--labels {file}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"--labels {file}: {error}") from None


def first_of(names: Sequence[str]) -> str:
    """Return the first two of some names, and how many more there are."""
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{', '.join(map(repr, names[:2]))}{more}"


def axes_of(info: Any) -> list[int | str]:
    """Return an input's sizes; a name, or "?", where one is free."""
    dims = info.type.tensor_type.shape.dim  # some exporters write -1 where a size is free
    return [
        each.dim_value if each.dim_value > 0 else printable(each.dim_param) or "?" for each in dims
    ]


def _zeros(file: str, info: Any, sizes: tuple[int, ...] | None) -> Any:
    """Return zeros for one input of a graph."""
    import numpy as np
    from onnx.helper import tensor_dtype_to_np_dtype

    import convcore

    kind, axes = info.type.tensor_type, axes_of(info)
    shown = f"{file}: input {info.name!r} is [{', '.join(map(str, axes))}]"
    free = not kind.HasField("shape")
    if sizes is None:
        if free or not all(isinstance(axis, int) for axis in axes):
            example = (1, 3, 224, 224) if free else _example(axes)
            raise UsageError(f"{shown}: give its sizes, as --input {','.join(map(str, example))}")
        sizes = tuple(axes)
    elif not free and not fits(axes, sizes):
        raise UsageError(f"{shown}, got --input {','.join(map(str, sizes))}")
    try:
        return convcore.from_numpy(np.zeros(sizes, tensor_dtype_to_np_dtype(kind.elem_type)))
    except (KeyError, TypeError) as error:
        raise UsageError(f"{shown} of a type without tensors: {one_line(error)}") from None


def _example(axes: list[int | str]) -> list[int]:
    """Return sizes that fit: where one is free, 1, or 224 for the sides of images."""
    side = 224 if len(axes) == 4 else 1
    return [
        axis if isinstance(axis, int) else side if place else 1 for place, axis in enumerate(axes)
    ]


def fits(axes: list[int | str], sizes: tuple[int, ...]) -> bool:
    """Return whether sizes are those of the axes that are fixed."""
    return len(axes) == len(sizes) and all(
        not isinstance(axis, int) or axis == size for axis, size in zip(axes, sizes, strict=True)
    )
