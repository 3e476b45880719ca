"""The benchmark's parts: layers, environment, arithmetic, checks, peers, and one run as a whole."""

import itertools
import json
import math
import os
import sys
import threading
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from convcore import backends, cli
from convcore.bench import measuring, peers, problem, process, runner, worker
from convcore.bench.layers import DTYPES, FORMATS, PASSES, parse_layer, pass_calls
from convcore.bench.measuring import take_turns
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.results import Cell, Request
from convcore.bench.suites import SUITES, SWEEPS, layers_of
from convcore.engine import plan_conv, reference

TINY = "2,4,7,6,6,3x2,2x1,1x2,1x2,2"
FOUND = {
    "PATH": "/bin",
    "CONVCORE_ISA": "base",
    "OPENBLAS_CORETYPE": "Haswell",
    "OPENBLAS_L2_SIZE": "512",
    "OMP_NUM_THREADS": "7",
}
ODD_LAYERS = (
    TINY,
    "1,1,5,5,1,2,2,3",  # padding larger than the kernel, a stride that leaves a rest
    "2,3,9,8,4,1,2",  # strided pointwise
    "1,6,5,7,6,3,1,1,1,6",  # depthwise
    "2,2,6,6,2,6",  # the kernel is the image
    "1d:2,4,9,6,3,2,1,1,2",
    "3d:1,2,4,5,3,4,3x2x1,1x2x1,1x0x0",
    "1d transposed:2,4,5,6,3,2,1,2,2",
    "2d transposed:1,4,3,5,6,3x4,2,1",
    "3d transposed:1,2,3,2,3,2,2,2,0,1,2",
)


# --- suites ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES)
def test_suite_has_convolutions_of_different_names(suite):
    layers = SUITES[suite]
    assert len({layer.name for layer in layers}) == len(layers)
    for layer in layers:
        assert layer.geometry.multiply_adds > 0
        assert parse_layer(layer.spec, layer.name) == layer


def test_real_layers_are_convolutions_of_every_kind():
    layers = layers_of(["real-all"])
    kinds = {"1-d", "2-d", "3-d", "1x1", "grouped", "depthwise", "transposed"}
    assert {layer.kind for layer in layers} == kinds
    assert {layer.kind for layer in layers_of(["real"])} == kinds
    assert {layer.rank for layer in layers if layer.transposed} == {1, 2, 3}
    assert 6 * len(layers_of(["real"])) - len(layers) in range(6 * len(kinds))
    for layer in layers:
        assert layer.name
        assert 0 < layer.geometry.multiply_adds < 5e9
        assert parse_layer(layer.spec, layer.name) == layer


@pytest.mark.parametrize(
    "spec, message",
    [
        ("4d:1,2,3,3,3,3,4,3", "kind is 1d, 2d or 3d, with ' transposed' or not, got '4d'"),
        ("2d upside down:1,2,5,5,3,3", "got '2d upside down'"),
        ("1d:1,2,5,5,3,3,1,1,1,1", "has 5 to 9 fields, N,C,W,O,k,s,p,d,g, got 10"),
        ("1d:1,2,5,3,3x3", "k .kernel size. must be a whole number, got '3x3'"),
        ("3d:1,2,5,5,5,3,3x3", "whole number, or three as 3x5x5, got '3x3'"),
        ("2d transposed:1,4,5,5,3,3,1,0,1,2", "O .output channels. must be divisible by g"),
    ],
)
def test_layers_that_are_none_are_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        parse_layer(spec)


@pytest.mark.parametrize("spec", [spec for spec in ODD_LAYERS if "transposed" in spec])
def test_transposed_layers_are_those_of_the_function(spec):
    layer = parse_layer(spec)
    operands = problem.draw_operands(layer, 0, "float64")
    found = pass_calls(reference, layer, operands)
    x, w = (operands[name] for name in ("input", "weight"))
    exact = reference.conv_transpose(x, w, **layer.steps)
    np.testing.assert_allclose(found["forward"](), exact, rtol=1e-12, atol=1e-12)
    gy = operands["grad_output"]
    for name in ("input", "weight"):  # <gy, forward(x, w)> is linear in each
        product = (found[f"{name}_grad"]() * operands[name]).sum()
        assert product == pytest.approx((gy * exact).sum(), rel=1e-10)


