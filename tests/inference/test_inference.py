"""optimize_for_inference: the same results, fused where nothing else sees what is between."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from function_net import Function

import convcore
from convcore import backends, models, nn
from convcore.engine.runtime import _isa
from convcore.inference import optimize_for_inference
from convcore.inference.layers import Folded, PrepackedConv


def with_statistics(net: nn.Module, rng: np.random.Generator) -> nn.Module:
    """Give batch norms statistics and parameters that are not those of the start."""
    for module in net.modules():
        norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
        if isinstance(module, norms) and module.track_running_stats:
            for name, low in (("running_mean", -1), ("running_var", 0.2)):
                drawn = rng.uniform(low, 2, module.num_features).astype("f4")
                setattr(module, name, convcore.from_numpy(drawn))
            if module.affine:
                with convcore.no_grad():
                    module.weight.copy_(
                        convcore.from_numpy(rng.standard_normal(module.num_features))
                    )
                    module.bias.copy_(convcore.from_numpy(rng.standard_normal(module.num_features)))
    return net.eval()


def image(rng: np.random.Generator, *shape: int) -> convcore.Tensor:
    return convcore.from_numpy(rng.standard_normal(shape).astype("f4"))


def assert_same(net: nn.Module, fast: nn.Module, *inputs: convcore.Tensor) -> None:
    with convcore.no_grad():
        expected, result = net(*inputs).numpy(), fast(*inputs).numpy()
    np.testing.assert_allclose(result, expected, atol=2e-5 * max(1, np.abs(expected).max()), rtol=0)


def kinds(fast: nn.Module) -> list[str]:
    return [type(module).__name__ for module in fast.modules() if not list(module.children())]


class Block(nn.Module):
    """A residual block whose one ReLU comes after a convolution and after an addition."""

    def __init__(self, channels: int, inplace: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=inplace)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x
        return self.relu(out)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_shared_relu_is_fused_where_it_follows_a_convolution(rng, inplace):
    net = with_statistics(nn.Sequential(Block(20, inplace), Block(20, inplace)), rng)
    x = image(rng, 2, 20, 9, 9)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    assert kinds(fast).count("PrepackedConv") == 4
    assert kinds(fast).count("Folded") == 6
    first = fast.model[0]
    assert isinstance(first.relu, Folded)
    assert first.conv1.activation == "relu"
    assert first.conv2.activation is None
    # Another size, another format, unbatched, and the first again.
    assert_same(net, fast, image(rng, 1, 20, 6, 7))
    assert_same(net, fast, image(rng, 3, 20, 8, 8).to(memory_format=convcore.channels_last))
    assert_same(net, fast, x)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.1)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("affine", [False, True])
def test_a_sequence_becomes_one_layer(rng, activation, bias, affine):
    conv = nn.Conv2d(6, 8, 3, stride=2, padding=1, groups=2, bias=bias)
    net = with_statistics(
        nn.Sequential(conv, nn.BatchNorm2d(8, affine=affine), copy.deepcopy(activation)), rng
    )
    x = image(rng, 2, 6, 9, 8)
    fast = optimize_for_inference(net)
    assert_same(net, fast, x)
    assert kinds(fast) == ["PrepackedConv", "Folded", "Folded"]


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rng, rank):
    conv, norm = (nn.Conv1d, nn.BatchNorm1d) if rank == 1 else (nn.Conv3d, nn.BatchNorm3d)
    net = with_statistics(nn.Sequential(conv(3, 5, 3, padding="same"), norm(5), nn.ReLU()), rng)
    x = image(rng, 2, 3, *[6] * rank)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    assert kinds(fast)[0] == "PrepackedConv"


class Taken(nn.Module):
    """A net in which something else takes the convolution's result, too."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.conv, self.bn, self.how = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), how

    def forward(self, x):
        y = self.conv(x)
        if self.how == "returned":
            return convcore.cat([y, self.bn(y)])
        if self.how == "changed":
            y += 1
        if self.how == "twice":
            return self.bn(self.bn(y))
        if self.how == "conv twice":
            y = self.conv(y)
        z = self.bn(y)
        return z + y if self.how == "added" else z


