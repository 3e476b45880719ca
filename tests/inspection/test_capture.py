"""capture: what hooks of PyTorch see, by name; what is in place, shared, nested, interrupted."""

import copy
import gc
import itertools
import pickle
import threading
import tracemalloc

import numpy as np
import pytest

import convcore
from convcore import inspection, models, nn, overrides
from convcore.nn import functional as F

TENSORS = "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called", "_backward_hooks"


class Block(nn.Module):
    """A shared in-place ReLU, operators and functions."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.conv(x) - 0.1)
        y = y * 2 + x
        return self.relu(y).flatten(1)


class Several(nn.Module):
    """Tuples, dicts, and one cell called several times."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.cell = nn.RNNCell(4, 4)

    def forward(self, x):
        y, state = self.lstm(x)
        for step in y:
            h = self.cell(step)
        return {"last": h, "state": state}


def is_clean(net):
    watched = any(getattr(module, name) for module in net.modules() for name in TENSORS)
    return not watched and not overrides._state.watchers and not hasattr(F.relu, "__wrapped__")


@pytest.fixture(autouse=True)
def _unwrapped():
    overrides.uninstall()
    yield


def test_names_say_module_function_and_number():
    net = Block()
    with inspection.capture(net) as found:
        net(convcore.randn(1, 2, 4, 4)).sum().backward()
    assert list(found.output) == [
        *("conv", "sub", "relu", "mul", "add", "relu:2", "flatten", "output")
    ]
    assert list(found.grad) == list(found.output)  # also in the order of the calls
    assert repr(found.grad).startswith("conv: [1, 2, 4, 4]")
    assert is_clean(net)


def test_in_place_functions_do_not_change_what_is_shown():
    net, x = Block(), convcore.randn(1, 2, 4, 4)
    with inspection.capture(net) as found:
        net(x)
    conv = F.conv2d(x, net.conv.weight, net.conv.bias, padding=1)
    sums = F.relu(conv - 0.1) * 2 + x
    assert found["sub"].equal((conv - 0.1).detach())
    assert found["add"].equal(sums.detach()) and bool((found["add"] < 0).any())
    assert found["relu:2"].equal(F.relu(sums).detach())


@pytest.mark.parametrize("write", [lambda y: y.add_(1), lambda y: F.relu(y, True), "out", "item"])
def test_every_kind_of_write_is_seen(write):
    class Writes(nn.Module):
        def forward(self, x):
            y = x - 1
            view = y.view(-1)
            if write == "out":
                convcore.add(x.view(-1), 3, out=view)
            elif write == "item":
                view[0] = 7
            else:
                write(view)
            return y

    x = convcore.zeros(2, 2)
    with inspection.capture(Writes(), "sub") as found:
        result = found._calls._model(x)
    assert found["sub"].tolist() == [[-1, -1], [-1, -1]]
    assert not result.equal(found["sub"])


def test_an_unseen_change_is_an_error_and_no_lie():
    net = nn.Sequential(nn.Linear(2, 2))
    with inspection.capture(net) as found:
        result = net(convcore.ones(1, 2))
    assert found["0"]._array is result._array  # no copy
    with convcore.no_grad():
        result.zero_()
    with pytest.raises(RuntimeError, match="0 was changed in place after it was captured"):
        _ = found["0"]


def test_outputs_and_gradients_are_those_of_pytorch_hooks():
    torch = pytest.importorskip("torch")
    ours, theirs = models.resnet8().eval(), models.resnet8(library=torch).eval()
    state = {name: torch.from_numpy(value.numpy()) for name, value in ours.state_dict().items()}
    theirs.load_state_dict(state)
    outputs, grads = {}, {}

    def keep(name):
        def hook(module, args, output):
            number = sum(one.partition(":")[0] == name for one in outputs) + 1
            key = name if number == 1 else f"{name}:{number}"
            outputs[key] = output.detach().clone()
            output.register_hook(lambda grad: grads.__setitem__(key, grad.clone()))

        return hook

    for name, module in theirs.named_modules():
        module.register_forward_hook(keep(name or "output"))
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    channels = next(ours.parameters()).shape[1]
    x = np.ascontiguousarray(x[:, :channels])
    theirs(torch.from_numpy(x)).square().sum().backward()
    with inspection.capture(ours) as found:
        ours(convcore.from_numpy(x)).square().sum().backward()
    assert len(outputs) > 10 and set(outputs) <= set(found.output)
    for name, value in outputs.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-3, atol=1e-4)
    for name, value in grads.items():
        scale = float(value.abs().max())
        np.testing.assert_allclose(found.grad[name], value.numpy(), rtol=1e-3, atol=1e-4 * scale)