def test_suites_are_of_their_kind():
    assert all(layer.n == 1 for layer in (*SUITES["n1"], *SUITES["tiny"]))
    assert all(layer.groups == layer.c_in > 1 for layer in SUITES["depthwise"])
    assert all(1 < layer.groups < layer.c_in for layer in SUITES["grouped"])
    assert all(max(layer.dilation) > 1 for layer in SUITES["dilated"])
    assert all(layer.c_in <= 3 for layer in SUITES["stems"])
    assert all(layer.geometry.multiply_adds < 1e6 for layer in SUITES["tiny"])


def test_table_suite_has_two_layers_for_one_image_too():
    by_shape = {layer.spec.partition(",")[2]: layer for layer in SUITES["table"]}
    alone = [layer for layer in SUITES["table"] if layer.n == 1]
    assert [layer.name for layer in alone] == ["3x3 64 @56, N=1", "3x3 512 @7, N=1"]
    assert len(by_shape) == len(SUITES["table"]) - len(alone)


def test_sweeps_change_one_size():
    for specs in SWEEPS.values():
        layers = [parse_layer(spec) for spec in specs]
        sizes = {(layer.n, *layer.size) for layer in layers}
        rest = {(layer.c_in, layer.c_out, layer.kernel, layer.padding) for layer in layers}
        assert len(sizes) == len(layers)
        assert len(rest) == 1


def test_suites_together_have_each_shape_once():
    together = layers_of(("resnet50", "stems"))
    assert len({layer.spec for layer in together}) == len(together)
    shared = {layer.spec for layer in SUITES["resnet50"]} & {x.spec for x in SUITES["stems"]}
    assert len(together) == len(SUITES["resnet50"]) + len(SUITES["stems"]) - len(shared)
    assert shared


def test_quick_suite_has_the_nets_that_it_promises():
    names = [layer.name for layer in SUITES["quick"]]
    assert len(set(names)) == len(names)
    assert {name.split()[0] for name in names} == {"ResNet-50", "VGG-16", "MobileNetV2", "LeNet"}
    depthwise = [layer for layer in SUITES["quick"] if layer.groups == layer.c_in > 1]
    assert [layer.name for layer in depthwise] == ["MobileNetV2 features.3 depthwise"]


# --- environment ----------------------------------------------------------------------------------


def test_native_environment_holds_nothing_back():
    given = process.worker_environment(FOUND, 2)
    assert "OPENBLAS_CORETYPE" not in given
    assert "OPENBLAS_L2_SIZE" not in given
    assert "CONVCORE_ISA" not in given
    assert given["PATH"] == "/bin"
    assert given["OMP_NUM_THREADS"] == given["OPENBLAS_NUM_THREADS"] == "2"
    removed = process.removed_variables(FOUND)
    assert removed == {
        name: FOUND[name] for name in FOUND if name not in ("PATH", "OMP_NUM_THREADS")
    }


