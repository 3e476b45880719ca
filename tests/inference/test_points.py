"""Hooks, capture and patch in plans: what they see and change is what it is without a plan."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from function_net import Function

import convcore
from convcore import inspection, models, nn, optimize_for_inference
from convcore.inference.layers import PrepackedConv
from convcore.nn import functional as F


class Residual(nn.Module):
    """A block whose shortcut is read after a hook may have changed what the first layer reads."""

    def __init__(self, channels: int, activation: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = activation
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x
        return self.relu(out)


class Parts(nn.Module):
    """A module whose result is a tuple, and whose argument has a keyword."""

    def forward(self, x, scale=1.0):
        a, b = x.split(4, 1)
        return a * scale, F.relu(b)


NETS = {
    "residual": lambda: (
        *(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU6()),
        *(Residual(8, nn.ReLU()), Residual(8, nn.ReLU(inplace=True))),
        *(Residual(8, nn.LeakyReLU(0.1)), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
    ),
    "pooled": lambda: (
        *(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(8), nn.ReLU6()),
        *(nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4), nn.Sigmoid(), nn.Conv2d(4, 4, 3), nn.Dropout()),
    ),
    "parts": lambda: (
        nn.Conv2d(3, 8, 3),
        Function(lambda m, x: m.cat(m.parts(x, scale=2.0)), parts=Parts(), cat=Joined()),
        nn.Hardswish(),
    ),
    "twice": lambda: (
        nn.Conv2d(3, 4, 3),
        Function(
            lambda m, x: m.a(m.bn(m.a(x))) + m.a(x), a=nn.Conv2d(4, 4, 1), bn=nn.BatchNorm2d(4)
        ),
    ),
}


class Joined(nn.Module):
    def forward(self, parts):
        return convcore.cat(parts, 1)


def drawn(net: nn.Module) -> nn.Module:
    """Give batch norms statistics of their own, and some of their channels no weight at all."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
            with convcore.no_grad():
                module.weight.normal_()
                module.bias.normal_()
                module.weight[0], module.weight[1] = 0, 1e-40
    return net.eval()


@pytest.fixture(params=NETS)
def net(request):
    convcore.manual_seed(1)
    return drawn(nn.Sequential(*NETS[request.param]()))


@pytest.fixture
def residual():
    convcore.manual_seed(1)
    return drawn(nn.Sequential(*NETS["residual"]()))


@pytest.fixture(params=[False, True], ids=["contiguous", "channels_last"])
def x(request):
    made = convcore.randn(2, 3, 16, 16)
    return made.to(memory_format=convcore.channels_last) if request.param else made


def cut_plans(fast):
    """Return the plans for sets of points; None for sets that have none."""
    kinds = fast._plans._kinds.values()
    return [plan for kind in kinds if kind.watched for plan in kind.watched.plans.values()]


def is_planned(fast) -> bool:
    return bool(cut_plans(fast)) and None not in cut_plans(fast)


def assert_close(a, b):
    scale = max(float(b.abs().max()), 1e-30)
    assert a.shape == b.shape and float((a - b).abs().max()) <= 1e-5 * scale


def assert_all_close(a, b):
    assert list(a) == list(b)
    for name in a:
        assert_close(a[name], b[name])


def layers_of(fast):
    return {name: module for name, module in fast.model.named_modules() if name}


def test_captured_values_are_those_of_the_net(net, x):
    fast = optimize_for_inference(net, x)
    plain = fast(x)
    with convcore.no_grad(), inspection.capture(net) as expected:
        net(x)
    for _ in range(2):
        with inspection.capture(fast) as found:
            fast(x)
    assert_all_close(found, expected)
    assert is_planned(fast)
    with inspection.capture(fast.model) as found:
        fast(x)
    assert_all_close(found, expected)
    assert fast(x).equal(plain)


def test_each_layer_alone_is_captured(net, x):
    fast = optimize_for_inference(net, x)
    with convcore.no_grad(), inspection.capture(net) as expected:
        net(x)
    for name in expected:
        with inspection.capture(fast, name) as found:
            fast(x)
        assert_close(found[name], expected[name])
        assert is_planned(fast)


