"""ONNX files among the benchmark's nets: inference, beside what else reads such files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench.peers import OURS, Peer

# A path, and perhaps the sizes of the input.
_TEXT = re.compile(r"(?P<path>.+\.onnx)(?::(?P<sizes>\d+(?:x\d+)*))?", re.IGNORECASE)
READERS = ("onnxruntime", "openvino")
# Beside our net as `optimize_for_inference` makes it: as it was loaded.
_PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class FileNet:
    """A net in a file, and the shape of its one input, of float32.

    ``key`` is what it was asked for by: a path, or a path and sizes.
    """

    key: str
    file: Path
    shape: tuple[int, ...]
    multiply_adds: float = 2e9  # a guess, for the guess at the time

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.file.stem

    def input_shape(self, task: str) -> tuple[int, ...]:
        """Return the shape of the input."""
        return self.shape

    def formats(self, peer: str, task: str, compiled: bool = False) -> tuple[str, ...]:
        """Return an empty name for who can do a task: each chooses its format; ours plain, too."""
        from convcore.bench.nets import RUN

        if task != RUN or peer not in (OURS, *READERS):
            return ()
        return ("", _PLAIN) if peer == OURS else ("",)

    def call(self, peer: Peer, format: str = "") -> Callable[[], Any]:
        """Return a run of the net that gives the first output.

        It is made as fast as the library makes it, or plain, as the format says.  The input's
        elements are from 0 to 1, the same at every call.
        """
        x = np.random.default_rng(1).random(self.shape, dtype=np.float32)
        if peer.library is None:
            return peer.net_call(self.file, x)
        library = peer.library
        inputs = library.from_numpy(x)
        net = library.onnx.load(self.file).requires_grad_(False)
        if format != _PLAIN:
            net = library.optimize_for_inference(net, inputs)

        def run() -> Any:
            result = net(inputs)
            return result[0] if isinstance(result, tuple) else result

        return run


def is_file(text: str) -> bool:
    """Return whether a net's name is that of an ONNX file."""
    return _TEXT.fullmatch(text) is not None


def net_in(text: str) -> FileNet:
    """Return the net that a path names, or a path and sizes: "net.onnx:1x3x224x224".

    Raises
    ------
    ValueError
        It cannot be read, has inputs of another kind, or leaves sizes open that are not given.
    """
    found = _TEXT.fullmatch(text)
    assert found is not None
    file = Path(found["path"])
    sizes = None if found["sizes"] is None else tuple(map(int, found["sizes"].split("x")))
    axes = _axes(file)
    if sizes is None:
        # One of what is free where it may be a batch.
        axes = [1, *axes[1:]] if axes and not isinstance(axes[0], int) else axes
        if not all(isinstance(n, int) for n in axes):
            shown = "x".join(map(str, axes))
            raise ValueError(
                f"{file} leaves sizes open ({shown}): give them, as {file}:1x3x224x224"
            )
        sizes = tuple(axes)
    elif len(sizes) != len(axes) or any(
        isinstance(n, int) and n != size for n, size in zip(axes, sizes, strict=True)
    ):
        raise ValueError(f"{file} takes {'x'.join(map(str, axes))}, not {found['sizes']}")
    return FileNet(text, file.absolute(), sizes)


def _axes(file: Path) -> list[Any]:
    """Return the sizes of a file's one input, a name where one is free."""
    try:
        import onnx
    except ImportError:
        raise ValueError(f"{file}: reading it takes pip install 'convcore[onnx]'") from None
    try:
        graph = onnx.load(str(file), load_external_data=False).graph
    except OSError as error:
        raise ValueError(f"{file}: {error.strerror or error}") from None
    except Exception as error:  # of protobuf
        raise ValueError(f"{file} cannot be read: {error}") from None
    constants = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in constants]
    kinds = [each.type.tensor_type for each in inputs]
    if len(kinds) != 1 or kinds[0].elem_type != onnx.TensorProto.FLOAT:
        raise ValueError(f"{file} has {len(kinds)} inputs; a net of one, of float32, can be timed")
    return [
        each.dim_value if each.dim_value > 0 else each.dim_param or "?"
        for each in kinds[0].shape.dim
    ]
