"""No object is found by its id() unless something keeps it alive: a freed one's id is used again.

A file that calls `id` is listed here with what keeps the objects.
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
VALUES = "the values of the same dict"
ORIGINS = "the dict of origins, whose values have the protos"
MODULES = "the modules that define them"
# By file: what keeps the objects alive.
KEPT = {
    "_forks.py": "a weak reference takes the id away when the lock dies; or the caller",
    "_tensor/storage.py": MEMO,
    "_tensor/tensor.py": f"a dict or set, which keeps its keys (the hash); {MEMO}",
    "autograd/function.py": CALLERS,
    "autograd/node.py": "nothing: the number is shown",
    "autograd/traversal.py": "the buffers of the pass; an id leaves the set with its tensor",
    "engine/runtime/storages.py": "a list in the memo",
    "func/_derivatives.py": CALLERS,
    "functions/elementwise/casts.py": VALUES,
    "inference/hidden_runs.py": VALUES,
    "inference/optimized.py": "the net, whose layers they are",
    "inspection/live/training.py": CALLERS,
    "inspection/profiling/_tree.py": "the tree of rows, and the events that it is made of",
    "inspection/reporting/_calls.py": "a list of the recorder",
    "inspection/watching/values.py": VALUES,
    "nn/modules/_hooks.py": VALUES,
    "nn/parallel/distributed.py": "the graph, whose outputs the caller has",
    "nn/parallel/reducer.py": "the reducer's list of parameters",
    "nn/parameter.py": MEMO,
    "nn/utils/parametrize.py": MEMO,
    "nn/utils/stateless.py": CALLERS,
    "onnx/origins.py": ORIGINS,
    "onnx/other_sizes.py": CALLERS,
    "onnx/recording.py": f"a list of the recorder; {VALUES}",
    "onnx/saving.py": VALUES,
    "onnx/scope.py": ORIGINS,
    "serialization/numpy_scalars.py": MODULES,
    "serialization/pickler.py": "the pickler's memo",
    "serialization/rebuild.py": MODULES,
    "serialization/save.py": "the pickler's memo",
    "serialization/storages.py": VALUES,
    "serialization/unpickler.py": f"{VALUES}; {MODULES}",
    "utils/data/_utils/position.py": VALUES,
}


def uses(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that read the name ``id``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "id" and isinstance(node.ctx, ast.Load):
            yield node.lineno


def found() -> dict[str, list[int]]:
    """Return the lines of each file that has some."""
    files = {file.relative_to(PACKAGE).as_posix(): file for file in sorted(PACKAGE.rglob("*.py"))}
    lines = {path: [*uses(ast.parse(file.read_text("utf-8")))] for path, file in files.items()}
    return {path: each for path, each in lines.items() if each}


def test_each_file_that_uses_id_is_listed_with_what_keeps_the_object():
    new = {path: lines for path, lines in found().items() if path not in KEPT}
    assert not new, "use the object itself as the key, or list what keeps it alive"


def test_each_file_that_is_listed_uses_it():
    assert not KEPT.keys() - found().keys()


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return {id(x): 1}",
        "class A:\n    def f(self, xs): return set(map(id, xs))",
        "table = {id(each): each for each in (1, 2)}",
    ],
)
def test_a_use_is_found(text):
    assert len(list(uses(ast.parse(text)))) == 1


def test_attributes_and_arguments_of_that_name_are_no_uses():
    text = "x.id, f(id=3), {'id': 1}\nclass A:\n    id: int"
    assert list(uses(ast.parse(text))) == []
