"""Profiles: what they count, where they put it, and that they leave nothing behind."""

import copy
import gc
import json
import pickle
import re
import threading
import time
import weakref
from collections import OrderedDict

import pytest

import convcore
from convcore import inspection, models, nn
from convcore.autograd.observation import observers
from convcore.engine import make_geometry, plan_conv
from convcore.inspection.profiling._chrome_trace import _microseconds
from convcore.nn import functional as F

NETS = {
    "lenet": ((2, 1, 28, 28), {}),
    "resnet8": ((2, 3, 16, 16), {}),
    "resnet18": ((1, 3, 32, 32), {"num_classes": 10}),
    "mobilenet_v2": ((1, 3, 32, 32), {"num_classes": 10}),
    "unet": ((1, 3, 32, 32), {"init_features": 8}),
    "autoencoder": ((1, 3, 64, 64), {}),
    **{f"resnet{n}": ((1, 3, 32, 32), {"num_classes": 10}) for n in (34, 50, 101)},
    **{f"vgg{n}": ((1, 3, 32, 32), {"num_classes": 10}) for n in (11, 16)},
    **{f"vgg{n}_bn": ((1, 3, 32, 32), {"num_classes": 10}) for n in (11, 13, 16, 19)},
}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU()

    def forward(self, x):
        return F.relu(self.relu(self.conv(x)) + x)


def profiled(net, *args):
    with inspection.profile(net) as found:
        net(*args).sum().backward()
    return found


def named(found):
    return {row.name: row for row in found.rows.all()}


def test_algorithms_under_autocast_are_those_of_bfloat16():
    net, x = nn.Conv2d(64, 64, 1), convcore.rand(2, 64, 20, 20)
    x = x.to(memory_format=convcore.channels_last)
    with convcore.autocast("cpu", dtype=convcore.bfloat16):
        found = named(profiled(net, x))["convolution"].algorithms
    with convcore.backends.conv.flags(fp32_precision="bf16"):
        geometry = make_geometry(x.shape, net.weight.shape)
        plan = plan_conv(geometry, "float32", channels_last=True)
    assert found["forward"] == plan.forward.algorithm
    assert found["weight_grad"] == plan.weight_grad.algorithm


@pytest.mark.parametrize("name", ["lenet", "resnet8"])
def test_autocast_changes_no_count(name):
    shape, options = NETS[name]
    net, x = getattr(models, name)(**options), convcore.rand(shape)
    plain = profiled(net, x)
    with convcore.autocast("cpu", dtype=convcore.bfloat16):
        lowered = profiled(net, x)
    assert lowered.multiply_adds == plain.multiply_adds
    assert "layer" in str(lowered) or "conv" in str(lowered)


@pytest.fixture
def undrawn(monkeypatch):
    """Leave new weights as they are in memory: counts do not depend on them."""
    for name in ("kaiming_normal_", "kaiming_uniform_", "normal_", "uniform_"):
        monkeypatch.setattr(nn.init, name, lambda tensor, *args, **options: tensor)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered:RuntimeWarning")
@pytest.mark.parametrize("name", NETS)
def test_operations_equal_torchs_flop_counter(name, undrawn):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    shape, options = NETS[name]
    ours = getattr(models, name)(**options).eval()
    with torch.device("meta"):
        theirs = getattr(models, name)(library=torch, **options).eval()
        with FlopCounterMode(display=False) as forward, torch.no_grad():
            theirs(torch.zeros(shape))
        with FlopCounterMode(display=False) as both:
            theirs(torch.zeros(shape)).sum().backward()
    found = profiled(ours, convcore.zeros(shape))
    assert 2 * found.multiply_adds == forward.get_total_flops()
    if name != "mobilenet_v2":  # torch counts weight gradients of groups as if there were none
        assert found.flops == both.get_total_flops()
    with convcore.no_grad(), inspection.profile(ours) as found:
        ours(convcore.zeros(shape))
    assert found.flops == forward.get_total_flops()


def test_transposed_and_batched_products_equal_torchs_flop_counter():
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    def run(m):
        x = m.ones(2, 4, 5, 5, requires_grad=True)
        y = m.nn.functional.conv_transpose2d(x, m.ones(4, 3, 3, 3), stride=2, groups=2)
        z = m.bmm(y.flatten(2), y.flatten(2).transpose(1, 2))
        m.nn.functional.linear(z, m.ones(5, 6)).sum().backward()

    with FlopCounterMode(display=False) as expected:
        run(torch)
    with inspection.profile(nn.Identity()) as found:
        run(convcore)
    assert found.flops == expected.get_total_flops()