@pytest.mark.parametrize(
    ("isa", "expected"),
    [
        ("avx512", ("avx512", "SkylakeX", "AVX512_CORE", "avx512")),
        ("avx2", ("avx2", "Haswell", "AVX2", "avx2")),
        ("base", ("base", "Nehalem", "SSE41", "default")),
    ],
)
def test_isa_holds_every_library_that_can_be_held(isa, expected):
    given = process.worker_environment(FOUND, 1, isa)
    names = ("CONVCORE_ISA", "OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
    assert tuple(given[name] for name in names) == expected
    assert process.removed_variables(FOUND, isa) == {"OPENBLAS_L2_SIZE": "512"}


def test_kept_environment_is_as_found():
    assert process.worker_environment(FOUND, 2, keep=True) == FOUND
    assert process.removed_variables(FOUND, keep=True) == {}


def test_environment_found_is_never_changed():
    found = dict(FOUND)
    for isa in process.ISAS:
        process.worker_environment(found, 2, isa)
    assert found == FOUND


def test_unknown_isa_is_an_error():
    with pytest.raises(
        ValueError, match=r"isa must be one of native, avx512, avx2, base, got 'mmx'"
    ):
        process.worker_environment(FOUND, 1, "mmx")


# --- pairing --------------------------------------------------------------------------------------


def test_ratios_are_paired_by_round():
    # The machine is half as fast in the second round: each ratio is 2 all the same.
    assert measuring.paired_ratios([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]) == [2.0, 2.0, 2.0]
    assert measuring.paired_ratios([1.0, 2.0, 4.0], [3.0]) == [3.0]
    with pytest.raises(ValueError, match="more than ours"):
        measuring.paired_ratios([1.0], [1.0, 2.0])


def test_spread_is_median_and_quartiles():
    assert measuring.quartiles([5.0, 1.0, 4.0, 2.0, 3.0]) == measuring.Quartiles(3.0, 2.0, 4.0)
    assert measuring.quartiles([7.0]) == measuring.Quartiles(7.0, 7.0, 7.0)
    with pytest.raises(ValueError, match="empty"):
        measuring.quartiles([])


def test_geometric_mean_of_ratios():
    assert measuring.geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert measuring.geometric_mean([8.0, 1.0, 1.0]) == pytest.approx(2.0)
    assert math.isnan(measuring.geometric_mean([]))


def test_turns_alternate_and_a_slow_peer_sits_out():
    clock = itertools.count(1)
    turns = take_turns({n: lambda: next(clock) for n in "ABC"}, {"A": 9, "B": 9, "C": 2}, 3)
    assert list(turns) == list(zip("ABCABCAB", range(1, 9), strict=True))


# --- sampling -------------------------------------------------------------------------------------


class Clock:
    """A clock that only calls and sleeps move."""

    def __init__(self, seconds):
        self.now, self.seconds, self.calls = 0.0, seconds, 0

    def __call__(self):
        return self.now

    def call(self):
        self.now += self.seconds
        self.calls += 1

    def sleep(self, seconds):
        self.now += seconds
        self.calls += 1


@pytest.mark.parametrize("seconds", [2e-7, 6e-6, 4e-4, 2e-3, 0.1])
def test_sample_is_long_enough_and_right(seconds):
    clock = Clock(seconds)
    extent = measuring.calibrate(clock.call, clock)
    assert extent.calls * seconds >= measuring.GROUP_SECONDS
    assert 1 <= extent.groups <= 5
    assert extent.groups * extent.calls * seconds >= 0.7 * measuring.SAMPLE_SECONDS
    assert measuring.sample(clock.call, extent, clock) == pytest.approx(seconds)


def test_long_call_is_a_sample_by_itself():
    assert measuring.calibrate((clock := Clock(0.1)).call, clock) == measuring.Sampling(1, 1)
    assert clock.calls == 1


# --- peak and memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_peak_is_a_product_of_that_dtype(dtype, monkeypatch):
    # Each call is a product of two 64 x 64 matrices, 2 * 64^3 operations, that takes 0.25 seconds.
    clock = itertools.count(step=0.25)
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: next(clock))
    assert measuring.gemm_gflops(dtype, 1, size=64) == pytest.approx(2e-9 * 64**3 / 0.25)


# In a process of its own, as a benchmark's worker is: what tests before it left is used again.
PEAK = """
import numpy as np
from convcore.bench import measuring

np.ones(40_000_000)  # before: forgotten
watch = measuring.PeakMemory()
assert watch.added < 20e6, watch.added
np.ones(5_000_000)
assert 35e6 < watch.added < 80e6, watch.added
watch.forget()
assert watch.added < 20e6, watch.added
"""


@pytest.mark.subprocess
@pytest.mark.skipif(not measuring._STATUS.exists(), reason="only Linux tells the present size")
def test_peak_memory_is_what_was_added_and_is_kept(run_child):
    run_child(PEAK)