def hooked(net: nn.Module, told: list) -> list:
    """Have forward hooks and pre-hooks of all layers note what they see, and their order."""

    def copies(values):
        return [one.clone() for one in nn.modules.utils.nested_tensors(values)]

    handles = []
    for name, module in net.named_modules():
        if not name:
            continue

        def before(module, args, kwargs, name=name):
            told.append((f"-{name}", [*copies(args), *copies(kwargs)]))

        def after(module, args, kwargs, result, name=name):
            told.append((name, [*copies(args), *copies(result)]))

        handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(module.register_forward_hook(after, with_kwargs=True))
    return handles


def test_hooks_see_arguments_and_results_in_the_order_of_calls(net, x):
    fast, told, expected = optimize_for_inference(net, x), [], []
    hooked(net, expected)
    handles = hooked(fast.model, told)
    with convcore.no_grad():
        net(x)
    plain = fast(x)
    assert [name for name, _ in told] == [name for name, _ in expected]
    assert is_planned(fast)
    for (_, values), (_, others) in zip(told, expected, strict=True):
        for value, other in zip(values, others, strict=True):
            assert_close(value, other)
    for handle in handles:
        handle.remove()
    before = len(told)
    assert_close(fast(x), plain)
    assert len(told) == before


CHANGES = {
    "result": ("register_forward_hook", lambda module, args, result: result * 2 - 1),
    "result in place": ("register_forward_hook", lambda module, args, result: result.mul_(2)),
    "result of another layout": (
        "register_forward_hook",
        lambda module, args, result: (result * 2).transpose(2, 3).contiguous().transpose(2, 3),
    ),
    "arguments": ("register_forward_pre_hook", lambda module, args: (args[0] * 3,)),
    "argument alone": ("register_forward_pre_hook", lambda module, args: args[0] - 1),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "layer", ["0", "1", "2", "3.conv1", "3.relu", "3.bn2", "4", "4.conv1", "5.bn1"]
)
def test_hooks_change_values(residual, layer, change):
    x = convcore.randn(2, 3, 16, 16)
    fast = optimize_for_inference(residual, x)
    register, hook = CHANGES[change]
    with convcore.no_grad():
        plain = residual(x)
        with getattr(residual.get_submodule(layer), register)(hook):
            expected = residual(x.clone())
        with getattr(fast.model.get_submodule(layer), register)(hook):
            assert_close(fast(x.clone()), expected)
            assert_close(fast(x.clone()), expected)
            assert is_planned(fast)
    assert not expected.allclose(plain, atol=1e-3)
    assert_close(fast(x), plain)


@pytest.mark.parametrize("layer", ["0", "1", "2", "3.conv1", "3.relu", "3.add", "4.bn2", "5"])
def test_patches_change_values(residual, layer):
    x = convcore.randn(2, 3, 16, 16)
    fast = optimize_for_inference(residual, x)
    rules = {layer: inspection.scale(2)}
    with convcore.no_grad(), inspection.patch(residual, rules):
        expected = residual(x)
    with inspection.patch(fast, rules):
        assert_close(fast(x), expected)
    assert is_planned(fast)
    with inspection.patch(fast, {layer: inspection.stop}) as stopped:
        fast(x)
    with convcore.no_grad(), inspection.patch(residual, {layer: inspection.stop}) as other:
        residual(x)
    assert_close(stopped.stopped, other.stopped)


def test_what_a_module_passes_on_is_patched_once(residual, x):
    fast = optimize_for_inference(residual, x)
    rules = {"3*": inspection.scale(2), "*": inspection.scale(0.5)}
    with convcore.no_grad(), inspection.patch(residual, rules):
        expected = residual(x)
    with inspection.patch(fast, rules):
        assert_close(fast(x), expected)
    assert is_planned(fast)


def test_captures_and_patches_are_told_in_their_order(residual, x):
    fast, seen = optimize_for_inference(residual, x), []
    with (
        fast.model[1].register_forward_hook(lambda *call: seen.append(call[2])),
        inspection.capture(fast, "1") as before,
        inspection.patch(fast, {"1": inspection.scale(2)}),
        inspection.capture(fast, ["1", "2"]) as after,
    ):
        fast(x)
    assert is_planned(fast)
    assert seen[0].equal(before["1"]) and (before["1"] * 2).equal(after["1"])
    assert_close(after["2"], F.relu6(after["1"]))