@pytest.mark.parametrize("how", ["returned", "added", "changed", "twice", "conv twice"])
def test_nothing_is_folded_that_somebody_else_sees(rng, how):
    net = with_statistics(Taken(how), rng)
    x = image(rng, 2, 4, 5, 5)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    assert isinstance(fast.model.bn, nn.BatchNorm2d)


def test_what_cannot_be_fused_stays(rng):
    net = with_statistics(
        nn.Sequential(
            nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
            nn.BatchNorm2d(4),
            nn.Conv2d(4, 6, 1),
            nn.BatchNorm2d(6, track_running_stats=False),
            nn.Conv2d(6, 3, 1),
            nn.LeakyReLU(-0.5),
            nn.Flatten(),
            nn.Linear(75, 2),
        ),
        rng,
    )
    x = image(rng, 2, 4, 5, 5)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    expected = "Conv2d BatchNorm2d PrepackedConv BatchNorm2d PrepackedConv LeakyReLU Flatten Linear"
    assert kinds(fast) == expected.split()


def test_the_model_stays_as_it_is(rng):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    before = {name: value.clone() for name, value in net.state_dict().items()}
    fast = optimize_for_inference(net, image(rng, 2, 3, 5, 5))
    assert net.training
    assert all(p.requires_grad for p in net.parameters())
    assert isinstance(net[1], nn.BatchNorm2d)
    for name, value in net.state_dict().items():
        assert convcore.equal(value, before[name])
    result = fast(image(rng, 1, 3, 6, 6))
    assert not result.requires_grad
    with pytest.raises(RuntimeError, match="an optimized model only runs"):
        fast.train()
    with pytest.raises(TypeError, match="'model' must be Module, got int"):
        optimize_for_inference(3)


def test_in_place_the_net_itself_is_taken(rng):
    net = with_statistics(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()), rng
    )
    x = image(rng, 2, 3, 5, 5)
    expected = net.eval()(x)
    fast = optimize_for_inference(net.train(), x, inplace=True)
    assert fast.model is net and not net.training
    assert kinds(fast) == ["PrepackedConv", "Folded", "Folded", "Flatten"]
    assert convcore.allclose(fast(x), expected, atol=1e-5)


def test_a_net_in_training_mode_is_optimised_in_evaluation_mode(rng):
    """Silently, as torch.jit.optimize_for_inference does; the docstring says it."""
    net = with_statistics(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.9)), rng
    )
    x = image(rng, 2, 3, 5, 5)
    fast = optimize_for_inference(net.train(), x)
    assert net.training
    assert convcore.allclose(fast(x), net.eval()(x), atol=1e-5)
    assert not any(module.training for module in optimize_for_inference(net).modules())


def test_hooks_leave_no_trace(rng):
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding_mode="circular", padding=1), nn.BatchNorm2d(4))
    fast = optimize_for_inference(net, image(rng, 2, 3, 5, 5))
    for module in fast.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_errors_are_told_in_words(rng):
    fast = optimize_for_inference(nn.Sequential(nn.Conv2d(3, 4, 3)), image(rng, 2, 3, 5, 5))
    assert isinstance(fast.model[0], PrepackedConv)
    with pytest.raises(RuntimeError, match="channels"):
        fast(image(rng, 2, 4, 5, 5))
    with pytest.raises(TypeError, match="must be Tensor"):
        fast(np.zeros((2, 3, 5, 5)))


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize(
    "convert",
    [
        lambda fast: fast.half(),
        lambda fast: fast.double(),
        lambda fast: fast.bfloat16(),
        lambda fast: fast.to(convcore.float64),
        lambda fast: fast.type(convcore.float64),
        lambda fast: fast.to("meta"),
        lambda fast: fast.to_empty(device="cpu"),
        lambda fast: nn.Sequential(fast).double(),
    ],
)
def test_conversions_are_refused_and_change_nothing(rng, called, convert):
    x = image(rng, 2, 3, 5, 5)
    net = nn.Sequential(nn.Linear(5, 5), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1))
    fast = optimize_for_inference(with_statistics(net, rng), *[x] * called)
    with pytest.raises(RuntimeError, match="Convert the model that it was made of"):
        convert(fast)
    assert_same(net, fast, x)
    assert_same(net, fast, image(rng, 1, 3, 5, 5))


