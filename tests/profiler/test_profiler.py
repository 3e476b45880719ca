"""PyTorch's profiler: schedules are PyTorch's, and what is recorded is what was called."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import convcore
from convcore import inspection, nn, optim
from convcore.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def counts(found):
    return {one.key: one.count for one in found.key_averages()}


def step(net, x):
    net(x).sum().backward()


def test_functions_backward_passes_steps_and_regions_are_counted():
    net, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), convcore.ones(1, 1, 5, 5)
    optimizer = optim.SGD(net.parameters(), 0.1)
    with profile() as found:
        for _ in range(2):
            with record_function("step"):
                step(net, x)
                optimizer.step()
        with convcore.no_grad():
            net(x)
    step(net, x)  # when it has ended
    assert counts(found) == {
        **{"step": 2, "aten::conv2d": 3, "aten::relu": 3, "aten::sum": 2, "backward": 2},
        **{"SumBackward0": 2, "ReluBackward0": 2, "ConvolutionBackward0": 2},
        "Optimizer.step#SGD.step": 2,
    }


def test_times_add_up():
    with profile() as found, record_function("outer"):
        for _ in range(3):
            convcore.ones(9) + 1
    rows = {one.key: one for one in found.key_averages()}
    outer = rows["outer"]
    own = sum(one.self_cpu_time_total for one in rows.values())
    assert own == pytest.approx(outer.cpu_time_total)
    assert found.key_averages().self_cpu_time_total == pytest.approx(own)
    inner = sum(rows[name].cpu_time_total for name in ("aten::ones", "aten::add"))
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner)
    assert rows["aten::add"].cpu_time == pytest.approx(rows["aten::add"].cpu_time_total / 3)
    assert rows["aten::add"].cuda_time_total == 0


def test_a_region_inside_itself_takes_its_time_once():
    @record_function("power")
    def power(n):
        return power(n - 1) * 2 if n else convcore.ones(2)

    with profile() as found:
        power(3)
    first = found.key_averages()[0]
    assert (first.key, first.count) == ("power", 4)
    assert first.cpu_time_total == pytest.approx(found.key_averages().self_cpu_time_total)


def test_the_table_is_sorted_cut_and_named():
    with profile() as found:
        with record_function("a region whose name is long"):
            convcore.ones(2)
        convcore.ones(2)
    averages = found.key_averages()
    lines = averages.table("count", 1, max_name_column_width=12, header="top").splitlines()
    assert lines[0] == "top" and lines[2].split("  ")[-1] == "# of Calls"
    assert lines[4].split()[0] == "aten::ones" and lines[-1].startswith("Self CPU time total")
    assert "a region ..." in averages.table(max_name_column_width=12)
    assert averages.table(time_unit="us").count("us") == 7 and str(averages) == averages.table()
    with pytest.raises(AttributeError, match="no 'cpu_memory_usage'"):
        averages.table(sort_by="cpu_memory_usage")


def test_a_schedule_is_pytorchs(torch):
    options = itertools.product((0, 2), (1,), (1, 3), (0, 2), (0, 1), (0, 1))
    names = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    for option in options:
        given = dict(zip(names, option, strict=True))
        ours, theirs = schedule(**given), torch.profiler.schedule(**given)
        assert [ours(n).name for n in range(20)] == [theirs(n).name for n in range(20)]
    with pytest.raises(AssertionError, match="active=0"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=1, warmup=0, active=1)


def cycles(library, **options):
    """Return what a profile of seven steps has at the end of each cycle."""
    seen = []

    def ready(found):
        kept = ("ProfilerStep*", "aten::add")
        rows = {one.key: one.count for one in found.key_averages() if one.key in kept}
        seen.append((found.step_num, rows))

    planned = library.profiler.schedule(wait=1, warmup=1, active=2)
    with library.profiler.profile(schedule=planned, on_trace_ready=ready, **options) as found:
        for _ in range(7):
            library.ones(2) + 1
            found.step()
    return seen


@pytest.mark.parametrize("options", [{}, {"acc_events": True}])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cycles_are_pytorchs(torch, options):
    assert cycles(convcore, **options) == cycles(torch, **options)


def test_a_trace_is_written(tmp_path):
    handler = tensorboard_trace_handler(str(tmp_path / "log"), "me", use_gzip=True)
    with profile(on_trace_ready=handler) as found, record_function("outer"):
        convcore.ones(2)
    found.export_chrome_trace(tmp_path / "trace.json")
    (packed,) = (tmp_path / "log").glob("me.*.pt.trace.json.gz")
    plain = (tmp_path / "trace.json").read_text(encoding="utf-8")
    assert gzip.decompress(packed.read_bytes()).decode() == plain
    outer, ones = (one for one in json.loads(plain)["traceEvents"] if one["ph"] == "X")
    assert (outer["name"], outer["cat"]) == ("outer", "user_annotation")
    assert (ones["name"], ones["cat"], outer["ts"]) == ("aten::ones", "cpu_op", 0)
    assert ones["ts"] + ones["dur"] <= outer["dur"]


def test_other_threads_are_not_seen_and_may_have_profiles_of_their_own():
    inside = threading.Event()

    def other():
        with profile() as found:
            convcore.ones(2)
            inside.set()
        return counts(found)

    with ThreadPoolExecutor(1) as pool, profile() as found:
        assert pool.submit(other).result() == {"aten::ones": 1}
        convcore.zeros(2)
    assert inside.is_set() and counts(found) == {"aten::zeros": 1}


def test_one_profile_at_a_time_and_errors_leave_nothing():
    with profile(), pytest.raises(RuntimeError, match="goes on already"), profile():
        pass
    with pytest.raises(ValueError, match="mine"), profile() as found, record_function("outer"):
        raise ValueError("mine")
    assert counts(found) == {"outer": 1}
    with profile() as again:
        pass
    assert counts(again) == {}


def test_devices_that_are_not_there_are_warned_of():
    assert supported_activities() == {ProfilerActivity.CPU}
    with pytest.warns(UserWarning, match=r"ProfilerActivity\.CUDA sees nothing"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def test_a_net_given_to_a_profile_is_told_where_it_is_called():
    net, x = nn.ReLU(), convcore.ones(2)
    for call, usage in (
        (profile, "with profile() as found: net(x)"),
        (inspection.profile, "with inspection.profile(net) as found: net(x)"),
    ):
        with pytest.raises(TypeError) as caught:
            call(net, x)
        assert usage in "".join(caught.value.__notes__)
    with pytest.raises(TypeError, match="Did you mean 'with_stack'"):
        profile(with_stacks=True)


def test_a_step_after_the_end_does_nothing():
    with profile() as found:
        convcore.ones(2) + 1
    found.step()
    assert counts(found) == {"aten::ones": 1, "aten::add": 1}
    with profile() as again:
        convcore.ones(2)
    assert counts(again) == {"aten::ones": 1}


def test_activities_are_pytorchs():
    with pytest.raises(TypeError, match=r"ProfilerActivity\.CPU, got 'cpu'"):
        profile(activities=["cpu"])