def test_nested_results_and_recurrent_calls_have_names():
    with inspection.capture(Several()) as found:
        found._calls._model(convcore.randn(3, 1, 3))
    cells = ["cell", "cell:2", "cell:3"]
    names = ["lstm[0]", "lstm[1][0]", "lstm[1][1]", *cells]
    names += ["output[last]", "output[state][0]", "output[state][1]"]
    assert [name for name in found.output if not name.startswith("unbind")] == names
    with pytest.raises(KeyError, match=r"is 'lstm\[0\]' meant"):
        _ = found["lstm"]


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("relu", {"relu", "relu:2"}),
        ("relu:2", {"relu:2"}),
        (nn.Conv2d, {"conv"}),
        (lambda name, maker: maker is not None and name.startswith("a"), {"add"}),
        (["mu?", nn.ReLU], {"mul", "relu", "relu:2"}),
        ("*l*", {"mul", "relu", "relu:2", "flatten"}),
    ],
)
def test_selectors(select, names):
    net = Block()
    with inspection.capture(net, select, of=("output",)) as found:
        net(convcore.randn(1, 2, 4, 4))
    assert set(found.output) == names and not found.grad


def test_unknown_names_are_answered_with_the_nearest():
    net = Block()
    with (
        pytest.raises(
            ValueError, match="select: no layer or call has the name 'rleu'; is 'relu' meant"
        ),
        inspection.capture(net, ["conv", "rleu"]) as found,
    ):
        net(convcore.randn(1, 2, 4, 4))
    with pytest.raises(KeyError, match="is 'conv' meant"):
        _ = found["cnov"]
    assert is_clean(net)


def test_a_module_that_was_not_called_is_said_to_be_that():
    net = nn.Sequential(nn.ReLU(), nn.Module())
    net.forward = net[0].forward
    with (
        pytest.raises(
            ValueError, match="no layer or call has the name '1', whose modules were not called"
        ),
        inspection.capture(net, "1"),
    ):
        net(convcore.ones(2))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"select": 3}, "select takes globs"),
        ({"of": ("input",)}, "of: 'input' is neither"),
        ({"stats": "median"}, "stats: 'median' is none of"),
        ({"limit": -1}, "limit must be"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises((TypeError, ValueError), match=text):
        inspection.capture(nn.ReLU(), **options)
    with pytest.raises(TypeError, match="model must be a Module"):
        inspection.capture(3)


@pytest.mark.parametrize("zeros", [slice(10), slice(-10, None), slice(8190, 8200)])
def test_statistics_are_numpys(zeros):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50_001).astype(np.float32) * 3 + 100
    x[zeros] = 0
    tensor = convcore.from_numpy(x)
    names = "mean", "std", "min", "max", "zeros", "nan", "histogram"
    with inspection.capture(nn.Identity(), stats=names) as found:
        found._calls._model(tensor)
    stats, wide = found["output"], x.astype(np.float64)
    assert stats["mean"] == pytest.approx(wide.mean(), rel=1e-6)
    assert stats["std"] == pytest.approx(wide.std(), rel=1e-5)
    assert (stats["min"], stats["max"], stats["nan"]) == (x.min(), x.max(), 0)
    assert stats["zeros"] == pytest.approx(10 / x.size)
    assert stats["histogram"][0] == np.histogram(x, 64)[0].tolist()