def test_layers_that_were_fused_in_place_are_not_converted(rng):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    optimize_for_inference(net, image(rng, 2, 3, 5, 5), inplace=True)
    with pytest.raises(RuntimeError, match="Convert the model that it was made of"):
        net.double()


def test_conversions_to_what_is_there_are_taken(rng):
    x = image(rng, 2, 3, 5, 5)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 2))
    fast = optimize_for_inference(with_statistics(net, rng), x)
    assert fast.float().cpu().to("cpu").to(convcore.float32) is fast
    assert_same(net, fast.to(memory_format=convcore.channels_last), x)


def conv() -> nn.Module:
    return nn.Conv2d(4, 4, 3, padding=1)


def unused(m, x):
    y = m.a(x)
    m.n(y)  # nobody takes it: an auxiliary head, perhaps
    return y.sigmoid()


@pytest.mark.parametrize(
    ("forward", "layers"),
    [
        (unused, {"n": nn.BatchNorm2d(4)}),
        # One activation for several places: of the input, and of what was activated already.
        (lambda m, x: m.r(m.a(m.r(x))), {"r": nn.ReLU()}),
        (lambda m, x: m.r(m.l(m.a(m.r(m.b(x))))), {"r": nn.ReLU(), "l": nn.LeakyReLU(0.3)}),
        (lambda m, x: m.r(m.l(m.a(m.r(m.b(x))))), {"r": nn.ReLU6(), "l": nn.ReLU()}),
        (lambda m, x: m.l(m.l(m.a(x))), {"l": nn.LeakyReLU(0.3)}),
    ],
)
def test_layers_called_elsewhere_are_fused_where_they_follow(rng, forward, layers):
    net = with_statistics(Function(forward, a=conv(), b=conv(), **layers), rng)
    x = image(rng, 2, 4, 6, 6) * 20
    fast = optimize_for_inference(net, x)
    assert isinstance(fast.model.a, PrepackedConv)
    assert_same(net, fast, x)
    assert_same(net, fast, -x)


def test_a_layer_of_two_names_is_fused_under_both(rng):
    layer = conv()
    net = with_statistics(
        Function(lambda m, x: m.n(m.b(x)), a=layer, b=layer, n=nn.BatchNorm2d(4)), rng
    )
    x = image(rng, 2, 4, 6, 6)
    fast = optimize_for_inference(net, x)
    assert isinstance(fast.model.b, PrepackedConv)
    assert fast.model.a is fast.model.b
    assert_same(net, fast, x)


class Standardized(nn.Conv2d):
    """A convolution that does something else than its class."""

    def forward(self, x):
        return super().forward(x) * 2


class Doubled(nn.ReLU):
    """An activation that does something else than its class."""

    def forward(self, x):
        return super().forward(x) * 2


def test_layers_of_ones_own_class_stay(rng):
    net = nn.Sequential(conv(), Doubled(), Standardized(4, 4, 3), nn.ReLU()).eval()
    x = image(rng, 2, 4, 6, 6)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    assert kinds(fast) == ["PrepackedConv", "Doubled", "Standardized", "ReLU"]


def kept_in_a_list(layer: nn.Module) -> nn.Module:
    net = Function(lambda m, x: m.n(m.layers[0](x)), a=layer, n=nn.BatchNorm2d(4))
    net.layers = [layer]
    return net


