"""Models in ONNX's format: load them as nets, write nets (extra ``[onnx]``).

`load` makes a net of a model: weights are parameters, nodes are submodules, so that gradients
reach the weights and hooks fire by node name.  `train_only` chooses what is trained, `cut` returns
a part of the net.  `save` writes its weights back into the model, `export` writes a net as a new
model.  `Backend` lets the standard's own tests run on convcore.

- ``loading.py``: `load`; ``reading.py``: the file; ``external.py``: data in files beside it;
- ``building.py``: from a graph to a net; ``scope.py``: the names that its nodes see;
- ``layers.py``: nodes that a layer of nn can do;
- ``graph.py``, ``nodes.py``: the net and its modules; ``naming.py``: their names;
- ``saving.py``: `save`; ``origins.py``: where the model stores a net's tensors;
- ``tuning.py``: `train_only` and `cut`;
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
- ``ongoing.py``: whether a net is being exported; ``absent.py``: what there is without the package;
- ``refusals.py``: why there are none; ``sight.py``: functions under names of a net's own;
- ``values.py``: tensors, arrays and dtypes from one world to the other.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from convcore._errors import calls as _calls
from convcore._errors import names as _names
from convcore.onnx.errors import OnnxError
from convcore.onnx.ongoing import is_in_onnx_export

# Programs name torch.onnx, and ask whether an export is going on, where the package is missing too.
if TYPE_CHECKING or importlib.util.find_spec("onnx"):
    from convcore.onnx.exporting import export
    from convcore.onnx.graph import Graph
    from convcore.onnx.loading import load
    from convcore.onnx.program import ONNXProgram
    from convcore.onnx.saving import save
    from convcore.onnx.tuning import cut, train_only
else:
    from convcore.onnx.absent import (
        Backend,
        Graph,
        ONNXProgram,
        cut,
        export,
        load,
        save,
        train_only,
    )

if TYPE_CHECKING:
    from convcore.onnx.backend import Backend as Backend

__all__ = [
    "Graph",
    "ONNXProgram",
    "OnnxError",
    "cut",
    "export",
    "is_in_onnx_export",
    "load",
    "save",
    "train_only",
]


_calls.hint_keywords(__name__)


def __getattr__(name: str) -> Any:
    if name == "Backend":
        from convcore.onnx.backend import Backend

        return Backend
    raise _names.missing_name(__name__, name)