def test_statistics_of_odd_tensors():
    def of(values, **options):
        with inspection.capture(nn.Identity(), stats=True) as found:
            found._calls._model(convcore.tensor(values, **options))
        return found["output"]

    nan = of([1.0, float("nan"), 0.0, float("nan")])
    assert nan["nan"] == 2 and np.isnan(nan["min"]) and np.isnan(nan["mean"])
    assert nan["zeros"] == 0.25
    assert of([True, False])["mean"] == 0.5 and of([1, 3])["std"] == 1
    assert of([3 + 4j, 0])["max"] == 5
    assert np.isnan(of([])["mean"]) and of([float("inf")])["max"] == np.inf


def test_gradients_may_be_reduced_and_losses_may_use_what_is_captured():
    net, x = Block(), convcore.randn(1, 2, 4, 4)
    with inspection.capture(net, "conv", stats="mean") as found:
        net(x).sum().backward()
    with inspection.capture(net, "conv", detach=False) as kept:
        net(x).sum().backward(retain_graph=True)
    assert found.grad["conv"]["mean"] == pytest.approx(float(kept.grad["conv"].mean()), abs=1e-6)
    net.zero_grad()
    kept["conv"].square().mean().backward()
    assert net.conv.weight.grad.abs().sum() > 0


def test_values_stream_into_a_file(tmp_path):
    net, file = Block(), tmp_path / "seen.npz"
    x = convcore.randn(1, 2, 4, 4)
    with inspection.capture(net, ["conv", "relu"], file=file) as found:
        for _ in range(2):
            net(x).sum().backward()
        assert not file.exists()
    with np.load(file) as read:
        names = {
            f"{k}/{kind}/{n}" for k in (1, 2) for kind in ("output", "grad") for n in found.output
        }
        assert set(read.files) == names and len(names) == 12
        conv = F.conv2d(x, net.conv.weight, net.conv.bias, padding=1)
        np.testing.assert_array_equal(read[found["conv"]], conv.detach().numpy())
    with pytest.raises(ValueError, match=r"stream into .npz or .safetensors"):
        inspection.capture(net, file="seen.pt").__enter__()


def test_values_stream_into_safetensors_that_the_library_reads(tmp_path):
    library = pytest.importorskip("safetensors.numpy")

    class Mixed(nn.Module):
        def forward(self, x):
            return {"most": x.t().max(), "at": x.argmax(1), "positive": x > 0, "wide": x.double()}

    net, file, x = Mixed(), tmp_path / "seen.safetensors", convcore.randn(3, 5)
    with inspection.capture(net, file=file) as found:
        net(x)
        net(-x)
        assert not file.exists()
    read = library.load_file(file)
    assert list(tmp_path.iterdir()) == [file]
    assert set(found.output.values()) <= set(read) and len(read) == 2 * len(found.output)
    for number, given in ((1, x), (2, -x)):
        for name, value in net(given).items():
            np.testing.assert_array_equal(read[f"{number}/output/output[{name}]"], value.numpy())
    np.testing.assert_array_equal(convcore.load(file)["1/output/t"], x.t())
    with (
        pytest.raises(TypeError, match="have no complex128"),
        inspection.capture(nn.Identity(), file=file) as found,
    ):
        found._calls._model(convcore.ones(1, dtype=convcore.complex128))
    assert len(library.load_file(file)) == len(read)


def test_bfloat16_streams_where_the_format_has_it(tmp_path):
    pytest.importorskip("ml_dtypes")
    x, file = convcore.randn(2, 3).bfloat16(), tmp_path / "seen.safetensors"
    with inspection.capture(nn.Identity(), file=file) as found:
        found._calls._model(x)
    pytest.importorskip("safetensors")
    assert convcore.load(file)["1/output/output"].equal(x)
    file = tmp_path / "seen.npz"
    with (
        pytest.raises(TypeError, match=r"npz files have no bfloat16: stream into .safetensors"),
        inspection.capture(nn.Identity(), file=file) as found,
    ):
        found._calls._model(x)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_an_error_keeps_the_older_file(tmp_path, suffix):
    file = tmp_path / f"seen{suffix}"
    file.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), inspection.capture(nn.ReLU(), file=file) as found:
        found._calls._model(convcore.ones(2))
        raise ZeroDivisionError
    assert file.read_bytes() == b"old" and list(tmp_path.iterdir()) == [file]


