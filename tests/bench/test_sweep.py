"""benchmarks/sweep.py: a plan's constant is tried at other values, and left as it was."""

import argparse
import sys
from functools import partial

import pytest
from scripts import load_script

from convcore.bench.layers import parse_layer
from convcore.bench.problem import draw_operands
from convcore.engine import get_num_threads
from convcore.engine.conv.selection import current, select
from convcore.engine.conv.winograd import plan as winograd


@pytest.fixture
def sweep(monkeypatch):
    return load_script(monkeypatch, "sweep")


def prepare(sweep, spec, kept=False):
    layer = parse_layer(spec)
    return partial(sweep._prepared, layer, "forward", draw_operands(layer, 0), kept)


def test_sweep_times_the_values_that_make_another_plan(sweep):
    present = winograd.BLOCK_BYTES
    make = prepare(sweep, "8,32,32,32,32,3,1,1")
    values = (present, present // 16, present + 1)
    found = sweep._compare(sweep._constant("winograd.BLOCK_BYTES"), values, make, 1)
    assert list(found) == [present // 16]
    assert found[present // 16] > 0
    assert present == winograd.BLOCK_BYTES


def test_sweep_prepares_weights_that_are_kept(sweep):
    present = winograd.PREPACKED_FILTER_COST
    make = prepare(sweep, "1,64,14,14,64,3,1,1", kept=True)
    plan, call = make()
    assert plan.prepacked > 0
    assert call().shape == (1, 64, 14, 14)
    constant = sweep._constant("winograd.PREPACKED_FILTER_COST")
    found = sweep._compare(constant, (present, 10**6), make, 1)
    assert list(found) == [10**6]


@pytest.mark.parametrize("constant", ["winograd", "winograd.nothing", "no_file.O_BLOCK"])
def test_sweep_refuses_what_is_no_constant(sweep, constant):
    with pytest.raises(argparse.ArgumentTypeError, match=r"no file|no number"):
        sweep._constant(constant)


def test_sweep_sets_a_constant_wherever_it_was_imported(sweep):
    constant = sweep._constant("blocks.MOST_WEIGHTS")
    present = constant.get()
    constant.put(present + 1)
    assert present + 1 == winograd.MOST_WEIGHTS
    constant.put(present)
    assert present == winograd.MOST_WEIGHTS


@pytest.mark.parametrize(
    ("constant", "calls"),
    [
        ("norm.norm._LEAST_ITEM", "batch_norm of 8x256x14x14"),
        ("elementwise.elementwise._LEAST_OF_ONE.relu", "65536"),
    ],
)
def test_sweep_times_the_calls_of_a_layer(sweep, constant, calls):
    constant = sweep._constant(f"engine.layers.{constant}")
    present = constant.get()
    arguments = argparse.Namespace(constant=constant, calls=calls, all=False)
    for _, make in sweep._cells(arguments):
        for busy in (False, True):
            found = sweep._compare(constant, (2 * present, present), make, 1, busy)
            assert list(found) == [2 * present]
    assert constant.get() == present


def test_every_layer_that_can_be_timed_computes(sweep):
    for module in sweep.LAYERS:
        title, make = next(iter(sweep.calls_of(module)))
        assert make()() is not None, title


@pytest.mark.parametrize("precision", ["none", "bf16"])
def test_sweep_times_in_the_precision_that_is_asked_for(sweep, precision, monkeypatch):
    seen = []

    def compare(*args):
        seen.append((current().precision, current().matmul))
        return {48: 1.0}

    monkeypatch.setattr(sweep, "worker_environment", lambda environment, threads: dict(environment))
    monkeypatch.setattr(sweep, "_compare", compare)
    command = f"sweep --constant bfloat16.FEWEST_CHANNELS --values 48 --threads {get_num_threads()}"
    command += f" --layer 1,32,8,8,32,1,1,0,1,1 --passes forward --precision {precision}"
    monkeypatch.setattr(sys, "argv", command.split())
    try:
        assert sweep.main() == 0
    finally:
        select(precision="none", matmul="none")
    assert set(seen) == {(precision, precision)}