# --- checking -------------------------------------------------------------------------------------


@pytest.fixture
def solved(tmp_path):
    """A tiny layer's problem, on disk."""
    layer = parse_layer(TINY)
    problem.write_problem(layer, PASSES, tmp_path, seed=3)
    return layer, tmp_path


def test_right_result_passes_and_wrong_ones_do_not(solved):
    layer, folder = solved
    exact = pass_calls(reference, layer, problem.read_operands(folder))
    for name in PASSES:
        right = exact[name]().astype(np.float32)
        assert problem.measure_error(right, folder, name) <= 0.5
        for wrong in (
            right + np.float32(0.01),
            np.where(np.arange(right.size).reshape(right.shape) == 1, np.float32(np.nan), right),
            right[:, :1],
            right.astype(np.float64),
        ):
            assert problem.measure_error(wrong, folder, name) > 100


def test_float64_is_measured_beyond_float64(tmp_path):
    layer = parse_layer(TINY)
    problem.write_problem(layer, PASSES, tmp_path, seed=4, dtype="float64")
    operands = problem.read_operands(tmp_path)
    wide = {name: array.astype(np.longdouble) for name, array in operands.items()}
    for name in PASSES:
        parts = problem.exact_parts(layer, operands, name)
        assert len(parts) == 2
        summed = sum(part.astype(np.longdouble) for part in parts)
        # What longdouble itself, of 64 bits, computes: the definition, product by product.
        loops = {
            "forward": ("loop_forward", "input", "weight"),
            "input_grad": ("loop_input_grad", "grad_output", "weight"),
            "weight_grad": ("loop_weight_grad", "input", "grad_output"),
        }
        loop, *factors = loops[name]
        right = getattr(reference, loop)(*(wide[f] for f in factors), layer.geometry)
        right, exact = np.asarray(right, np.longdouble), np.asarray(summed)
        scale = float(np.abs(exact).max())
        assert float(np.abs(right - exact).max()) < 1e-18 * scale
        result = pass_calls(reference, layer, operands)[name]()
        error = problem.measure_error(result, tmp_path, name)
        assert 0.0 < error < 4.0
        assert problem.measure_error(result.astype(np.float32), tmp_path, name) == math.inf
        result.flat[0] += 20 * 2.0**-52 * scale
        assert problem.measure_error(result, tmp_path, name) > 4.0


def test_every_seed_draws_other_arrays():
    layer = parse_layer(TINY)
    first, again, other = (problem.draw_operands(layer, seed)["input"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_cell_is_wrong_beyond_the_bound_or_without_a_result():
    def cell(**errors):
        return Cell(parse_layer(TINY), "forward", "contiguous", 1, errors)

    assert cell(convcore=4.0, numpy=99.0).wrong == []
    assert cell(convcore=4.1).wrong == ["convcore"]
    winograd = cell(convcore=4.1)
    winograd.algorithm = "Winograd F(4x4,3x3)"
    assert winograd.wrong == []
    winograd.errors["convcore"] = 12.1
    assert winograd.wrong == ["convcore"]
    assert cell(convcore=math.nan).wrong == ["convcore"]
    assert cell(convcore=1.0, torch=math.inf).wrong == ["torch"]
    failed = cell()
    failed.problems["convcore"] = "convcore: MemoryError"
    assert failed.wrong == ["convcore"]
    absent = cell(convcore=1.0)
    absent.problems["torch"] = "torch: RuntimeError"
    assert absent.wrong == []


def request(**changes):
    axes = {"layers": (parse_layer("1,2,5,5,3,3"),), "passes": PASSES, "formats": FORMATS}
    return Request(**{**axes, "threads": (1,), "peers": ("numpy",), "rounds": 3, **changes})


# --- peers ----------------------------------------------------------------------------------------


@pytest.mark.subprocess
@pytest.mark.parametrize("name", list(peers.PEERS))
def test_peer_computes_what_the_oracle_does(name, tmp_path):
    """Every peer in a process of its own, as it is measured: no two runtimes meet in one."""
    if not peers.is_installed(name):
        pytest.skip(f"{name} is not installed")
    result, computed = str(tmp_path / "result.npy"), 0
    with WorkerProcess(name, 1, process.worker_environment(os.environ, 1)) as running:
        about = running.ask("describe")
        for spec, dtype in itertools.product(ODD_LAYERS, about["dtypes"]):
            folder = tmp_path / f"{spec}-{dtype}"
            folder.mkdir()
            problem.write_problem(parse_layer(spec), about["passes"], folder, 5, dtype)
            for pass_name, form in itertools.product(about["passes"], about["formats"]):
                cell = {"layer": spec, "dtype": dtype, "pass_name": pass_name, "format": form}
                if running.ask("prepare", **cell, folder=str(folder), result=result):
                    assert problem.measure_error(np.load(result), folder, pass_name) <= 4.0, cell
                    computed += 1
    assert computed


@pytest.mark.subprocess
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "torch"])
def test_peer_keeps_to_one_thread_and_to_itself(name, run_child):
    if not peers.is_installed(name):
        pytest.skip(f"{name} is not installed")
    events, cpu, wall = json.loads(run_child(ALONE, name))
    assert events == []
    assert cpu < 1.3 * wall


