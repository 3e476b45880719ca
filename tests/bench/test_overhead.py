"""The suite of small operations: what it runs, what it promises, what it prints."""

import importlib
import json
from importlib.util import find_spec

import numpy as np
import pytest

from convcore import cli
from convcore.bench.overhead import OPERATIONS, Cost, Operation, operation


def cost(ours, theirs=None, limit=None):
    """Return a cost with one library's result, or two."""
    results = {"convcore": np.asarray(ours)}
    if theirs is not None:
        results["torch"] = np.asarray(theirs)
    seconds = {name: [3e-6, 2e-6] for name in results}
    return Cost(Operation("test", limit, lambda m: None), seconds, results)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.name)
def test_operation_computes_what_pytorch_does(one, torch):
    assert operation(one.name) is one
    ours, theirs = (
        one.build(importlib.import_module(name))().detach().numpy()
        for name in ("convcore", "torch")
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.name)
def test_operation_can_be_repeated(one):
    call = one.build(importlib.import_module("convcore"))
    first, second = call().detach().numpy().copy(), call().detach().numpy()
    assert np.array_equal(first, second)


def test_small_operations_are_promised_their_microseconds():
    limits = [one.limit for one in OPERATIONS if one.limit is not None]
    assert {3.0, 15.0, 80.0} == set(limits)


def test_promise_is_judged_by_the_least_sample():
    assert cost(1.0, limit=2.0).kept and cost(1.0).kept
    assert not cost(1.0, limit=1.9).kept


def test_results_that_differ_are_wrong():
    assert not cost([1.0, 2.0], [1.0, 2.0]).wrong
    assert cost([1.0, 2.0], [1.0, 2.1]).wrong
    assert cost([1.0, 2.0], [1.0]).wrong
    assert cost([np.nan], [1.0]).wrong


@pytest.mark.subprocess
def test_overhead_suite_end_to_end(tmp_path, capsys):
    pytest.importorskip("rich")
    file = tmp_path / "costs.json"
    arguments = ["bench", "--suite", "overhead", "--rounds", "1", "--json", str(file)]
    assert cli.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "Microseconds a call" in printed and "kernel" in printed
    for one in OPERATIONS:
        assert one.name in printed
    assert ("PyTorch" in printed) == bool(find_spec("torch"))
    saved = json.loads(file.read_text())
    assert [entry["operation"] for entry in saved["measured"]] == [one.name for one in OPERATIONS]
    assert all(len(entry["seconds"]["convcore"]) == 1 for entry in saved["measured"])
