"""bench --distributed: what it computes from times, the model of a network, and a run."""

import json
import subprocess
import sys

import mpi
import pytest

import convcore
from convcore.bench import distributed
from convcore.bench.distributed import Effort, Run, Setup, beside_threads, nets_named, setups
from convcore.bench.nets import make_net
from convcore.bench.network import (
    Network,
    Schedule,
    assumptions,
    estimate,
    preparation,
    ring_all_reduce,
)
from convcore.bench.promises import rank_promises
from convcore.bench.report import print_ranks
from convcore.cli import main
from convcore.cli.bench.options import console_of

RESNET, LENET = nets_named(["resnet18", "lenet"])
FAST = Network(1e12, 0.0)
SCHEDULE = Schedule(1.0, 0.8, [(8000, 0.5), (4000, 0.8)], 100, 1e-9)


def run_of(setup, seconds, computing=(), overlap=None, net=RESNET):
    schedule = SCHEDULE if setup.parts == 1 else None
    return Run(net, setup, list(seconds), list(computing), overlap, [8, 4], schedule)


RUNS = [
    run_of(Setup(1, 1), [1.0, 1.2]),
    run_of(Setup(2, 1), [1.25, 1.3], [1.05, 1.2], 0.25),
    run_of(Setup(1, 2, 2), [1.5]),
]


def test_each_number_of_ranks_has_threads_beside_it():
    assert setups([2, 4], 3) == [
        *(Setup(1, 3), Setup(2, 3), Setup(1, 6, 2), Setup(4, 3), Setup(1, 12, 4))
    ]
    assert setups([1], 1) == [Setup(1, 1)]
    assert [setup.parts for setup in setups([2], 1)] == [1, 2, 2]


def test_speed_and_efficiency_are_of_the_least_times():
    one, two, threads = RUNS
    assert one.images == 8 and two.images == pytest.approx(16 / 1.25)
    assert [run.efficiency(one) for run in RUNS] == pytest.approx([1, 0.8, 1 / 1.5])
    assert two.exposed == pytest.approx(0.2) and one.exposed == 0
    assert two.ceiling(one) == pytest.approx(1 / 1.05) and threads.ceiling(one) is None
    assert beside_threads(two, RUNS) == pytest.approx(1.2)
    assert beside_threads(one, RUNS) is None is beside_threads(two, [one, two])


def test_promises_are_of_ranks_beside_one_and_beside_threads():
    found = {promise.text: promise for promise in rank_promises(RUNS)}
    assert [promise.kept for promise in found.values()] == [False, True]
    assert found["ResNet-18, 2 ranks over one"].value == "1.60"
    slower = [*RUNS, *(run_of(run.setup, run.seconds, net=LENET) for run in RUNS[:2])]
    slower.append(run_of(Setup(1, 2, 2), [0.8], net=LENET))
    *_, beside = rank_promises(slower)
    assert not beside.kept and beside.worst == "LeNet: 0.64" and "2 nets" in beside.text
    assert rank_promises(RUNS[:1]) == []


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_ring_all_reduce_is_that_of_its_turns(ranks):
    """A ring that is played through, turn by turn, with what each rank sends and adds."""
    network, count, add = Network(0.8, 1e-3), 24_000, 2e-8
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]  # whose summands a part has
    seconds = 0.0
    for turn in range(2 * (ranks - 1)):
        sent = [(rank - turn) % ranks for rank in range(ranks)]
        parts = [held[rank][part] for rank, part in enumerate(sent)]
        for rank in range(ranks):
            part, came = sent[rank - 1], parts[rank - 1]
            held[rank][part] = held[rank][part] | came
        seconds += 1e-3 + count / ranks / 1e8 + (add * count / ranks if turn < ranks - 1 else 0)
    assert all(part == set(range(ranks)) for parts in held for part in parts)
    assert ring_all_reduce(count, ranks, network, add) == pytest.approx(seconds)


def test_a_network_without_latency_and_end_costs_nothing():
    found = estimate(Schedule(1.0, 0.8, SCHEDULE.buckets, 100, 0.0), 64, FAST)
    assert found.step == pytest.approx(1.0) and found.efficiency == pytest.approx(1.0)


def test_one_rank_sends_nothing():
    found = estimate(SCHEDULE, 1, Network(10))
    assert (found.step, found.sending, found.overlap, found.efficiency) == (1.0, 0.0, 1.0, 1.0)