def test_a_limit_leaves_out_what_passes_it():
    net = nn.Sequential(nn.Identity(), nn.Flatten(), nn.ReLU())
    with (
        pytest.warns(UserWarning, match="passes the limit of 60 bytes"),
        inspection.capture(net, limit=60, of=("output",)) as found,
    ):
        net(convcore.ones(1, 2, 3))
    assert list(found.output) == ["0", "1"]
    assert found.left_out == ["output of 2", "output of output"]


@pytest.mark.parametrize("make", [inspection.capture, inspection.patch])
def test_a_block_that_is_open_is_not_entered_again(make):
    net = Block()
    block = make(net)
    with block, pytest.raises(RuntimeError, match="open already"):
        block.__enter__()
    assert is_clean(net)
    net(convcore.randn(1, 2, 4, 4))


def test_a_refused_second_entry_keeps_the_stream(tmp_path):
    net, file = nn.ReLU(), tmp_path / "seen.npz"
    block = inspection.capture(net, file=file)
    with block:
        with pytest.raises(RuntimeError, match="open already"):
            block.__enter__()
        net(convcore.ones(2))
    with np.load(file) as read:
        assert read.files == ["1/output/output"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_stays_after_an_error(error):
    class Fails(nn.Module):
        def forward(self, x):
            if float(x.sum()) > 0:
                raise error
            return x + 1

    net = nn.Sequential(nn.ReLU(), Fails())
    with pytest.raises(error), inspection.capture(net):
        net(convcore.ones(1))
    assert is_clean(net)
    with inspection.capture(net) as found:  # names are right after an error inside, too
        with pytest.raises(error):
            net(convcore.ones(1))
        net(-convcore.ones(1))
    assert list(found.output) == ["0", "1.sum", "1.add", "1", "output"]


def test_gradient_hooks_go_with_the_block():
    net = Block()
    with inspection.capture(net) as found:
        result = net(convcore.randn(1, 2, 4, 4))
    result.sum().backward()
    assert not found.grad


def test_captures_may_be_nested_and_other_threads_are_left_alone():
    net, x = Block(), convcore.randn(1, 2, 4, 4)
    with inspection.capture(net) as outer:
        net(x)
        before = dict(outer.output)
        with inspection.capture(net, "relu") as inner:
            net(x)
        assert set(outer.output) == set(before) and set(inner.output) == {"relu", "relu:2"}
        thread = threading.Thread(target=net, args=(x,))
        thread.start()
        thread.join()
        assert outer.passes == 2
    assert is_clean(net)


def test_optimized_nets_are_called_by_plans_meanwhile():
    net = nn.Sequential(nn.Conv2d(1, 2, 3, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2)).eval()
    x = convcore.randn(1, 1, 4, 4)
    fast = convcore.inference.optimize_for_inference(net)
    with pytest.raises(RuntimeError, match="call it before"), inspection.capture(fast):
        pass
    expected = fast(x)
    with inspection.capture(fast) as found:
        fast(x)
    assert found["3"].allclose(expected) and "0" in found.output
    with inspection.capture(fast, [nn.Conv2d, nn.ReLU]) as found:
        fast(x)
    assert list(found) == ["0", "1"] and fast.unfused == []
    assert repr(found).startswith("output of\n0: [1, 2, 4, 4] torch.float32")
    assert found["0"].allclose(net[0](x))
    with inspection.capture(fast, "0", stats="min") as found:
        fast(x)
    assert found["0"]["min"] == pytest.approx(net[0](x).min().item(), abs=1e-6)
    assert fast.unfused == ["1"]
    assert "1 of 1 convolutions fused, 1 computed alone for hooks" in repr(fast)
    assert fast(x).equal(expected) and is_clean(fast)
    assert fast._plans.run(x) is not None


def test_many_captures_leave_no_memory():
    net, x = Block(), convcore.randn(1, 2, 4, 4)

    def captures(times):
        for number in range(times):
            try:
                with inspection.capture(net) as found:
                    net(x).sum().backward()
                    if number % 2:
                        raise ValueError
            except ValueError:
                pass
            del found
        gc.collect()

    sizes = []
    tracemalloc.start()
    try:
        for _ in range(5):
            captures(30)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # What leaks grows each time; a table that Python makes anew, larger, does once.
    assert min(after - before for before, after in itertools.pairwise(sizes)) < 10_000


class Halves(nn.Module):
    """Reads one half of what it splits."""

    def forward(self, x):
        first, _ = (x * 2).split(2)
        return first * 3


def test_what_nothing_reads_has_no_gradient():
    x = convcore.ones(4, requires_grad=True)
    with inspection.capture(Halves()) as found:
        found._calls._model(x).sum().backward()
    assert list(found.grad) == ["mul", "split[0]", "mul:2", "output"]
    assert x.grad.tolist() == [6, 6, 0, 0]


def test_copies_made_in_a_block_are_not_watched():
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), convcore.ones(1, 2)
    with inspection.capture(net) as found, inspection.patch(net, {"0": inspection.zero}):
        net(x)
        copies = copy.deepcopy(net), pickle.loads(pickle.dumps(net))
        for one in copies:
            assert convcore.equal(one[0](x), F.linear(x, net[0].weight, net[0].bias))
            one(x)
        assert found.passes == 1
    for one in copies:
        one(x)
    assert found.passes == 1


