"""Models in ONNX's format: load them as nets, write nets (extra ``[onnx]``).

`load` makes a net of a model: weights are parameters, nodes are submodules, so that gradients
reach the weights and hooks fire by node name.  `export` writes a net as a model.  `Backend` lets
the standard's own tests run on convcore.

- ``reading.py``: the file, and data that lies in files beside it;
- ``building.py``: from a graph to a net; ``layers.py``: nodes that a layer of nn can do;
- ``graph.py``, ``nodes.py``: the net and its modules; ``naming.py``: their names;
- ``operators/``: a function for each operator, a family a file;
- ``exporting.py``: a net as a model; ``recording.py``: one run of it as nodes;
- ``constancy.py``: another run, which finds what only seemed constant;
- ``other_sizes.py``: runs at other sizes, which find those that have to be followed;
- ``sizes.py``: such sizes, as ints that know what they were computed from, and as nodes;
- ``inputs.py``: which arguments of forward are inputs; ``nesting.py``: where they lie in it;
- ``axes.py``: which axes are free; ``options.py``: PyTorch's other arguments;
- ``program.py``: what `export` returns;
- ``translation.py``, ``translations/``: a function's call as nodes;
- ``recurrences.py``: a recurrent layer's call as nodes;
- ``refusals.py``: why there are none; ``sight.py``: functions under names of a net's own;
- ``values.py``: tensors, arrays and dtypes from one world to the other.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

try:
    import onnx
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "convcore.onnx needs the package 'onnx': pip install 'convcore[onnx]'", name="onnx"
    ) from error

from convcore import _misnamed
from convcore.onnx.building import build_model
from convcore.onnx.errors import OnnxError
from convcore.onnx.exporting import export
from convcore.onnx.graph import Graph
from convcore.onnx.program import ONNXProgram
from convcore.onnx.reading import read_model
from convcore.onnx.recording import is_in_onnx_export

if TYPE_CHECKING:
    from convcore.onnx.backend import Backend as Backend

__all__ = ["Graph", "ONNXProgram", "OnnxError", "export", "is_in_onnx_export", "load"]


def load(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Graph:
    """Return the net of an ONNX model, in evaluation mode.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        Data in other files is read only from below the model's folder.

    Returns
    -------
    Graph
        A Module.  Its forward takes the graph's inputs in order or by name.  Constant arrays of
        floats that convolutions, norms, products and sums take are parameters.

    Raises
    ------
    OnnxError
        The model is broken, or has operators that are not supported: the message names each with
        its version and node, before anything runs.
    OSError
        There is no such file.

    Examples
    --------
    >>> import onnx.parser
    >>> proto = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 17]>
    ...     example (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }''')
    >>> net = load(proto)
    >>> net
    Graph(
      (Relu_0): ReLU()
    )
    >>> import convcore
    >>> net(convcore.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """
    return build_model(read_model(model)).eval()


_misnamed.hint_keywords(__name__)


def __getattr__(name: str) -> Any:
    if name == "Backend":
        from convcore.onnx.backend import Backend

        return Backend
    raise _misnamed.missing_name(__name__, name)
