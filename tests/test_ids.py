"""No object is found by its id() unless something keeps it alive: a freed one's id is used again.

Where `id` is called, its function is listed here with what keeps the objects.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import convcore

PACKAGE = Path(convcore.__file__).parent
MEMO = "copy.deepcopy's memo, which keeps what it has copied"
CALLERS = "the caller of the function, until it returns"
RECORDED = "a list of the recorder"
# By file: what keeps the objects alive, and the functions.
KEPT = {
    "_forks.py": {
        "nothing: a weak reference takes its id away when the lock dies": "_add",
        CALLERS: "free_locks",
    },
    "_storage.py": {MEMO: "TypedStorage.__deepcopy__ UntypedStorage.__deepcopy__"},
    "_tensor.py": {
        "a dict or set, which keeps its keys": "Tensor.__hash__",
        MEMO: "Tensor.__deepcopy__",
    },
    "autograd/function.py": {CALLERS: "Function._record"},
    "autograd/node.py": {"nothing: the number is shown": "Node.__repr__"},
    "autograd/traversal.py": {
        "the buffers of the pass; an id leaves the set with its tensor": (
            "Traversal._arrived Traversal._deposit"
        ),
    },
    "engine/runtime/storages.py": {"a list in the memo": "copied"},
    "func/_derivatives.py": {CALLERS: "_has_other_leaf"},
    "functions/casts.py": {"the values of the same dict": "_kept"},
    "inference/optimized.py": {
        "the net, whose layers they are": "OptimizedModule._fuse _fused _replace",
        CALLERS: "_copy_of_net",
    },
    "inspection/live/training.py": {CALLERS: "_gradients _net_of _net_of.share"},
    "inspection/profiling/_tree.py": {
        "the tree of rows": "_Builder.child",
        "the events that the tree is made of": "_Builder.backward _Builder.operation",
    },
    "inspection/reporting/_calls.py": {RECORDED: "_Recorder._begin _Recorder._end"},
    "inspection/watching/values.py": {
        "the values of the same dict": "Values._hold Values.before_write"
    },
    "nn/modules/_hooks.py": {"the values of the same dict": "fused_listeners"},
    "nn/parallel/distributed.py": {
        "the graph, whose outputs the caller has": (
            "DistributedDataParallel._leave_out_unused _leaves_of"
        ),
    },
    "nn/parallel/reducer.py": {
        "the reducer's list of parameters": "Reducer.__init__ Reducer._is_shared"
    },
    "nn/parameter.py": {MEMO: "Parameter.__deepcopy__ UninitializedParameter.__deepcopy__"},
    "nn/utils/parametrize.py": {MEMO: "_deep_copied"},
    "nn/utils/stateless.py": {CALLERS: "_tied"},
    "onnx/other_sizes.py": {CALLERS: "_Runs.run"},
    "onnx/recording.py": {
        RECORDED: (
            "Recorder.__init__ Recorder.__torch_function__ Recorder._check_constant "
            "Recorder._check_taken Recorder._enter Recorder._recognize Recorder.is_computed "
            "Recorder.name"
        ),
        "the values of the same dict": "Recorder._log Recorder.keeps Recorder.sizes",
    },
    "serialization/numpy_scalars.py": {"their modules": "the module"},
    "serialization/rebuild.py": {"their modules": "the module"},
    "serialization/pickler.py": {
        "the pickler's memo": (
            "IterativePickler._object IterativePickler._tuple IterativePickler.steps"
        ),
    },
    "serialization/save.py": {"the pickler's memo": "_Writer.steps"},
    "serialization/storages.py": {"the values of the same dict": "SavedStorages.merged"},
    "serialization/unpickler.py": {
        "their modules": "DataUnpickler._call",
        "the values of the same dict": (
            "DataUnpickler._container DataUnpickler._is_trusted DataUnpickler._keep "
            "DataUnpickler.load_build DataUnpickler.trust"
        ),
    },
    "utils/data/_utils/position.py": {"the values of the same dict": "_sources"},
}


def uses(path: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (file, function) of each use of the name ``id``."""

    def inside(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            if isinstance(child, ast.Name) and child.id == "id" and isinstance(child.ctx, ast.Load):
                yield path, name or "the module"
            yield from inside(child, f"{name}.{child.name}".lstrip(".") if named else name)

    yield from inside(tree, "")


def found() -> set[tuple[str, str]]:
    files = sorted(PACKAGE.rglob("*.py"))
    return {
        each
        for file in files
        for each in uses(file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text("utf-8")))
    }


def listed() -> set[tuple[str, str]]:
    lines = ((path, text) for path, names in KEPT.items() for text in names.values())
    return {
        (path, "the module" if text == "the module" else name)
        for path, text in lines
        for name in text.split()
    }


def test_each_use_of_id_is_listed_with_what_keeps_the_object():
    assert not found() - listed(), "use the object itself as the key, or list what keeps it alive"


def test_each_place_that_is_listed_is_there():
    assert not listed() - found()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(x): return {id(x): 1}", "f"),
        ("class A:\n    def f(self, xs): return set(map(id, xs))", "A.f"),
        ("table = {id(each): each for each in (1, 2)}", "the module"),
        ("def f():\n    def g(x): return id(x)\n    return g", "f.g"),
    ],
)
def test_a_use_is_found(text, expected):
    assert list(uses("a.py", ast.parse(text))) == [("a.py", expected)]


def test_attributes_and_arguments_of_that_name_are_no_uses():
    assert list(uses("a.py", ast.parse("x.id, f(id=3), {'id': 1}"))) == []