def test_peers_convert_to_the_format_asked_for():
    x = np.zeros((2, 3, 4, 5), np.float32)
    assert peers.in_format(x, False).flags.c_contiguous
    last = peers.in_format(x, True)
    assert last.shape == x.shape
    assert last.transpose(0, 2, 3, 1).flags.c_contiguous


# What a peer does that a worker has no business with, a process of its own or a call to somebody,
# and its CPU and elapsed seconds when told to compute with one thread.
ALONE = """
import json, sys, threading, time
events = []
watched = ("os.fork", "os.posix_spawn", "socket.connect", "socket.getaddrinfo")
sys.addaudithook(lambda event, arguments: event in watched and events.append(event))
from convcore.bench import peers, problem
from convcore.bench.layers import parse_layer
peer, layer = peers.load_peer(sys.argv[1]), parse_layer("4,64,56,56,64,3,1,1")
peer.set_threads(1)
operands = {k: peer.convert(a, False) for k, a in problem.draw_operands(layer, 0).items()}
call = peer.call(layer, "forward", operands)
call()
cpu, wall = time.process_time(), time.perf_counter()
for _ in range(10):
    call()
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
for thread in threading.enumerate():
    if thread is not threading.current_thread():
        thread.join(5)
print(json.dumps([events, cpu, wall]))
"""


# --- effort ---------------------------------------------------------------------------------------


def test_effort_adds_up_to_the_whole():
    asked = request(layers=SUITES["quick"], threads=(1, 2))
    guess = runner.Effort(asked)
    cells = len(asked.passes) * len(asked.formats) * len(asked.threads)
    for layer in asked.layers:
        guess.step("", guess.of_oracle(layer) + cells * guess.of_cell(layer))
    assert guess.done == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("left", "ahead", "rounds"),
    [
        (None, 1000.0, 9),
        (50.0, 10.0, 9),
        (20.0, 40.0, 4),
        (1.0, 40.0, 3),
        (-5.0, 1.0, 3),
        (-5.0, 0.0, 3),
    ],
)
def test_rounds_shrink_to_keep_a_budget(left, ahead, rounds):
    assert runner.rounds_within(9, left, ahead) == rounds


def test_budget_never_adds_rounds():
    assert runner.rounds_within(2, 1.0, 5.0) == 2


def test_time_ahead_follows_the_pace_since_the_mark():
    guess = runner.Effort(request())
    (layer,) = request().layers
    guess.step("", guess.of_oracle(layer))
    guess.mark(100.0)
    assert guess.ahead(100.0) == 0.0
    guess.step("", guess.of_cell(layer))
    # One of six cells took two seconds.
    assert guess.ahead(102.0) == pytest.approx(10.0)


# --- settling -------------------------------------------------------------------------------------


