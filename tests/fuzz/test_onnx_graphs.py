"""Random ONNX models of nested graphs run as elsewhere: a short run of `onnx_graphs.py`."""

import importlib.util

import numpy as np
import pytest
from scripts import fuzz_script

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")


@pytest.fixture(scope="module")
def fuzzer():
    return fuzz_script("onnx_graphs")


def test_random_graphs_give_the_results_of_others(fuzzer, seed):
    faults, compared = fuzzer.run(60, seed)
    assert faults == {}
    # Without ONNX Runtime the reference alone is left, which refuses some graphs.
    assert compared["written back"] > 40
    assert sum(compared.values()) > (160 if importlib.util.find_spec("onnxruntime") else 100)


def test_models_are_nested_and_share_names(fuzzer):
    models = [fuzzer.Model(seed) for seed in range(40)]
    texts = [onnx.printer.to_text(model.proto) for model in models]
    for word in ("If (", "Loop (", "Scan (", "own.Relu", "own.F", "@slope"):
        assert any(word in text for text in texts)
    assert (
        {model.is_strict for model in models} == {model.hides for model in models} == {True, False}
    )


def test_renaming_leaves_no_name_shared(fuzzer):
    for seed in range(10):
        proto = fuzzer.Renaming(fuzzer.Model(seed).proto).proto
        assert len(outputs := names(proto.graph)) == len(set(outputs))


def names(graph):
    """Return the names of all results in a graph and the graphs in it."""
    found = []
    for node in graph.node:
        found += node.output
        for attribute in node.attribute:
            found += names(attribute.g)
    return found


def test_a_wrong_result_is_found(fuzzer, monkeypatch, capsys):
    monkeypatch.setattr(
        fuzzer,
        "by_convcore",
        lambda model: [np.full(2, 99, np.float32)] * len(model.proto.graph.output),
    )
    faults, _ = fuzzer.run(3, 1)
    assert len(faults) == 3
    assert "output 0 is [99.0, 99.0]" in capsys.readouterr().out
