"""bench --nets: what is measured, and that the libraries compute the same."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import convcore
from convcore.bench.nets import (
    NETS,
    RUN,
    RUN_ONE,
    TASKS,
    TRAIN,
    NetCell,
    formats_of,
    make_net,
    net_named,
    save_weights,
    task_call,
)
from convcore.bench.peers import OURS
from convcore.bench.promises import net_promises


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "convcore", "bench", "--nets", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_nets_are_found_by_name_and_by_function():
    assert net_named("resnet-18") is net_named("resnet18") is NETS[0]
    with pytest.raises(ValueError, match="'alexnet' is none of the nets ResNet-18, "):
        net_named("alexnet")
    assert [net.input_shape(RUN_ONE)[0] for net in NETS] == [1] * len(NETS)
    assert net_named("lenet").input_shape(TRAIN) == (64, 1, 28, 28)


def test_who_does_what_in_which_format():
    both = ("contiguous", "channels_last")
    assert [formats_of(OURS, task) for task in TASKS] == [both, ("",), ("",)]
    assert [formats_of("torch", task) for task in TASKS] == [both] * 3
    assert [formats_of("openvino", task) for task in TASKS] == [(), ("",), ("",)]
    compiled = ("contiguous compiled", "channels_last compiled")
    assert formats_of("torch", TRAIN, True) == both + compiled
    assert formats_of(OURS, TRAIN, True) == both
    assert formats_of("openvino", RUN, True) == ("",)


def test_ratios_are_of_each_sides_better_format():
    cell = NetCell(NETS[0], RUN, 1)
    cell.seconds = {
        (OURS, ""): [1.0, 1.0],
        ("torch", "contiguous"): [4.0, 4.0],
        ("torch", "channels_last"): [2.0, 3.0],
    }
    assert cell.best("torch") == ("torch", "channels_last")
    assert cell.ratio("torch").median == 2.5
    assert cell.ratio("openvino") is None
    cell.results = {(OURS, ""): np.array([1.0, 2.0]), ("torch", ""): np.array([1.0, 2.1])}
    assert cell.error() == pytest.approx(0.05)
    assert cell.wrong


def test_promises_are_of_what_was_measured():
    def cell(net, task, **seconds):
        one = NetCell(net_named(net), task, 2)
        one.seconds = {
            (OURS if peer == "ours" else peer, ""): [t] * 3 for peer, t in seconds.items()
        }
        one.peak_bytes = {(OURS, ""): 2 << 20, ("torch", ""): 1 << 20}
        return one

    cells = [
        cell("resnet18", TRAIN, ours=1.0, torch=1.5),
        cell("lenet", TRAIN, ours=1.0, torch=0.9),
        cell("resnet18", RUN, ours=1.0, onnxruntime=1.5),
        cell("lenet", RUN_ONE, ours=1e-4, onnxruntime=0.6e-4),
    ]
    found = {promise.text: promise for promise in net_promises(cells, ("torch", "onnxruntime"))}
    kept = {text: promise.kept for text, promise in found.items()}
    assert kept == {
        "PyTorch, training step: geometric mean of 2": False,
        "PyTorch, training step: nets below, of 2": False,
        "peak memory of a training step, ResNet-18, MiB (at most PyTorch's)": False,
        "peak memory of a training step, LeNet, MiB (at most PyTorch's)": False,
        "ONNX Runtime, inference: geometric mean of 1": True,
        "ONNX Runtime, inference: nets below, of 2": True,
    }
    assert found["PyTorch, training step: nets below, of 2"].worst == (
        "LeNet, training step: 0.90 (upper quartile 0.90)"
    )
    assert net_promises(cells, ()) == []


def test_a_training_step_lowers_the_loss_and_inference_is_the_models(tmp_path):
    lenet, weights = net_named("lenet"), tmp_path / "weights.npz"
    save_weights(make_net(convcore, lenet), weights)
    step = task_call(convcore, lenet, TRAIN, "channels_last", weights)
    losses = [step().item() for _ in range(30)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    run = task_call(convcore, lenet, RUN, "", weights)
    assert run().shape == (64, 10)
    assert np.allclose(run().exp().sum(1).numpy(), 1, atol=1e-5)


@pytest.mark.subprocess
@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_pytorch_computes_the_same(tmp_path):
    file, page = tmp_path / "nets.json", tmp_path / "nets.md"
    saved = ("--json", str(file), "--page", str(page))
    done = bench("lenet", "--peers", "torch", "--rounds", "1", *saved)
    assert done.returncode == 0, done.stdout + done.stderr
    text = page.read_text()
    assert "| LeNet | training step | " in text
    assert "PyTorch, training step: geometric mean of 1" in text
    assert text.count("| PyTorch | NHWC |") == 3
    train, run, one = json.loads(file.read_text())
    assert [train["task"], run["task"], one["task"]] == list(TASKS)
    assert set(train["variants"]) == {
        f"{library}/{format}"
        for library in (OURS, "torch")
        for format in ("contiguous", "channels_last")
    }
    assert 0 <= max(run["difference"], one["difference"]) < 1e-4
    assert all(one["peak_bytes"] > 0 for one in train["variants"].values())


@pytest.mark.subprocess
def test_wrong_names_are_refused():
    done = bench("alexnet")
    assert done.returncode == 2
    assert "'alexnet' is none of the nets" in done.stderr
    done = bench("lenet", "--suite", "tiny")
    assert done.returncode == 2
    assert "--nets measures whole nets" in done.stderr
    done = bench("lenet", "--csv", "nets.csv")
    assert done.returncode == 2
    assert "--csv is for layers; --nets has --json and --page" in done.stderr
    done = bench("lenet", "--page", "nowhere/nets.md")
    assert done.returncode == 2
    assert "--page: there is no directory nowhere" in done.stderr