class Task:
    """Another thread of this process, as Linux shows it; it spins for some sleeps of ours."""

    def __init__(self, folder, spins):
        (folder / "1").mkdir()
        self.clock, self.spins, self.file = Clock(0.0), spins, folder / "1" / "stat"
        self.show()

    def show(self):
        state = "R" if self.clock.calls < self.spins else "S"
        self.file.write_text(f"1 (a name) R) {state} 0 0")

    def sleep(self, seconds):
        self.clock.sleep(seconds)
        self.show()


@pytest.mark.parametrize("spins", [0, 1, 7])
def test_settling_waits_as_long_as_a_thread_spins(spins, monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "_TASKS", tmp_path)
    task = Task(tmp_path, spins)
    measuring.settle(clock=task.clock, sleep=task.sleep)
    assert task.clock.calls == spins


def test_settling_gives_up_at_last(monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "_TASKS", tmp_path)
    task = Task(tmp_path, math.inf)
    measuring.settle(clock=task.clock, sleep=task.sleep)
    assert measuring.PATIENCE_SECONDS <= task.clock.now < 1.1 * measuring.PATIENCE_SECONDS


def test_settling_without_linux_looks_at_cpu_time(monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "_TASKS", tmp_path / "none")
    clock = Clock(0.0)
    # Two looks, each a pair of readings: another thread ran during the first.
    readings = iter([0.0, measuring._LOOK_SECONDS, 1.0, 1.0])
    measuring.settle(clock=clock, cpu_clock=lambda: next(readings), sleep=clock.sleep)
    assert clock.now == pytest.approx(2 * measuring._LOOK_SECONDS + measuring._POLL_SECONDS)


@pytest.mark.skipif(not measuring._TASKS.exists(), reason="only Linux shows its threads' states")
def test_spinning_thread_is_seen():
    end, data = threading.Event(), bytes(50_000_000)

    def spin():
        # Python's own threads sleep in between, waiting for one another: this one does not, in C.
        while not end.is_set():
            zlib.crc32(data)

    spinner = threading.Thread(target=spin)
    spinner.start()
    try:
        assert any(not measuring._all_sleep() for _ in range(100_000))
    finally:
        end.set()
        spinner.join()


# --- worker and the whole -------------------------------------------------------------------------


class Constant(peers.Peer):
    """A peer whose every result is 1: wrong, whatever is asked."""

    def set_threads(self, threads):
        self.threads = threads

    def describe(self):
        return {"kernel": "none"}

    def convert(self, array, channels_last):
        return array

    def call(self, layer, pass_name, operands):
        return lambda: np.ones(layer.geometry.output_shape, np.float32)


def asked(instance, command, **arguments):
    line = json.dumps({"command": command, "arguments": arguments})
    return process.answer(instance, line)


def test_worker_finds_a_wrong_result_wrong(solved):
    layer, folder = solved
    instance, result = worker.Worker(Constant(), 1), str(folder / "result.npy")
    where = {"layer": layer.spec, "dtype": "float32", "folder": str(folder), "result": result}
    prepared = asked(instance, "prepare", pass_name="forward", format="contiguous", **where)
    assert prepared == {"value": {"algorithm": ""}}
    judged = asked(instance, "judge", folder=str(folder), pass_name="forward", result=result)
    assert judged["value"] > 1000
    # A result of another map's shape is not even compared.
    judged = asked(instance, "judge", folder=str(folder), pass_name="weight_grad", result=result)
    assert judged["value"] == math.inf
    assert asked(instance, "calibrate", format="contiguous") == {"value": None}
    assert asked(instance, "time", format="contiguous")["value"] > 0
    assert asked(instance, "peak_bytes")["value"] >= 0


def test_worker_answers_nothing_for_a_convolution_that_a_peer_lacks(solved, monkeypatch):
    layer, folder = solved
    monkeypatch.setattr(Constant, "can", lambda self, layer: False)
    instance = worker.Worker(Constant(), 1)
    where = {"layer": layer.spec, "dtype": "float32", "folder": str(folder), "result": "none"}
    prepared = asked(instance, "prepare", pass_name="forward", format="contiguous", **where)
    assert prepared == {"value": None}