def test_what_a_hook_keeps_is_not_overwritten(residual, x):
    fast, kept, copies = optimize_for_inference(residual, x), [], []

    def keep(module, args, result):
        kept.extend([*args, result])
        copies.extend([one.clone() for one in (*args, result)])

    for name in ("0", "2", "3.conv2", "3.bn2", "4"):
        fast.model.get_submodule(name).register_forward_hook(keep)
    for _ in range(3):
        fast(x * len(kept))
    assert is_planned(fast) and len(kept) == 30
    assert all(one.equal(other) for one, other in zip(kept, copies, strict=True))


def test_a_removed_hook_gives_the_plan_and_its_bits_back(residual, x):
    fast = optimize_for_inference(residual, x)
    plain = fast(x)
    (kind,) = fast._plans._kinds.values()
    _, plan, idle = kind.plans
    for layer in fast.model.modules():
        with layer.register_forward_hook(lambda *call: None):
            assert_close(fast(x), plain)
    assert kind.plans[1] is plan and idle == [plan]
    assert fast(x).equal(plain)
    packed = [one for one in fast.modules() if isinstance(one, PrepackedConv)]
    assert all(one._unfolding is None or one._unfolding.made is None for one in packed)
    assert len(kind.watched.plans) <= 2


def test_values_without_a_hook_between_stay_fused(residual, x):
    fast = optimize_for_inference(residual, x)
    fast.model[8].register_forward_hook(lambda *call: None)
    fast(x)
    (kind,) = fast._plans._kinds.values()
    ((_, cut, _),) = kind.watched.plans.values()
    assert len(cut._steps) == len(kind.plans[1]._steps) + 1


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        ("3.conv1", ["3.bn1", "3.relu"]),
        ("3.bn1", ["3.bn1", "3.relu"]),
        ("4.bn1", ["4.bn1", "4.relu"]),
        ("3.relu", ["3.relu"]),
        ("4.relu", []),
        ("8", []),
    ],
)
def test_layers_that_are_computed_alone_are_named(residual, layer, names):
    x = convcore.randn(2, 3, 16, 16)
    fast = optimize_for_inference(residual, x)
    with fast.model.get_submodule(layer).register_forward_hook(lambda *call: None):
        fast(x)
        assert fast.unfused == names
    fast(x)
    assert fast.unfused == []


def test_a_result_of_another_shape_ends_the_plan(residual, x):
    fast = optimize_for_inference(residual, x)

    def one_picture(module, args, result):
        return result[:1]

    plain = fast(x)
    with fast.model[7].register_forward_hook(one_picture):
        for _ in range(2):
            assert_close(fast(x), plain[:1])
        assert cut_plans(fast) == [None]
    assert fast(x).equal(plain)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_of_hooks_come_out_and_leave_nothing(residual, x, error):
    fast = optimize_for_inference(residual, x)
    plain, seen = fast(x), []

    def fail(module, args, result):
        seen.extend([weakref.ref(result._array), weakref.ref(args[0]._array)])
        raise error("of a hook")

    handle = fast.model[4].bn1.register_forward_hook(fail)
    for _ in range(2):
        try:
            fast(x)
        except error as raised:
            assert "of a hook" in str(raised)
        else:
            pytest.fail("no error")
    assert is_planned(fast)
    gc.collect()
    assert [one() for one in seen] == [None] * 4
    handle.remove()
    assert fast(x).equal(plain)


def test_hooks_that_plans_do_not_call_are_called(residual, x):
    fast, seen = optimize_for_inference(residual, x), []
    plain = fast(x)
    layer = fast.model[2]
    with layer.register_forward_hook(lambda *call: seen.append("always"), always_call=True):
        assert_close(fast(x), plain)
    handle = nn.modules.module.register_module_forward_hook(lambda *call: seen.append("global"))
    with handle:
        assert_close(fast(x), plain)
    with layer.register_full_backward_hook(lambda *call: None):
        assert_close(fast(x), plain)
    assert seen.count("always") == 1 and seen.count("global") > 10
    assert not cut_plans(fast) and fast(x).equal(plain)


def test_values_are_the_nets_without_a_plan_too(residual, x):
    fast = optimize_for_inference(residual, x)
    fast._plans.forbid()
    with convcore.no_grad(), inspection.capture(residual) as expected:
        residual(x)
    with inspection.capture(fast) as found:
        fast(x)
    assert_all_close(found, expected)
    told, others = [], []
    hooked(fast.model, told)
    fast(x)
    hooked(residual, others)
    with convcore.no_grad():
        residual(x)
    for (name, values), (other, expected_values) in zip(told, others, strict=True):
        assert name == other
        for a, b in zip(values, expected_values, strict=True):
            assert_close(a, b)