def test_buckets_wait_for_their_gradients_and_for_one_another():
    network = Network(8e-5, 0.0)  # ten kilobytes a second
    first, second = (ring_all_reduce(count, 2, network, 1e-9) for count in (8000, 4000))
    before = preparation(SCHEDULE, 2, network)
    found = estimate(SCHEDULE, 2, network)
    assert first == pytest.approx(0.8, rel=1e-3) and before == pytest.approx(0.0108)
    assert found.sending == pytest.approx(before + first + second)
    assert found.step == pytest.approx(before + 0.5 + first + second + 0.2)  # and the optimizer
    assert found.overlap == pytest.approx(0.3 / found.sending)
    assert found.efficiency == pytest.approx(1 / found.step)


def test_a_schedule_is_scaled_as_a_whole():
    scaled = SCHEDULE.lasting(2.0)
    assert (scaled.step, scaled.backward) == (2.0, 1.6)
    assert scaled.buckets == [(8000, 1.0), (4000, 1.6)] and scaled.add == SCHEDULE.add


def test_a_faster_network_and_fewer_ranks_are_never_slower():
    steps = [estimate(SCHEDULE, 64, Network(speed)).step for speed in (1e-4, 1e-3, 1, 10, 100)]
    assert steps == sorted(steps, reverse=True)
    steps = [estimate(SCHEDULE, ranks, Network(1e-3)).step for ranks in (1, 2, 3, 8, 64)]
    assert steps == sorted(steps)


def test_report_has_what_was_measured_and_what_is_assumed(capsys):
    print_ranks(console_of(150), RUNS, 2)
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines() if line.strip().startswith("ResNet")]
    found = ["16", "1250", "0.8", "12.8", "1.2e-05", "25%", "80%", "95%", "1.20"]
    assert rows[1][3:] == found
    assert [row[1:3] for row in rows[3:]] == [["64", "10"], ["64", "100"]]
    assert all(line in printed.replace("\n", " ") for line in assumptions())


def test_guess_of_a_run_grows_with_what_is_asked():
    small = Effort([LENET], setups([1], 1), 3)
    assert small.whole < Effort([LENET], setups([2], 1), 3).whole
    assert small.whole < Effort([LENET], setups([1], 1), 9).whole
    assert small.whole < Effort([RESNET, LENET], setups([1], 1), 3).whole


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--distributed", "--peers", "torch"], "--peers is not for --distributed"),
        (["--distributed", "--threads", "1,2"], "--threads: with --distributed one number"),
        (["--distributed", "--ranks", "1", "--nets", "x.onnx"], "'x.onnx' is none of the nets"),
        (["--ranks", "2"], "--ranks is for --distributed"),
    ],
)
def test_what_means_nothing_is_refused(arguments, words, capsys):
    assert main(["bench", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_without_mpi_one_sentence_says_so(monkeypatch, capsys):
    monkeypatch.setattr(distributed, "find_mpiexec", lambda: None)
    assert main(["bench", "--distributed", "--ranks", "2"]) == 2
    error = capsys.readouterr().err
    assert "mpiexec cannot be found: pip install 'convcore[mpi]'" in error
    assert error.count("\n") == 1


@pytest.mark.subprocess
@pytest.mark.parametrize("ranks", [1, 2])
def test_distributed_suite_end_to_end(ranks, tmp_path):
    if ranks > 1:
        mpi.mpiexec()
    file = tmp_path / "run.json"
    options = ["--ranks", f"1,{ranks}", "--nets", "lenet", "--rounds", "2", "--json", str(file)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", "bench", "--distributed", *options],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "died" not in done.stderr  # ranks end by themselves
    measured = json.loads(file.read_text("utf-8"))["measured"]
    wanted = [(1, 1, 64), (2, 1, 128), (1, 2, 128)][: 2 * ranks - 1]
    assert [(one["ranks"], one["threads"], one["images"]) for one in measured] == wanted
    assert all(len(one["seconds"]) == 2 and min(one["seconds"]) > 0 for one in measured)
    assert "On paper, not run:" in done.stdout and "Patarasuk" in done.stdout
    if ranks > 1:
        two = measured[1]
        weights = sum(p.numel() for p in make_net(convcore, LENET).parameters())
        assert sum(two["bucket_bytes"]) >= 4 * weights
        assert len(two["seconds_without_communication"]) == 2 and 0 <= two["overlap"] <= 1