def test_worker_answers_an_error_with_its_text():
    instance = worker.Worker(Constant(), 1)
    assert "unknown command 'fold'" in asked(instance, "fold")["error"]
    assert "prepare comes first" in asked(instance, "time")["error"]


# Prints the kernels loaded in a worker that has its peer, then the OpenMP runtimes of GNU's in it,
# before and after the results are checked by convcore's own code.
WORKER = """
import json, pathlib, sys
from convcore.bench import peers, worker
worker.Worker(peers.load_peer(sys.argv[1]), 1)
kernels = [name for name in sys.modules if name.startswith("convcore.engine")]
def runtimes():
    maps = pathlib.Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return sorted({line.split()[-1] for line in lines if "libgomp" in line})
before = runtimes()
import convcore.bench.problem
loaded = "convcore.engine.conv.im2col._im2col_gemm" in sys.modules
print(json.dumps([kernels, before, runtimes(), loaded]))
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_worker_has_its_peer_before_any_kernel(name, run_child):
    if not peers.is_installed(name):
        pytest.skip(f"{name} is not installed")
    kernels, before, after, loaded_at_last = json.loads(run_child(WORKER, name))
    assert kernels == []
    assert loaded_at_last
    # A PyTorch that brings GNU's OpenMP under its usual name computes on it, and so does all else.
    own = Path(find_spec(name).origin).parent / "lib" / "libgomp.so.1"
    if name == "torch" and own.exists() and before:
        assert before == after == [str(own)]


@pytest.mark.subprocess
def test_worker_process_reports_errors_and_its_own_end():
    given = process.worker_environment(os.environ, 1)
    with WorkerProcess("numpy", 1, given) as running:
        assert running.ask("describe")["loaded"]["NumPy"] == np.__version__
        with pytest.raises(WorkerError, match="numpy: ValueError: a layer has"):
            running.ask("solve", layer="1", passes=[], dtype="float32", folder=".", seed=0)
        running._process.kill()
        for _ in range(2):
            with pytest.raises(WorkerError, match="ended with exit code"):
                running.ask("describe")


@pytest.mark.subprocess
def test_bench_of_a_tiny_layer_end_to_end(tmp_path, capsys):
    pytest.importorskip("rich")
    before = dict(os.environ)
    file = tmp_path / "tiny.json"
    arguments = ["bench", "--layer", TINY, "--layer", TINY, "--threads", "1", "--rounds", "2"]
    code = cli.main([*arguments, "--peers", "numpy", "--json", str(file)])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert dict(os.environ) == before
    data = json.loads(file.read_text())
    assert data["finished"]
    assert [(c["map"], c["format"]) for c in data["cells"]] == list(
        itertools.product(PASSES, FORMATS)
    )
    for cell in data["cells"]:
        assert cell["error_in_eps"]["convcore"] <= 4.0
        assert len(cell["seconds"]["convcore"]) == 2
        assert ("numpy" in cell["ratio"]) == (cell["format"] == "contiguous")
        assert cell["algorithm"]
        assert cell["percent_of_peak"] > 0
    assert set(data["workers"]) == {"convcore@1", "numpy@1"}
    variables = data["workers"]["convcore@1"]["variables"]
    assert "OPENBLAS_CORETYPE" not in variables
    assert variables["OMP_NUM_THREADS"] == "1"
    assert data["workers"]["convcore@1"]["peak_bytes"] >= 0
    assert data["machine"]["removed_variables"].keys() >= before.keys() & {"OPENBLAS_CORETYPE"}
    assert {promise["kept"] for promise in data["promises"]} == {True}
    # The formats of a group are timed together, so that each side's better one can be paired.
    better = data["better_format"]
    assert [(b["map"], b["formats"][1]) for b in better] == [(m, "contiguous") for m in PASSES]
    assert "agree with the oracle" in printed


@pytest.mark.subprocess
def test_peer_that_does_not_start_is_reported_and_left_out(tmp_path, monkeypatch, capfd):
    pytest.importorskip("rich")
    # Found, so that it is asked for, but broken: its import fails.
    (tmp_path / "torch.py").write_text("raise ImportError('broken on purpose')")
    monkeypatch.setattr(peers, "is_installed", lambda name: True)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    file = tmp_path / "broken.json"
    arguments = ["bench", "--layer", "1,2,5,5,3,3", "--threads", "1", "--rounds", "1"]
    assert cli.main([*arguments, "--peers", "torch", "--json", str(file)]) == 0
    printed = capfd.readouterr()
    assert "broken on purpose" in printed.err
    data = json.loads(file.read_text())
    assert "ended with exit code 1" in data["workers"]["torch@1"]["loaded"]["problem"]
    assert all(set(cell["seconds"]) == {"convcore"} for cell in data["cells"])


@pytest.mark.subprocess
def test_bench_held_to_avx2_loads_that_kernel(tmp_path):
    pytest.importorskip("rich")
    file = tmp_path / "avx2.json"
    arguments = ["bench", "--layer", "1,2,5,5,3,3", "--threads", "1", "--rounds", "1"]
    assert cli.main([*arguments, "--isa", "avx2", "--peers", "numpy", "--json", str(file)]) == 0
    workers = json.loads(file.read_text())["workers"]
    for about in workers.values():
        assert about["variables"]["OPENBLAS_CORETYPE"] == "Haswell"
        assert about["variables"]["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert workers["convcore@1"]["loaded"]["instructions"] == "avx2"


@pytest.mark.subprocess
def test_bench_held_to_strict_mode_computes_without_winograd(tmp_path):
    pytest.importorskip("rich")
    layer, file = parse_layer("1,64,56,56,64,3,1,1"), tmp_path / "strict.json"
    assert plan_conv(layer.geometry, "float32").forward.algorithm == "winograd"
    arguments = ["--passes", "forward", "--threads", "1", "--rounds", "1", "--peers", "none"]
    given = ["--layer", layer.spec, "--strict", "--json", str(file), *arguments]
    assert cli.main(["bench", *given]) == 0
    data = json.loads(file.read_text())
    assert data["request"]["strict"]
    assert {cell["algorithm"] for cell in data["cells"]} == {"indirect"}


@pytest.mark.subprocess
def test_bench_held_to_an_algorithm_computes_by_it_where_it_can(tmp_path):
    pytest.importorskip("rich")
    file, page = tmp_path / "x.json", tmp_path / "x.md"
    layers = ["--layer", "1,16,9,9,16,3,1,1", "--layer", "1,4,9,9,4,3,1,1,1,4"]
    arguments = ["--formats", "contiguous", "--threads", "1", "--rounds", "1", "--peers", "none"]
    given = [*layers, "--algorithm", "im2col", "--json", str(file), "--page", str(page)]
    assert cli.main(["bench", "--passes", "forward", *arguments, *given]) == 0
    data = json.loads(file.read_text())
    dense, depthwise = (cell["algorithm"] for cell in data["cells"])
    assert dense == "im2col" and data["request"]["algorithm"] == "im2col"
    assert depthwise == plan_of_forced("im2col", "1,4,9,9,4,3,1,1,1,4")
    assert all(promise["text"].startswith("error of ") for promise in data["promises"])
    assert data["command"].startswith("convcore bench --passes forward ")
    assert page.read_text().startswith("# What `convcore bench --algorithm im2col` measured\n")


def plan_of_forced(algorithm, spec):
    """Return what computes a layer's forward pass where an algorithm is forced."""
    with backends.conv.flags(algorithm=algorithm):
        return plan_conv(parse_layer(spec).geometry, "float32").forward.algorithm


def test_oracle_is_what_results_are_compared_with(solved):
    layer, folder = solved
    operands = problem.read_operands(folder)
    exact = reference.conv_forward(operands["input"], operands["weight"], **layer.steps)
    assert np.array_equal(np.load(folder / "exact_forward_0.npy"), exact)