def test_the_tree_has_modules_and_operations_where_they_were_called():
    net = nn.Sequential(Block(), nn.Flatten())
    found = profiled(net, convcore.rand(1, 3, 4, 4))
    assert [row.name for row in found.rows.all()] == [
        "", "", "0", "0.conv", "0.conv.convolution", "0.relu", "0.relu.relu", "0.add", "0.relu",
        "1", "1.view", "sum",
    ]  # fmt: skip
    block = named(found)["0"]
    assert block.type == "Block" and block.is_module and block.calls == 1


def test_calls_again_are_summed_and_numbered():
    relu = nn.ReLU()

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = relu

        def forward(self, x):
            return F.relu(F.relu(self.relu(self.relu(x))))

    net = Twice()
    with inspection.profile(net) as found:
        for _ in range(3):
            net(convcore.ones(2, requires_grad=True))
    rows = [(row.name, row.is_module, row.calls) for row in found.rows.children[0].all()]
    assert rows == [
        ("", True, 3), ("relu", True, 6), ("relu.relu", False, 6), ("relu", False, 3),
        ("relu:2", False, 3),
    ]  # fmt: skip


def test_times_are_those_of_the_calls():
    class Slow(nn.Module):
        def forward(self, x):
            time.sleep(0.02)
            return x * 2

    net = nn.Sequential(Slow(), nn.ReLU(), Slow())
    found = profiled(net, convcore.ones(4, requires_grad=True))
    rows = named(found)
    assert 0.02 <= rows["0"].forward < 0.2 and 0.02 <= rows["2"].forward < 0.2
    assert rows["1"].forward < 0.02
    assert 0.04 <= found.rows.forward <= found.seconds
    for row in found.rows.all():
        assert row.forward >= sum(child.forward for child in row.children) * 0.999
    assert {row.name for row in found.slowest(2)} == {"0", "2"}


def test_backward_times_are_those_of_the_nodes():
    net = nn.Sequential(nn.ReLU(), nn.Sigmoid())
    x = convcore.ones(4, requires_grad=True)
    with inspection.profile(net) as found:
        middle = net[0](x)
        middle.register_hook(lambda grad: time.sleep(0.02))  # no node's time
        net[1](middle).sum().backward()
    assert all(0 < row.backward < 0.02 for row in found.rows.children)


def test_a_profile_of_nothing_asks_for_the_call():
    with inspection.profile(nn.ReLU()) as found:
        pass
    assert "nothing was measured: is the net called in the block?" in str(found)
    with inspection.profile(net := nn.ReLU()) as found:
        net(convcore.ones(1))
    assert "nothing was measured" not in str(found)


def test_bytes_are_those_of_new_results():
    x = convcore.ones(10, 100, requires_grad=True)
    with inspection.profile(nn.Identity()) as found:
        (x * 2).relu_().view(-1)[5:]
    assert {row.name: row.bytes for row in found.rows.children} == {
        "mul": 4000, "relu": 0, "view": 0, "slice": 0,
    }  # fmt: skip


def test_peak_bytes_are_those_of_the_pool():
    # A convolution's result lies in the pool in every build; without kernels, a product's does not.
    net = nn.Conv2d(1, 1, 1)
    big = convcore.ones(1, 1, 1 << 10, 1 << 10)
    gc.collect()  # or it is freed meanwhile, of other tests
    with inspection.profile(net) as found:
        net(big)
    assert found.peak_bytes >= 4 << 20


def test_algorithms_are_those_of_the_plan():
    net = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ConvTranspose2d(64, 8, 2, stride=2))
    plans = [
        plan_conv(make_geometry((1, 64, 16, 16), (64, 64, 3, 3), padding=1), "float32"),
        plan_conv(make_geometry((1, 8, 32, 32), (64, 8, 2, 2), stride=2), "float32"),
    ]
    expected = [plans[0].forward.algorithm, plans[1].input_grad.algorithm]
    x = convcore.rand(1, 64, 16, 16)
    rows = named(profiled(net, x))
    found = [rows[f"{n}.convolution"].algorithms for n in (0, 1)]
    assert [one["forward"] for one in found] == expected
    assert found[0]["weight_grad"] == plans[0].weight_grad.algorithm
    with convcore.no_grad(), inspection.profile(net) as without:
        net(x)
    assert [named(without)[f"{n}"].algorithms["forward"] for n in (0, 1)] == expected