def test_the_limit_is_of_the_last_call_and_warned_of_once():
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), convcore.ones(1, 2)
    with pytest.warns(UserWarning, match="passes the limit") as warned:  # noqa: SIM117
        with inspection.capture(net, limit=20) as found:
            for _ in range(3):
                net(x)
    assert len(warned) == 1 and found.left_out == ["output of output"]


def test_interception_is_open_once_for_all_threads_and_names_what_it_wraps():
    plain = F.relu
    before = dict(vars(F)), dict(vars(convcore.Tensor))
    with inspection.capture(nn.ReLU()):
        assert F.relu is not plain and F.relu.__wrapped__ is plain
        for name in ("__name__", "__qualname__", "__doc__"):
            assert getattr(F.relu, name) == getattr(plain, name)
        assert pickle.loads(pickle.dumps(F.relu)) is F.relu
    assert (dict(vars(F)), dict(vars(convcore.Tensor))) == before


def test_a_function_that_is_replaced_in_a_block_stays():
    plain = F.relu
    try:
        with inspection.capture(nn.ReLU()):
            F.relu = replaced = lambda x, inplace=False: x
        assert F.relu is replaced and F.gelu.__module__ != "convcore.overrides"
        with inspection.capture(nn.ReLU()) as found:
            assert found._calls._model(convcore.tensor([-1.0])).tolist() == [-1]
        assert F.relu is replaced
    finally:
        F.relu = plain


def trained_like(net):
    """Give batch norms numbers that are not ones and zeros."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.5)
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return net.eval()


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_results_that_a_fused_function_never_wrote_are_those_of_the_layers_alone(name):
    net, x = trained_like(getattr(models, name)()), convcore.randn(1, 3, 32, 32)
    handles = [m.register_forward_hook(lambda *_: None) for m in net.modules()]
    with convcore.no_grad(), inspection.capture(net) as alone:
        expected = net(x)
    for handle in handles:
        handle.remove()
    with convcore.no_grad(), inspection.capture(net) as found:
        assert net(x).equal(expected)
        for parameter in net.parameters():  # whatever becomes of the net
            parameter.zero_()
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.fill_(7)
    assert list(found.output) == list(alone.output)
    assert "bn1" in str(found.output) or "features.0.1" in str(found.output)
    for one, value in alone.output.items():
        assert found[one].equal(value), one
        assert found[one] is found[one]


class Fused(models.blocks.Module):
    """A convolution, a batch norm and a ReLU, which run as the nets' do; the sum is changed."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.conv(x)
        z = models.blocks.normalized(self.bn, self.relu, y, x)
        if not convcore.is_grad_enabled():
            y.zero_()
        return z * 2


