"""Observation of operations while they are recorded."""

import threading

import pytest

import convcore
from convcore.autograd.observation import observed, observers
from convcore.nn import functional as F


def names(run):
    found = []
    with observed(lambda node, inputs, outputs: found.append(node.name())):
        run()
    return found


def test_functions_methods_operators_and_writes_are_seen_in_order():
    x = convcore.randn(1, 2, 4, 4, requires_grad=True)
    w = convcore.randn(2, 2, 3, 3)

    def run():
        y = F.relu(F.conv2d(x, w) + 1, inplace=True)
        y.view(-1)[0:2].sum()

    assert names(run) == [
        "ConvolutionBackward0", "AddBackward0", "ReluBackward0", "ViewBackward0", "SliceBackward0",
        "SumBackward0",
    ]  # fmt: skip


def test_inputs_and_outputs_are_the_tensors_themselves():
    x, seen = convcore.ones(2, requires_grad=True), []
    with observed(lambda *event: seen.append(event)):
        y = x * 3
    ((node, inputs, output),) = seen
    assert node is y.grad_fn and inputs[0] is x and output is y


def test_nothing_is_seen_without_recording_or_after_the_block():
    x = convcore.ones(2, requires_grad=True)

    def run():
        with convcore.no_grad():
            x * 2

    assert names(run) == []
    x * 2
    assert not observers


def test_nested_observers_both_see():
    x, inner, outer = convcore.ones(2, requires_grad=True), [], []
    with observed(lambda node, *_: outer.append(node.name())):
        with observed(lambda node, *_: inner.append(node.name())):
            x * 2
        x + 2
    assert inner == ["MulBackward0"] and outer == ["MulBackward0", "AddBackward0"]


def test_another_thread_is_not_observed():
    x = convcore.ones(2, requires_grad=True)

    def run():
        thread = threading.Thread(target=lambda: x * 2)
        thread.start()
        thread.join()

    assert names(run) == []


def test_an_error_ends_the_observation():
    with pytest.raises(ZeroDivisionError), observed(lambda *_: None):
        raise ZeroDivisionError
    assert not observers


def test_observations_end_in_any_order():
    seen = {"a": 0, "b": 0, "c": 0}

    def count(name):
        def callback(node, inputs, outputs):
            seen[name] += 1

        return observed(callback)

    x = convcore.ones(2, requires_grad=True)
    contexts = {name: count(name) for name in seen}
    for context in contexts.values():
        context.__enter__()
    for left in ("b", "a", "c"):
        x * 2
        contexts[left].__exit__(None, None, None)
    x * 2
    assert seen == {"a": 2, "b": 1, "c": 3} and not observers