def test_backward_products_of_groups_are_counted_by_definition():
    conv = nn.Conv2d(4, 4, 3, groups=4, bias=False)
    found = profiled(conv, convcore.ones(1, 4, 5, 5, requires_grad=True))
    assert found.multiply_adds == 4 * 9 * 9 and found.flops == 2 * 3 * 4 * 9 * 9


def test_operations_have_the_names_of_functions():
    net = nn.Sequential(nn.MaxPool2d(2), nn.Flatten())
    assert "0.max_pool2d" in named(profiled(net, convcore.rand(1, 1, 4, 4, requires_grad=True)))


def test_the_table_fits_100_columns():
    class Long(nn.Module):
        def __init__(self):
            super().__init__()
            self.a_module_with_a_name_that_is_much_too_long_to_print = models.resnet8()

        def forward(self, x):
            return self.a_module_with_a_name_that_is_much_too_long_to_print(x)

    found = profiled(Long(), convcore.rand(1, 3, 16, 16))
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    for word in ("layer2", "native_batch_norm", "GFLOP/s", "Slowest", "thread"):
        assert word in text
    assert len(found.table(0).splitlines()) < len(text.splitlines())
    assert found.peak_gflops > 0


def test_the_trace_is_in_chromes_format(tmp_path):
    found = profiled(nn.Sequential(Block(), nn.Flatten()), convcore.rand(1, 3, 4, 4))
    path = tmp_path / "trace.json"
    found.export_chrome_trace(path)
    trace = json.loads(path.read_text())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert {event["ph"] for event in trace["traceEvents"]} == {"X", "M"}
    for event in spans:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert event["ts"] >= 0 and event["dur"] >= 0 and event["name"]
    names = [event["name"] for event in spans]
    assert names[:4] == ["(model)", "0", "0.conv", "Convolution"]
    assert names.count("ConvolutionBackward0") == 1
    assert {event["cat"] for event in spans} == {"module", "forward", "backward"}


@pytest.mark.parametrize("whole", [round, int], ids=["rounded", "cut off"])
def test_perfetto_keeps_every_span_of_a_trace(tmp_path, whole):
    """Its rules: times of a thousandth of a microsecond; numbers of threads; spans that nest."""
    found = profiled(models.resnet8(), convcore.rand(1, 3, 32, 32))
    path = tmp_path / "trace.json"
    found.export_chrome_trace(path)
    trace = json.loads(path.read_text(), parse_constant=pytest.fail)  # NaN is no JSON
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(spans) > 60
    ends, last = [], 0
    for event in spans:
        assert all(type(event[name]) is int and 0 <= event[name] < 2**32 for name in ("pid", "tid"))
        assert all(type(value) in (int, str) for value in event["args"].values())
        start, took = whole(event["ts"] * 1000.0), whole(event["dur"] * 1000.0)
        assert start >= last
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or start + took <= ends[-1]
        ends.append(start + took)
        last = start


def test_times_of_a_trace_are_to_the_nanosecond():
    numbers = [*range(5000), *(10**12 + 7 * k for k in range(5000))]
    assert [int(_microseconds(one) * 1000.0) for one in numbers] == numbers
    assert [round(_microseconds(one) * 1000.0) for one in numbers] == numbers