@pytest.mark.parametrize(
    "make",
    [
        lambda: kept_in_a_list(conv()),
        lambda: Function(
            lambda m, x: m.n(m.a(x.to(m.a.weight.dtype))), a=conv(), n=nn.BatchNorm2d(4)
        ),
        lambda: Function(lambda m, x: m.a(x.to(next(m.parameters()).dtype)), a=conv()),
        lambda: Function(
            lambda m, x: (lambda y: m.n(y) * (y > 0))(m.a(x)), a=conv(), n=nn.BatchNorm2d(4)
        ),
    ],
)
@pytest.mark.parametrize("warm_up", [0, 1])
def test_a_net_that_would_notice_stays(rng, make, warm_up):
    net = with_statistics(make(), rng)
    x = image(rng, 2, 4, 6, 6)
    fast = optimize_for_inference(net, x * warm_up)
    assert isinstance(fast.model.a, nn.Conv2d)
    assert_same(net, fast, x)
    assert_same(net, fast, -x)


def test_inputs_are_changed_as_often_as_the_net_does(rng):
    net = Function(lambda m, x: m.a(x.add_(1)), a=conv()).eval()
    a = image(rng, 2, 4, 6, 6)
    b = a.clone()
    fast = optimize_for_inference(net)
    with convcore.no_grad():
        expected = net(a)
    assert convcore.allclose(fast(b), expected, atol=1e-5)
    assert convcore.equal(a, b)


@pytest.mark.parametrize("dtype", [convcore.float16, convcore.bfloat16])
def test_dtypes_of_two_bytes_stay(rng, dtype):
    net = nn.Sequential(conv(), nn.ReLU()).to(dtype).eval()
    x = image(rng, 2, 4, 6, 6).to(dtype)
    fast = optimize_for_inference(net, x)
    assert kinds(fast) == ["Conv2d", "ReLU"]
    with convcore.no_grad():
        assert convcore.equal(fast(x), net(x))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda fast: pickle.loads(pickle.dumps(fast))])
@pytest.mark.parametrize("channels", [1, 4])
def test_copies_run_for_themselves(rng, copied, channels):
    net = nn.Sequential(nn.Conv2d(channels, 4, 3), Block(4, True), nn.Flatten(), nn.Linear(64, 3))
    net = with_statistics(net, rng)
    x = image(rng, 2, channels, 6, 6)
    fast = optimize_for_inference(net, x)
    assert_same(net, fast, x)
    other = copied(fast)
    assert kinds(other) == kinds(fast)
    assert_same(net, other, x)
    assert other.model[0](x).is_contiguous(memory_format=convcore.channels_last)
    with convcore.no_grad():
        other.model[3].bias += 1
    assert_same(net, fast, x)


def test_an_optimised_net_is_part_of_another(rng):
    inner = nn.Sequential(conv(), nn.ReLU()).eval()
    outer = lambda part: Function(lambda m, x: m.c(m.b(m.a(x))), a=conv(), b=part, c=conv())  # noqa: E731
    net, x = outer(inner).eval(), image(rng, 2, 4, 6, 6)
    nested = outer(optimize_for_inference(inner)).eval()
    nested.a, nested.c = net.a, net.c
    fast = optimize_for_inference(nested, x)
    for one in (x, -x, x):
        assert_same(net, fast, one)


