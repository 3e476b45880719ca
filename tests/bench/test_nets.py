"""bench --nets: what is measured, and that the libraries compute the same."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
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
    Effort,
    NetCell,
    formats_of,
    make_net,
    net_call,
    net_named,
    save_weights,
    task_call,
)
from convcore.bench.peers import OURS, load_peer
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
    assert formats_of("torch_bfloat16", TRAIN, True) == both


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
    # bfloat16 is off by more, and is wrong beyond a tenth
    cell.results = {(OURS, ""): np.array([1.0, 2.0]), ("torch_bfloat16", ""): np.array([1.0, 2.1])}
    assert cell.error() == 0 and cell.error(bfloat16=True) == pytest.approx(0.05)
    assert not cell.wrong
    cell.results["torch_bfloat16", ""] = np.array([1.0, 2.3])
    assert cell.wrong


def test_speeds_are_over_another_library_round_by_round():
    cell = NetCell(NETS[0], RUN, 1)
    cell.seconds = {
        ("torch_bfloat16", "contiguous"): [1.0, 2.0],
        ("torch", "contiguous"): [3.0] * 2,
    }
    assert cell.speed("torch_bfloat16", "torch").median == pytest.approx(2.25)
    assert cell.speed(OURS, "torch") is None
    cell.seconds["torch", "contiguous"].append(1.0)  # interrupted before the other's turn
    assert cell.speed("torch_bfloat16", "torch").median == pytest.approx(2.25)


def chart_cells():
    """Two nets' inference on two numbers of threads, three libraries."""
    cells = []
    for threads, net in itertools.product((1, 2), NETS[:2]):
        cell = NetCell(net, RUN, threads)
        cell.seconds = {(OURS, ""): [1.0] * 3, ("torch", "contiguous"): [2.0] * 3}
        if net is NETS[0]:
            cell.seconds["torch_bfloat16", "contiguous"] = [0.5] * 3
        cells.append(cell)
    return cells


def test_chart_has_a_bar_a_library_and_net(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from convcore.bench import nets_chart

    figures = []
    monkeypatch.setattr(nets_chart, "write_figure", lambda figure, file: figures.append(figure))
    peers = ("torch", "torch_bfloat16", "onnxruntime")
    nets_chart.save_nets_chart(tmp_path / "x.svg", chart_cells(), peers)
    (figure,) = figures
    for axes, threads in zip(figure.axes, (1, 2), strict=True):
        assert axes.get_title() == f"inference, {threads} thread{'s' * (threads > 1)}"
        bars = [(float(bar.get_y()), float(bar.get_height())) for bar in axes.patches]
        assert bars == [(1.0, 1.0), (1.0, 1.0), (1.0, 3.0)]  # ours of two nets, bfloat16's of one
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("PyTorch", "convcore", "PyTorch bfloat16")
    ]
    cells = [NetCell(NETS[0], RUN, 1)]
    with pytest.raises(ValueError, match="PyTorch's, which was not measured"):
        nets_chart.save_nets_chart(tmp_path / "x.svg", cells, peers)


def test_guess_of_a_run_grows_with_what_is_asked():
    def whole(nets, peers, rounds):
        return Effort(nets, peers, (1,), rounds).whole

    small = whole(NETS[-1:], (), 1)
    assert 4 * 3 < small < whole(NETS[-1:], ("torch",), 1) < whole(NETS[:1], ("torch",), 1)
    assert whole(NETS[:1], ("torch",), 1) < whole(NETS[:1], ("torch",), 9)
    effort = Effort(NETS[-1:], (), (1,), 1)
    assert effort.step("a", effort.whole / 2).done == 0
    assert effort.step("b", effort.whole / 2).done == pytest.approx(0.5)
    assert effort.step("c", 0.0).left == pytest.approx(0.0, abs=1e-6)


def test_what_is_left_goes_by_the_clock_when_more_is_done():
    effort = Effort(NETS[-1:], (), (1,), 1)
    whole, effort.started = effort.whole, time.monotonic() - 1000
    assert effort.step("a", 0.1 * whole).left == pytest.approx(whole)
    slow = 1000 / (0.1 * whole)  # as long as guessed, by the clock
    expected = (0.1 * slow + 0.9) * 0.9 * whole
    assert effort.step("b", 0.0).left == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("flags", "isa", "words"),
    [
        ({"avx2"}, "native", "this processor has no bfloat16 arithmetic"),
        ({"avx512_bf16"}, "avx2", "needs --isa native"),
        ({"avx512_bf16"}, "native", ""),
    ],
)
def test_bfloat16_needs_a_processor_that_has_it(flags, isa, words, monkeypatch):
    from convcore.cli.bench import nets as command
    from convcore.cli.errors import UsageError

    monkeypatch.setattr(command, "cpu_flags", lambda: frozenset(flags))
    if words:
        with pytest.raises(UsageError, match=words):
            command._require_bfloat16(isa, "torch_bfloat16")
    else:
        command._require_bfloat16(isa, "convcore_bfloat16")
        effort = Effort(NETS[:1], ("torch_bfloat16",), (1,), 1)
        about, _ = command._announcements(effort)
        assert "autocast('cpu', bfloat16)" in about and "avx512_bf16" in about


