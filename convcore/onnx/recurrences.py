"""Recurrent layers and cells as ONNX nodes.

They are translated as a whole: the functions inside, which take all steps, are not seen.  A
translation takes the recorder, the layer, what it returned and its arguments, and returns the names
of the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore import Tensor, nn
from convcore.onnx.errors import OnnxError
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

# In which order ONNX has the blocks of gates that PyTorch has one below the other.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _layer(r: Recorder, layer: Any, output: Any, input: Any, hx: Any = None) -> list[str]:
    """Return the names of the outputs of all steps, and of the last states."""
    _check(input, 3)
    if layer.proj_size:
        raise OnnxError("it has a proj_size")
    kind, directions = layer.mode.partition("_")[0], 2 if layer.bidirectional else 1
    x = r.name(input)
    if layer.batch_first:
        (x,) = r.node("Transpose", [x], perm=[1, 0, 2])
    states = [r.name(each) for each in _states(hx)]
    ends: list[list[str]] = []
    for number in range(layer.num_layers):
        names = [f"_l{number}{end}" for end in ("", "_reverse")[:directions]]
        start = [_rows(r, each, number * directions, directions) for each in states]
        (y, *end) = _node(r, kind, layer, names, x, start, layer.mode.endswith("RELU"))
        # From (steps, directions, batch, hidden) to (steps, batch, directions * hidden).
        (y,) = r.node("Transpose", [y], perm=[0, 2, 1, 3])
        (x,) = r.node("Reshape", [y, r.constant([0, 0, -1], np.int64)])
        ends.append(end)
    if layer.batch_first:
        (x,) = r.node("Transpose", [x], perm=[1, 0, 2])
    return [x, *(_joined(r, parts) for parts in zip(*ends, strict=True))]


def _cell(r: Recorder, cell: Any, output: Any, input: Any, hx: Any = None) -> list[str]:
    """Return the names of the states after one step: those of a layer of one step."""
    _check(input, 2)
    kind = next(name for name, own in _CELLS.items() if isinstance(cell, own))
    first = r.constant([0], np.int64)
    x, *start = (r.node("Unsqueeze", [r.name(each), first])[0] for each in (input, *_states(hx)))
    is_relu = getattr(cell, "nonlinearity", "") == "relu"
    _, *end = _node(r, kind, cell, [""], x, start, is_relu)
    return [r.node("Squeeze", [each, first])[0] for each in end]


def _check(input: Any, rank: int) -> None:
    if not isinstance(input, Tensor):
        raise OnnxError(f"its input is {type(input).__name__}, no tensor")
    if input.ndim != rank:
        raise OnnxError("an input without a batch")


def _states(hx: Any) -> Sequence[Tensor]:
    return () if hx is None else (hx,) if isinstance(hx, Tensor) else hx


def _rows(r: Recorder, name: str, start: int, count: int) -> str:
    places = [r.constant([each], np.int64) for each in (start, start + count, 0)]
    return r.node("Slice", [name, *places])[0]


def _joined(r: Recorder, names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else r.node("Concat", list(names), axis=0)[0]


def _node(
    r: Recorder,
    kind: str,
    owner: nn.Module,
    ends: Sequence[str],
    x: str,
    start: Sequence[str],
    is_relu: bool,
) -> list[str]:
    """Add the node of one layer, whose weights' names have one of the ends for each direction."""
    inputs = [
        x,
        *(_stacked(r, kind, owner, [f"weight_{w}{e}" for e in ends]) for w in ("ih", "hh")),
    ]
    if getattr(owner, f"bias_ih{ends[0]}", None) is not None:
        halves = [[f"bias_ih{e}", f"bias_hh{e}"] for e in ends]
        arrays = [np.concatenate([_ordered(kind, owner, n) for n in names]) for names in halves]
        inputs.append(r.constant(np.stack(arrays)))
    if start:
        inputs += [""] * (5 - len(inputs)) + list(start)  # sequence_lens between
    options: dict[str, Any] = {"hidden_size": owner.hidden_size}
    if len(ends) == 2:
        options["direction"] = "bidirectional"
    if kind == "GRU":
        options["linear_before_reset"] = 1  # as in PyTorch
    if is_relu:
        options["activations"] = ["Relu"] * len(ends)
    return r.node(kind, inputs, count=3 if kind == "LSTM" else 2, **options)


def _stacked(r: Recorder, kind: str, owner: nn.Module, names: Sequence[str]) -> str:
    return r.constant(np.stack([_ordered(kind, owner, name) for name in names]))


def _ordered(kind: str, owner: nn.Module, name: str) -> np.ndarray:
    """Return a parameter with its gates in ONNX's order."""
    blocks = np.split(array_of(getattr(owner, name)), len(_GATES[kind]))
    return np.concatenate([blocks[place] for place in _GATES[kind]])


_CELLS: dict[str, Any] = {"LSTM": nn.LSTMCell, "GRU": nn.GRUCell, "RNN": nn.RNNCell}
# By their forward, for subclasses that have the same.
LAYERS: dict[Callable[..., Any], Callable[..., list[str]]] = {
    **{each.forward: _layer for each in (nn.LSTM, nn.GRU, nn.RNN)},
    **{each.forward: _cell for each in _CELLS.values()},
}