class Slope(nn.Module):
    """A net whose result is a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Tanh())

    def forward(self, x):
        with convcore.enable_grad():
            x = x.detach().requires_grad_()
            return convcore.autograd.grad(self.net(x).sum(), x)[0]


def test_a_net_that_computes_gradients_stays(rng):
    net = with_statistics(Slope(), rng)
    assert_same(net, optimize_for_inference(net), image(rng, 1, 3, 6, 6))


def test_the_first_call_keeps_no_activations(rng):
    """They are 20 times 2 MB, of which an inference holds two."""
    layers = [nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.SiLU()) for _ in range(20)]
    fast = optimize_for_inference(nn.Sequential(*layers))
    x = image(rng, 1, 8, 256, 256)
    convcore.empty_cache()
    convcore.reset_peak_memory_stats()
    before = convcore.memory_stats()
    with convcore.no_grad():
        fast(x)
    after = convcore.memory_stats()
    peak = after["allocated_bytes.peak"] - before["allocated_bytes.current"]
    assert peak < 12 * x.nbytes
    assert after["reserved_bytes.current"] - after["allocated_bytes.current"] <= x.nbytes * 9 // 8


@pytest.fixture
def pairs(monkeypatch):
    """Have products in bfloat16 taken where they are emulated, too."""
    monkeypatch.setattr(_isa, "bfloat16_is_emulated", lambda: False)


def test_bfloat16_precision_rounds_products_and_says_what_that_cost(pairs):
    convcore.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    ).eval()  # fmt: skip
    x = convcore.randn(4, 3, 33, 33)
    exact = optimize_for_inference(net)
    rounded = optimize_for_inference(net, precision="bf16")
    assert rounded.difference is None
    scale = exact(x).abs().max()
    apart = float((rounded(x) - exact(x)).abs().max() / scale)
    assert 1e-4 < apart < 2e-2 and exact.difference is None
    assert rounded.difference == pytest.approx(apart, rel=1e-2)
    assert all(kind is not None for kind in rounded._plans._kinds.values())
    # As under the switches, which leave the other one's calls alone.
    with backends.conv.flags(fp32_precision="bf16"):
        assert (exact(x) - rounded(x)).abs().max() < 1e-4 * scale
    assert float((exact(x) - net(x)).abs().max() / scale) < 1e-5


def test_bfloat16_precision_survives_a_copy_and_other_precisions_are_refused(pairs):
    net = nn.Sequential(nn.Conv2d(32, 32, 1), nn.ReLU())
    x = convcore.randn(2, 32, 20, 20)
    rounded = optimize_for_inference(net, x, precision="bf16")
    again = pickle.loads(pickle.dumps(rounded))
    assert (again(x) == rounded(x)).all() and again.difference == rounded.difference
    with pytest.raises(ValueError, match="precision must be None or 'bf16', got 'int8'"):
        optimize_for_inference(net, precision="int8")


def test_fused_layers_follow_the_selection_of_the_call_from_the_first_thread_on(pairs):
    net = nn.Sequential(nn.Conv2d(32, 64, 1), nn.BatchNorm2d(64), nn.ReLU()).eval()
    x = convcore.randn(2, 32, 20, 20)
    convcore.exp(x)  # NumPy's warnings are off in a context of their own from here on
    backends.conv.fp32_precision = "bf16"
    try:
        fast = optimize_for_inference(net, x)
        assert isinstance(fast.model[0], PrepackedConv)
        with backends.conv.flags(fp32_precision="ieee"):
            exact = fast(x)
        rounded = fast(x)
    finally:
        backends.conv.fp32_precision = "none"
    apart = float((rounded - exact).abs().max() / exact.abs().max())
    assert 1e-4 < apart < 2e-2 and (exact - net(x)).abs().max() < 1e-4


@pytest.mark.parametrize("example", [True, False])
def test_nets_are_fused_inside_inference_mode_too(example):
    net, x = models.resnet8().eval(), convcore.rand(2, 3, 32, 32)
    expected = net(x)
    fast = optimize_for_inference(net, *[x] * example)
    with convcore.inference_mode():
        convcore.testing.assert_close(fast(x), expected, rtol=1e-4, atol=1e-5)
        inside = convcore.rand(1, 3, 16, 16)  # an inference tensor, of another kind
        convcore.testing.assert_close(fast(inside), net(inside), rtol=1e-4, atol=1e-5)
    assert any(isinstance(layer, PrepackedConv) for layer in fast.modules())
    assert fast._plans._kinds and all(fast._plans._kinds.values())


def test_a_net_that_was_made_inside_inference_mode_is_fused():
    with convcore.inference_mode():
        net, x = models.resnet8().eval(), convcore.rand(1, 3, 16, 16)
        fast = optimize_for_inference(net, x)
        convcore.testing.assert_close(fast(x), net(x), rtol=1e-4, atol=1e-5)
    assert "9 of 9 convolutions fused" in repr(fast)


def test_a_shared_activation_is_applied_once_inside_inference_mode(rng):
    act, conv = nn.LeakyReLU(0.5), nn.Conv2d(1, 2, 3)
    hook = conv.register_forward_hook(lambda *_: None)  # layers are called one by one
    net = Function(lambda self, x: self.act(self.conv(self.act(x))), act=act, conv=conv).eval()
    x = image(rng, 1, 1, 5, 5)
    fast = optimize_for_inference(net, x)
    handle = fast.model.register_forward_hook(lambda *_: None)
    with convcore.inference_mode():
        convcore.testing.assert_close(fast(x), net(x))
    hook.remove()
    handle.remove()


@pytest.mark.parametrize(
    "bad", [lambda x: x.byte(), lambda x: x.half(), lambda x: x.double(), lambda x: x.mT[0, 0]]
)
def test_inputs_that_do_not_fit_get_the_nets_own_error(bad):
    net, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval(), convcore.rand(1, 3, 8, 8)
    fast = optimize_for_inference(net, x)
    with pytest.raises(RuntimeError) as own:
        net(bad(x))
    with pytest.raises(RuntimeError) as found:
        fast(bad(x))
    assert str(found.value) == str(own.value)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("kind", ["spectral_norm", "weight_norm", "prune"])
def test_nets_that_keep_computed_tensors_are_copied(kind):
    conv = nn.Conv2d(3, 4, 3)
    if kind == "prune":
        nn.utils.prune.l1_unstructured(conv, "weight", 0.5)
    else:
        getattr(nn.utils, kind)(conv)
    net, x = nn.Sequential(conv, nn.ReLU()), convcore.rand(1, 3, 8, 8)
    net(x)
    weight = conv.weight
    fast = optimize_for_inference(net, x)
    assert conv.weight is weight and not weight.is_leaf
    convcore.testing.assert_close(fast(x), net.eval()(x))


def test_it_tells_whether_layers_were_fused():
    class Frozen(nn.Sequential):
        @convcore.no_grad()
        def forward(self, input):
            return super().forward(input)

    x = convcore.rand(1, 3, 8, 8)
    fast = optimize_for_inference(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))
    assert "at the first call" in repr(fast)
    fast(x)
    assert "1 of 1 convolutions fused" in repr(fast)
    fast = optimize_for_inference(Frozen(nn.Conv2d(3, 4, 3), nn.ReLU()), x)
    assert "0 of 1 convolutions fused" in repr(fast)


def test_autocast_does_not_reach_an_optimised_net():
    net, x = models.resnet8().eval(), convcore.rand(1, 3, 16, 16)
    fast = optimize_for_inference(net)
    with convcore.autocast("cpu"):
        assert fast(x).dtype is convcore.float32
        assert optimize_for_inference(net, x)(x).dtype is convcore.float32
    expected = fast(x)
    with convcore.autocast("cpu"):
        assert fast(x).equal(expected)


def test_one_picture_is_told_the_axis_of_the_batch():
    net, x = models.resnet8().eval(), convcore.rand(1, 3, 16, 16)
    fast = optimize_for_inference(net, x)
    for one in (net, fast):
        with pytest.raises(ValueError, match="expected 4D input") as caught:
            one(x[0])
        assert "x.unsqueeze(0)" in str(caught.value)


class Sampling(nn.Module):
    """A convolution, and a sample around each of its means, as in a variational autoencoder."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x):
        mean = self.conv(x).mean((2, 3))
        return mean + convcore.randn_like(mean)


def test_a_net_that_draws_numbers_is_fused_and_draws_the_same():
    net, x = Sampling().eval(), convcore.rand(3, 1, 8, 8)
    fast = optimize_for_inference(net)
    for _ in range(2):
        convcore.manual_seed(0)
        expected = [net(x) for _ in range(2)]
        convcore.manual_seed(0)
        for one in expected:
            assert convcore.allclose(fast(x), one, atol=1e-5)
    assert "1 of 1 convolutions fused" in repr(fast)
    assert not convcore.equal(fast(x), fast(x))