def test_our_bfloat16_net_rounds_products_and_what_lies_between_layers(tmp_path):
    lenet = net_named("lenet")
    save_weights(make_net(convcore, lenet), tmp_path / "weights.npz")
    exact = net_call(load_peer(OURS), lenet, RUN, "", tmp_path)().numpy()
    try:
        peer = load_peer("convcore_bfloat16")
        assert peer.rounds_to_bfloat16 and peer.library is convcore
        rounded = net_call(peer, lenet, RUN, "", tmp_path)().numpy()
        assert 1e-5 < np.abs(rounded - exact).max() / np.abs(exact).max() < 0.1
        assert convcore.backends.conv.fp32_precision == "bf16"
        assert convcore.get_float32_matmul_precision() == "medium"
    finally:
        convcore.backends.conv.fp32_precision = "none"
        convcore.backends.mkldnn.matmul.fp32_precision = "none"
    assert formats_of("convcore_bfloat16", TRAIN) == (
        *formats_of(OURS, TRAIN),
        "channels_last autocast",
    )
    assert formats_of("convcore_bfloat16", RUN) == formats_of(OURS, RUN)


def test_bfloat16_net_is_close_to_ours_and_keeps_its_weights(torch, tmp_path):
    lenet, weights = net_named("lenet"), tmp_path / "weights.npz"
    save_weights(make_net(convcore, lenet), weights)
    peer = load_peer("torch_bfloat16")
    ours = task_call(convcore, lenet, RUN, "", weights)().numpy()
    call = task_call(torch, lenet, RUN, "contiguous", weights, precision=peer.precision)
    theirs = call()
    apart = np.abs(theirs.float().numpy() - ours).max() / np.abs(ours).max()
    assert 1e-5 < apart < 0.1  # rounded, and the same net
    step = task_call(torch, lenet, TRAIN, "contiguous", weights, precision=peer.precision)
    assert np.isfinite(step().item())


# A net as ONNX Runtime gets it, where PyTorch cannot be imported.
_WITHOUT_TORCH = """
import sys
from pathlib import Path
sys.modules["torch"] = None
import numpy as np
import convcore
from convcore.bench import nets
from convcore.bench.peers import load_peer
folder, lenet = Path(sys.argv[1]), nets.net_named("lenet")
weights = folder / "weights.npz"
nets.save_weights(nets.make_net(convcore, lenet), weights)
nets.export(lenet, nets.RUN_ONE, weights, folder / "net.onnx")
peer = load_peer("onnxruntime")
peer.set_threads(1)
theirs = nets.net_call(peer, lenet, nets.RUN_ONE, "", folder)()
ours = nets.task_call(convcore, lenet, nets.RUN_ONE, "", weights)().numpy()
np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)
"""


def test_onnxruntime_needs_no_pytorch(tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    command = [sys.executable, "-P", "-c", _WITHOUT_TORCH, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


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


def test_beside_autocast_the_faster_of_our_precisions_counts():
    cell = NetCell(NETS[0], TRAIN, 2)
    cell.seconds = {
        (OURS, ""): [2.0] * 3,
        ("convcore_bfloat16", ""): [1.0] * 3,
        ("torch_bfloat16", ""): [1.2] * 3,
    }
    mean, each = net_promises([cell], ("torch_bfloat16", "convcore_bfloat16"))
    assert (mean.value, mean.limit, mean.kept, each.kept) == ("1.20", "1.3", False, True)
    del cell.seconds["convcore_bfloat16", ""]
    mean, each = net_promises([cell], ("torch_bfloat16",))
    assert (mean.value, each.kept) == ("0.60", False)


def test_precision_bf16_adds_both_libraries_bfloat16(monkeypatch):
    from convcore import cli
    from convcore.cli.bench import nets as command

    monkeypatch.setattr(command, "cpu_flags", lambda: frozenset({"avx512_bf16"}))
    monkeypatch.setattr("convcore.bench.peers.is_installed", lambda name: True)

    def peers(*options):
        arguments = cli._parser().parse_args(["bench", "--nets", "lenet", *options])
        return command._effort(arguments).peers

    assert peers("--peers", "torch") == ("torch",)
    both = ("torch", "convcore_bfloat16", "torch_bfloat16")
    assert peers("--peers", "torch", "--precision", "bf16") == both
    assert peers("--peers", "none", "--precision", "bf16") == ("convcore_bfloat16",)


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
    saved = json.loads(file.read_text())
    assert saved["command"] == "convcore bench --nets lenet --peers torch --rounds 1 " + " ".join(
        ("--json", os.path.relpath(file), "--page", os.path.relpath(page))
    )
    train, run, one = saved["measured"]
    assert f"    {saved['command']}\n" in text
    assert "![Speed of nets beside PyTorch's](nets.svg)" in text
    assert "inference, " in page.with_suffix(".svg").read_text()
    assert done.stdout.startswith("LeNet: 3 tasks, 1 round each: about ")
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
    assert "--csv is not for --nets" in done.stderr
    done = bench("lenet", "--page", "nowhere/nets.md")
    assert done.returncode == 2
    assert "--page: there is no directory nowhere" in done.stderr