def test_recipes_are_of_values_as_they_were():
    net, x = trained_like(Fused()), convcore.randn(1, 1, 2, 2)
    for select in (None, ["bn", "add", "relu"]):
        with convcore.no_grad(), inspection.capture(net, select) as found:
            net(x)
        y = net.bn(net.conv(x))
        assert found["bn"].equal(y) and found["add"].equal(y + x)
        assert found["relu"].equal((y + x).relu())
    with convcore.no_grad(), inspection.capture(net) as found:
        net(x)
    x.add_(1)  # after the block nothing sees that
    assert found["bn"].equal(y)
    with pytest.raises(RuntimeError, match="add was changed in place"):
        found["add"]


def test_hooks_of_others_and_gradients_keep_layers_alone():
    net, x, seen = trained_like(Fused()), convcore.randn(1, 1, 2, 2), []
    net.relu.register_forward_pre_hook(lambda module, args: seen.append(args[0].clone()))
    with inspection.capture(net, of="output") as found:
        net(x)
    assert len(seen) == 1 and seen[0].equal(found["add"])
    net.relu._forward_pre_hooks.clear()
    with inspection.capture(net) as found:
        net(x).sum().backward()
    assert found.grad["bn"].equal((found["add"] > 0) * 2.0)


def test_what_is_captured_dies_with_the_capture():
    net, x = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU()).eval(), convcore.ones(1, 1, 90, 90)
    before = convcore.memory_stats()["allocated_bytes.current"]
    gc.disable()
    try:
        with convcore.no_grad(), inspection.capture(net) as found:
            net(x)
        assert convcore.memory_stats()["allocated_bytes.current"] > before
        del found
        assert convcore.memory_stats()["allocated_bytes.current"] == before
    finally:
        gc.enable()


def test_a_capture_is_a_mapping_of_outputs_and_shows_what_it_has():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    with inspection.capture(net) as found:
        assert not found and repr(found) == "nothing"
        net(convcore.ones(1, 1, 4, 4)).sum().backward()
    assert list(found) == list(found.keys()) == ["0", "1", "output"]
    assert len(found) == 3 and "1" in found and "2" not in found
    assert dict(found.items())["1"] is found["1"]
    shown = repr(found).splitlines()
    assert shown[:2] == ["output of", "0: [1, 2, 2, 2] torch.float32"] and "grad of" in shown


def test_a_gradient_without_a_backward_pass_says_so():
    net = nn.Sequential(nn.ReLU())
    with inspection.capture(net) as found:
        net(convcore.ones(2))
    with pytest.raises(KeyError, match=r"0; no gradient came: is backward\(\) called in the block"):
        found.grad["0"]


def test_classes_that_no_call_is_of_are_refused_unless_another_is():
    net = nn.Sequential(nn.ReLU())
    with (
        pytest.raises(ValueError, match="select: no call is of a Tanh or a Conv2d"),
        inspection.capture(net, (nn.Tanh, nn.Conv2d)),
    ):
        net(convcore.ones(2))
    with inspection.capture(net, (nn.Tanh, nn.ReLU)) as found:
        net(convcore.ones(2))
    assert list(found) == ["0"]


def test_modules_select_their_own_calls():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 2, 3))
    x = convcore.rand(1, 1, 6, 6)
    with inspection.capture(net, net[0]) as one:
        net(x)
    with inspection.capture(net, [net[2], "1"]) as several:
        net(x)
    assert list(one) == ["0"] and list(several) == ["1", "2"]
    with (
        pytest.raises(ValueError, match="does not call the ReLU that was given"),
        inspection.capture(net, nn.ReLU()),
    ):
        net(x)


def test_reading_before_the_net_was_called_says_so():
    with inspection.capture(nn.ReLU()) as found:
        pass
    with pytest.raises(KeyError, match="nothing was captured: is the net called in the block"):
        found["output"]


def test_outputs_that_were_not_asked_for_name_the_gradients():
    net = nn.Sequential(nn.Linear(2, 3))
    with inspection.capture(net, "0", of="grad") as found:
        net(convcore.ones(1, 2)).sum().backward()
    assert found.grad["0"].shape == (1, 3)
    with pytest.raises(KeyError, match=r"not captured with of='grad': \.grad has the gradients"):
        found["0"]