def test_a_hook_of_one_layer_unfuses_that_alone_without_a_plan(residual, x):
    fast = optimize_for_inference(residual, x)
    fast._plans.forbid()
    first, _, last = fast.model[:3]
    with last.register_forward_pre_hook(lambda *call: None):
        fast(x)
        assert first._unfolding.made is None  # the batch norm is still folded
    with first.register_forward_hook(lambda *call: None):
        fast(x)
        assert first._unfolding.made is not None


def test_threads_watch_at_once(residual, x):
    fast, found = optimize_for_inference(residual, x), {}
    plain, lock = fast(x), threading.Lock()

    def hook(module, args, result):
        with lock:
            found.setdefault(threading.get_ident(), []).append(result)

    fast.model[3].conv1.register_forward_hook(hook)
    xs = [x * k for k in range(1, 5)]
    with convcore.no_grad():
        expected = [residual[3].conv1(residual[:3](one)) for one in xs]
    results, together = {}, threading.Barrier(4)

    def calls(k):
        together.wait()
        for _ in range(5):
            results[threading.get_ident()] = k, fast(xs[k])
        together.wait()  # no other thread gets this one's number

    threads = [threading.Thread(target=calls, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for number, (k, _) in results.items():
        assert len(found[number]) == 5
        for value in found[number]:
            assert_close(value, expected[k])
    assert is_planned(fast) and plain.shape == (2, 5)


def test_an_optimised_net_inside_another_is_watched(residual, x):
    fast = optimize_for_inference(residual, x)
    whole = nn.Sequential(nn.Identity(), fast, nn.Linear(5, 2)).eval()
    plain = nn.Sequential(nn.Identity(), residual, whole[2]).eval()
    with convcore.no_grad():
        with inspection.capture(plain) as expected:
            plain(x)
        with inspection.capture(whole) as found:
            whole(x)
    assert_all_close(found, expected)
    assert is_planned(fast)


class Counted(nn.Module):
    """A net with a layer whose result is not differentiable, and does not depend on elements."""

    def __init__(self):
        super().__init__()
        self.conv, self.count = nn.Conv2d(3, 2, 3), Function(lambda m, x: convcore.ones(x.shape[1]))

    def forward(self, x):
        y = self.conv(x)
        return y + self.count(y).sum() * 0 if y.shape[0] > 2 else y * 2


def test_values_that_the_graph_does_not_show_are_captured_without_a_plan():
    net, x = Counted().eval(), convcore.randn(3, 3, 8, 8)
    fast = optimize_for_inference(net, x)
    with convcore.no_grad(), inspection.capture(net) as expected:
        net(x)
    with inspection.capture(fast) as found:
        fast(x)
    assert_all_close(found, expected)
    assert "count" in found


def test_layers_that_keep_state_or_refuse_to_run_twice_are_hooked_without_a_plan(x):
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x * 1

    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU(), Counting()).eval()
    fast, seen = optimize_for_inference(net, x), []
    fast.model[0].register_forward_hook(lambda *call: seen.append(call[2]))
    before = Counting.calls
    fast(x)
    with convcore.no_grad():
        assert_close(seen[0], net[0](x))
    assert Counting.calls == before + 1 and not cut_plans(fast)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_models_are_watched_in_plans(name):
    convcore.manual_seed(0)
    net, x = drawn(getattr(models, name)(num_classes=5)), convcore.randn(1, 3, 64, 64)
    fast = optimize_for_inference(net, x)
    with convcore.no_grad(), inspection.capture(net) as expected:
        net(x)
    with inspection.capture(fast) as found:
        fast(x)
    assert list(found) == list(expected) and is_planned(fast)
    for each in expected:
        scale = float(expected[each].abs().max())
        assert float((found[each] - expected[each]).abs().max()) <= 1e-4 * scale


def test_bfloat16_plans_show_float32(residual, x):
    fast = optimize_for_inference(residual, x, precision="bf16")
    with inspection.capture(fast) as found:
        y = fast(x)
    assert found["0"].dtype == convcore.float32
    assert np.abs((found["8"] - y).numpy()).max() == 0