def test_results_are_those_without_a_profile():
    convcore.manual_seed(0)
    net, x = models.resnet8(), convcore.rand(2, 3, 16, 16)
    net(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    net.zero_grad()
    profiled(net, x)
    for parameter, grad in zip(net.parameters(), expected, strict=True):
        assert convcore.equal(parameter.grad, grad)


def test_everything_is_put_back_after_an_error():
    net = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
    own = net[0].forward = lambda x: x * 2
    with pytest.raises(RuntimeError, match="shapes"), inspection.profile(net) as found:
        net(convcore.ones(1, 5))
    assert net[0].__dict__["forward"] is own and "forward" not in net[1].__dict__
    assert "forward" not in net.__dict__ and not observers
    assert named(found)["1"].calls == 1


def test_backward_after_the_block_is_not_measured():
    net = nn.Linear(3, 2)
    with inspection.profile(net) as found:
        y = net(convcore.ones(1, 3)).sum()
    y.backward()
    assert net.weight.grad is not None and found.rows.backward == 0


def test_profiles_nest():
    net, x = Block(), convcore.rand(1, 3, 4, 4)
    with inspection.profile(net) as outer, inspection.profile(net) as inner:
        net(x).sum().backward()
    assert inner.flops == outer.flops > 0
    assert "forward" not in net.__dict__


def test_other_threads_are_not_measured():
    net = nn.Linear(3, 2)
    with inspection.profile(net) as found:
        thread = threading.Thread(target=lambda: net(convcore.ones(1, 3)))
        thread.start()
        thread.join()
    assert not found.rows.children


class Shortcut(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.first = nn.Conv2d(3, 16, 1), nn.Conv2d(16, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.norm, self.relu = nn.BatchNorm2d(16), nn.ReLU()

    def forward(self, x):
        x = self.stem(x)
        return F.max_pool2d(self.relu(self.norm(self.second(self.first(x))) + x), 2)


def optimized(net, x):
    fast = convcore.optimize_for_inference(net.eval(), x)
    return fast, fast(x)


def test_a_plan_has_a_row_for_each_step_with_all_its_layers():
    x = convcore.rand(1, 3, 8, 8)
    fast, expected = optimized(Shortcut(), x)
    for call in range(2):
        with inspection.profile(fast) as found:
            result = fast(x)
        assert convcore.equal(result, expected) and not fast._plans.profilers, call
    (net,) = found.rows.children
    assert [row.layers for row in net.steps] == [
        ("stem",), ("first",), ("second", "norm", "add", "relu"), ("max_pool2d",),
    ]  # fmt: skip
    stem, first, second, _ = net.steps
    assert (stem.multiply_adds, second.multiply_adds) == (64 * 3 * 16, 64 * 144 * 16)
    assert first.algorithms["forward"] and first.bytes == 16 * 64 * 4 and not second.bytes
    assert second.type == "convolution + add + relu" and found.multiply_adds == net.multiply_adds
    assert 0 < sum(row.forward for row in net.steps) <= net.forward <= found.seconds
    assert {row.name for row in found.slowest(2)} < {row.name for row in net.steps}
    assert "second + norm + add + relu" in str(found)


def test_a_plan_that_is_cut_for_hooks_has_the_hook_as_a_step():
    x = convcore.rand(1, 3, 8, 8)
    fast, _ = optimized(Shortcut(), x)
    with fast.model.norm.register_forward_hook(lambda *args: None):
        expected = fast(x)
        with inspection.profile(fast) as found:
            assert convcore.equal(fast(x), expected)
    rows = found.rows.children[0].steps
    assert [row.type for row in rows].count("hook") == 1
    assert {name for row in rows for name in row.layers} == {
        *("stem", "first", "second", "norm", "add", "relu", "max_pool2d")
    }


def test_rules_of_simplification_keep_the_names_of_what_they_replace():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            x = self.conv(x) * 2
            return x * x.sigmoid()

    fast, _ = optimized(Net(), x := convcore.rand(1, 3, 8, 8))
    with inspection.profile(fast) as found:
        fast(x)
    rows = found.rows.children[0].steps
    assert [row.layers for row in rows] == [("conv", "mul"), ("sigmoid", "mul")]


@pytest.mark.parametrize("is_called_before", [True, False])
def test_a_profile_makes_the_plan_that_a_call_without_one_makes(is_called_before):
    net, x = Shortcut(), convcore.rand(1, 3, 8, 8)
    fast, plain = convcore.optimize_for_inference(net), convcore.optimize_for_inference(net)
    if is_called_before:
        fast(convcore.rand(1, 3, 6, 6))
    with inspection.profile(fast) as found:
        results = [fast(x), fast(x)]
    assert all(convcore.equal(one, plain(x)) for one in results) and repr(fast) == repr(plain)
    (net,) = found.rows.children
    assert [row.calls for row in net.children] == [2] * len(net.steps) and net.steps


def test_an_optimized_net_without_a_plan_has_a_row_for_each_layer_and_the_table_says_so():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x, y):
            return self.conv(x) + y

    x = convcore.rand(1, 3, 8, 8)
    fast = convcore.optimize_for_inference(Two(), x, x.new_ones(1))
    with inspection.profile(fast) as found:
        fast(x, x.new_ones(1))
    rows = named(found)
    assert rows["model.conv"].multiply_adds == 36 * 27 * 4 and rows["model.conv"].algorithms
    assert "were called one by one: it has no plan" in " ".join(str(found).split())


def test_a_profile_of_a_plan_ends_with_an_exception():
    x = convcore.rand(1, 3, 8, 8)
    fast, expected = optimized(Shortcut(), x)

    def fails(*args):
        raise KeyError("hook")

    handle = fast.model.relu.register_forward_hook(fails)
    with pytest.raises(KeyError), inspection.profile(fast) as found:
        fast(x)
    handle.remove()
    assert not fast._plans.profilers and not fast._plans.is_recording
    assert convcore.equal(fast(x), expected) and not found.rows.children[0].steps


def test_operations_beside_an_optimized_net_are_seen():
    x = convcore.rand(2, 1, 28, 28)
    whole = nn.Sequential(convcore.optimize_for_inference(models.lenet()), nn.Linear(10, 3))
    with inspection.profile(whole) as found:
        whole(x)
    names = [row.name for row in found.rows.all() if not row.is_step]
    assert names == ["", "", "0", "1", "1.t", "1.addmm"]
    assert named(found)["1"].multiply_adds == 60 and named(found)["0"].steps
    assert "step of the plan of 0" in str(found)


def test_a_profile_keeps_neither_the_net_nor_the_graph():
    net, x = Block(), convcore.rand(1, 3, 4, 4)
    with inspection.profile(net) as found:
        y = net(x)
        y.sum().backward()
    kept = [weakref.ref(thing) for thing in (net, net.conv.weight, net.conv.bias, y, y.grad_fn)]
    del net, x, y
    gc.collect()
    assert [ref() for ref in kept] == [None] * 5 and found.flops > 0


def test_profiles_do_not_grow():
    net, x = Block(), convcore.rand(1, 3, 4, 4)
    counts = []
    for number in range(30):
        str(profiled(net, x).rows)
        if number in (9, 29):
            gc.collect()
            counts.append(len(gc.get_objects()))
    assert counts[1] - counts[0] < 20


def test_misuse_is_answered():
    with pytest.raises(TypeError, match="model must be a Module, got str"):
        inspection.profile("net")
    found = inspection.profile(nn.ReLU())
    assert repr(found) == "<Profile, which has not ended>"
    with found:
        with pytest.raises(RuntimeError, match="still running"):
            found.slowest()
        with pytest.raises(RuntimeError, match="still running"):
            found.export_chrome_trace("trace.json")
    with pytest.raises(RuntimeError, match="runs once"):
        found.__enter__()


def test_copies_made_in_a_block_compute_with_their_own_weights():
    net, x = nn.Sequential(nn.Linear(2, 2)), convcore.ones(1, 2)
    with inspection.profile(net):
        copies = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
    for one in copies:
        with convcore.no_grad():
            one[0].weight.zero_()
            one[0].bias.fill_(3)
        assert one(x).tolist() == [[3, 3]] != net(x).tolist()
        assert copy.deepcopy(one)(x).tolist() == [[3, 3]]


def test_profiles_end_in_any_order():
    net, x = nn.Sequential(nn.Linear(2, 2)), convcore.ones(1, 2)
    first, second = inspection.profile(net), inspection.profile(net)
    first.__enter__()
    second.__enter__()
    net(x)
    first.__exit__()
    net(x)
    second.__exit__()
    assert [one.rows.children[0].calls for one in (first, second)] == [1, 2]
    assert "forward" not in vars(net) and "forward" not in vars(net[0])


def test_the_rest_of_the_time_is_told_and_names_are_whole():
    net = nn.Sequential(OrderedDict(a_rather_long_name_of_a_layer_that_is_slow=nn.Linear(64, 64)))
    with inspection.profile(net) as found:
        net(convcore.ones(8, 64)).sum().backward()
        time.sleep(0.05)
    (around,) = re.findall(r"backward, ([\d.]+) ms around them; \d+ thread", str(found))
    assert float(around) >= 50
    assert "Slowest        a_rather_long_name_of_a_layer_that_is_slow" in str(found)
    assert max(map(len, str(found).splitlines())) <= 100


@pytest.mark.parametrize(("waited", "is_told"), [(0.0, False), (1e6, True)])
def test_waiting_for_a_core_is_told(waited, is_told):
    with inspection.profile(nn.ReLU()) as found:
        convcore.ones(8).relu()
    assert found.waited >= 0
    found.waited = waited
    assert ("for a core that other programs used" in str(found)) == is_told
