"""Mutated ONNX files are loaded, or refused with one error: a short run of `onnx_files.py`."""

import random

import pytest
from scripts import fuzz_script

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import helper, numpy_helper  # noqa: E402

from convcore.onnx import OnnxError, load  # noqa: E402


@pytest.fixture(scope="module")
def fuzzer():
    return fuzz_script("onnx_files")


def test_mutated_files_are_refused_with_one_error(fuzzer, seed):
    assert fuzzer.run(400, seed) == {}


def test_mutations_change_files(fuzzer, seed):
    draw, data = random.Random(seed), bytes(range(200))
    assert sum(fuzzer.mutated(data, draw) != data for _ in range(50)) > 40


def model(nodes, functions=(), weights=()):
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 1, [1])],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(array, name) for name, array in weights],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions)


def test_functions_that_call_themselves_are_refused():
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    body = helper.make_function("own", "F", ["x"], ["y"], [node], [helper.make_opsetid("own", 1)])
    with pytest.raises(OnnxError, match="call one another"):
        load(model([node], [body]))


def test_a_small_file_does_not_become_large(rng):
    """A product of a column and a row of constants waits until the net is run."""
    weights = [
        ("a", rng.random((40_000, 1)).astype("float32")),
        ("b", rng.random((1, 40_000)).astype("float32")),
    ]
    net = load(model([helper.make_node("Mul", ["a", "b"], ["y"])], weights=weights))
    assert [name for name, _ in net.named_children()] == ["Mul_0"]
