"""ONNX models as nets: `load`."""

from __future__ import annotations

import os

import onnx

from convcore.onnx.building import build_model
from convcore.onnx.graph import Graph
from convcore.onnx.reading import Source


def load(model: str | os.PathLike[str] | bytes | onnx.ModelProto) -> Graph:
    """Return the net of an ONNX model, in evaluation mode.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        Data in other files is read only from below the model's folder; where the model is a link,
        also from below the folder of the file that it leads to.  `save` reads the file again;
        bytes and a ModelProto are kept for it in memory.

    Returns
    -------
    Graph
        A Module.  Its forward takes the graph's inputs in order or by name.  Constant arrays of
        floats that convolutions, norms, products and sums take are parameters.  Inputs that have an
        initializer are optional (from the format's IR version 4 on; before, they are constants).

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
    source = Source(model)
    net = build_model(*source.read()).eval()
    net._source = source
    return net
