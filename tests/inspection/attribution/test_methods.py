"""Attribution methods against their definitions, and what holds for all of them."""

import functools
import gc
import weakref

import numpy as np
import pytest
from attribution_nets import Shuffle, nets, settled

import convcore
from convcore import nn
from convcore.inspection import attribution
from convcore.nn import functional as F

METHODS = {
    "saliency": attribution.saliency,
    "input_x_gradient": attribution.input_x_gradient,
    "smooth_grad": lambda *args, **o: attribution.smooth_grad(
        *args, n_samples=2, generator=convcore.Generator().manual_seed(0), **o
    ),
    "integrated_gradients": lambda *args, **o: attribution.integrated_gradients(
        *args, n_steps=4, **o
    ),
    "guided_backprop": attribution.guided_backprop,
    "deconvolution": attribution.deconvolution,
    "grad_cam": lambda net, x, *args, **o: attribution.grad_cam(net, x, "stem", *args, **o),
    "grad_cam_plus_plus": lambda net, x, *args, **o: attribution.grad_cam_plus_plus(
        net, x, "stem", *args, **o
    ),
    "layer_cam": lambda net, x, *args, **o: attribution.layer_cam(net, x, "stem", *args, **o),
    "occlusion": lambda *args, **o: attribution.occlusion(*args, window=4, **o),
    "deep_lift": attribution.deep_lift,
    "lrp": attribution.lrp,
}
WITH_GRADIENTS = {name: m for name, m in METHODS.items() if name != "occlusion"}


def images(n=3, seed=1):
    generator = convcore.Generator().manual_seed(seed)
    return convcore.randn(n, 3, 8, 8, dtype=convcore.float64, generator=generator)


def over(cases):
    return pytest.mark.parametrize("method", cases.values(), ids=cases)


@pytest.fixture
def net():
    convcore.manual_seed(3)
    return settled(Shuffle())


# All methods


@over(METHODS)
def test_modes_gradients_hooks_and_input_stay(method, net):
    net.train()
    net.norm.eval()
    modes = [module.training for module in net.modules()]
    x = images()
    before = x.clone()
    method(net, x, 0)
    assert [module.training for module in net.modules()] == modes
    assert all(parameter.grad is None for parameter in net.parameters())
    assert not any(module._forward_hooks for module in net.modules())
    assert convcore.equal(x, before) and not x.requires_grad and x.grad is None


@over(METHODS)
def test_the_memory_format_of_the_input_changes_nothing(method):
    convcore.manual_seed(3)
    net = nn.Sequential()
    net.stem = nn.Conv2d(3, 4, 3, padding=1)
    net.rest = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3))
    x = images()
    expected = method(net.double(), x, 0)
    found = method(net, x.to(memory_format=convcore.channels_last), 0)
    assert convcore.allclose(found, expected, rtol=1e-9, atol=1e-12)


@over(METHODS)
def test_an_error_within_leaves_no_hook_and_no_observer(method, net):
    from convcore.autograd.observation import observers

    net.train()
    net.fc.forward = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError):
        method(net, images(), 0)
    assert not any(module._forward_hooks for module in net.modules())
    assert net.training and not observers and convcore.is_grad_enabled()


@over(METHODS)
def test_parts_give_what_the_whole_gives(method, net):
    whole = method(net, images(), [0, 1, 2])
    if method is not METHODS["smooth_grad"]:  # whose noise depends on the parts
        small = method(net, images(), [0, 1, 2], memory=1)
        np.testing.assert_allclose(small.numpy(), whole.numpy(), rtol=1e-9, atol=1e-12)


@over(METHODS)
def test_each_image_has_its_class(method, net):
    if method is METHODS["smooth_grad"]:
        method = lambda net, x, t: attribution.smooth_grad(net, x, t, noise=0.0, n_samples=1)  # noqa: E731
    best = net(images()).argmax(1)
    alone = convcore.cat([method(net, images()[n : n + 1], int(best[n])) for n in range(3)])
    for target in (None, best, best.tolist(), lambda y: y.amax(1)):
        if callable(target) and method in (attribution.deep_lift, attribution.lrp):
            target = lambda y: y[convcore.arange(len(y)), best[: len(y)]]  # noqa: E731
        found = method(net, images(), target)
        np.testing.assert_allclose(found.numpy(), alone.numpy(), rtol=1e-9, atol=1e-12)


@over(METHODS)
def test_hooks_of_ones_own_are_no_obstacle(method, net):
    expected = method(net, images(), 0)
    with net.point.register_full_backward_hook(lambda *_: None):
        np.testing.assert_allclose(method(net, images(), 0).numpy(), expected.numpy(), rtol=1e-12)


@over(METHODS)
def test_a_net_without_parameters_that_train(method, net):
    expected = method(net, images(), 0)
    net.requires_grad_(False)
    with convcore.no_grad():
        assert convcore.equal(method(net, images(), 0), expected)
    with convcore.inference_mode():
        found = method(net, images(), 0)
    assert convcore.equal(found, expected)


@over(METHODS)
def test_nothing_is_kept(method):
    model, x = settled(Shuffle()), images()
    method(model, x, 0)
    kept = [weakref.ref(thing) for thing in (model, x)]
    gc.disable()  # no cycle holds them, either
    try:
        before = convcore.memory_stats()["allocated_bytes.current"]
        method(model, x, 0)
        assert convcore.memory_stats()["allocated_bytes.current"] == before
    finally:
        gc.enable()
    del model, x
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


@over(WITH_GRADIENTS)
def test_an_optimized_net_is_refused(method, net):
    fast = convcore.optimize_for_inference(net.float())
    if method in [METHODS[n] for n in ("grad_cam", "grad_cam_plus_plus", "layer_cam")]:
        cam = {k: getattr(attribution, k) for k in METHODS if "cam" in k}
        method = lambda net, x, t: next(iter(cam.values()))(net, x, "model.stem", t)  # noqa: E731
    with pytest.raises(RuntimeError, match="optimize_for_inference"):
        method(fast, images().float(), 0)


@over(WITH_GRADIENTS)
def test_a_net_that_detaches_is_refused(method, net):
    class Detached(Shuffle):
        def forward(self, x):
            return super().forward(x).detach()

    with pytest.raises(RuntimeError, match="detaches"):
        method(Detached().double(), images(), 0)


@over(METHODS)
def test_autocast_is_off_within(method, net):
    pytest.importorskip("ml_dtypes")
    net, x = net.float(), images(2).float()
    plain = method(net, x, 1)
    with convcore.autocast("cpu"):
        assert net(x).dtype == convcore.bfloat16
        assert method(net, x, 1).equal(plain)


@over(METHODS)
def test_a_net_in_bfloat16_is_refused(method, net):
    pytest.importorskip("ml_dtypes")
    with pytest.raises(TypeError, match=r"got torch.bfloat16: explain model.float\(\)"):
        method(net.bfloat16(), images().bfloat16(), 0)


@over(METHODS)
def test_bad_arguments_are_named(method, net):
    with pytest.raises(TypeError, match="model must be a Module, got int"):
        method(3, images(), 0)
    with pytest.raises(TypeError, match="input must be a Tensor"):
        method(net, images().numpy(), 0)
    with pytest.raises(TypeError, match="floating-point"):
        method(net, convcore.ones(1, 3, 8, 8, dtype=convcore.int64), 0)
    with pytest.raises(ValueError, match="one class an image: 3, got 2"):
        method(net, images(), [0, 1])
    with pytest.raises(ValueError, match="below 4, the number of classes, got 7"):
        method(net, images(), 7)
    with pytest.raises(TypeError, match="target must be"):
        method(net, images(), 0.5)
    with pytest.raises(ValueError, match="one score an image"):
        method(net, images(), lambda y: y)
    with pytest.raises(ValueError, match="memory must be a positive"):
        method(net, images(), 0, memory=0)


# One by one


def test_saliency_is_the_absolute_gradient(net):
    x = images().requires_grad_()
    net(x)[:, 2].sum().backward()
    assert convcore.allclose(attribution.saliency(net, x, 2), x.grad.abs())
    assert convcore.allclose(attribution.saliency(net, x, 2, absolute=False), x.grad)
    assert convcore.allclose(attribution.input_x_gradient(net, x, 2), x.grad * x.detach())


def test_smooth_grad_without_noise_is_the_gradient(net):
    found = attribution.smooth_grad(net, images(), 2, noise=0.0, n_samples=3)
    assert convcore.allclose(found, attribution.saliency(net, images(), 2, absolute=False))


def test_smooth_grad_has_the_noise_it_says():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 1)).double()
    seen = []
    net[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].numpy(force=True).copy()))
    x = images(1)
    attribution.smooth_grad(net, x, 0, noise=0.3, n_samples=200)
    spread = np.std(np.concatenate(seen[-200:]) - x.numpy())
    assert spread == pytest.approx(0.3 * float(x.max() - x.min()), rel=0.02)


def test_occlusion_by_definition(net):
    x, score = images(1), lambda x: float(net(x)[0, 1])
    expected, counts = np.zeros((3, 8, 8)), np.zeros((3, 8, 8))
    for top in (0, 2, 4, 5):
        for left in (0, 2, 4, 5):
            covered = x.clone()
            covered[:, :, top : top + 3, left : left + 3] = 0.5
            expected[:, top : top + 3, left : left + 3] += score(x) - score(covered)
            counts[:, top : top + 3, left : left + 3] += 1
    found = attribution.occlusion(net, x, 1, window=3, stride=2, baseline=0.5)
    np.testing.assert_allclose(found[0].numpy(), expected / counts, rtol=1e-9, atol=1e-12)


def test_occlusion_of_single_channels(net):
    x = images(1)
    found = attribution.occlusion(net, x, 1, window=(1, 8, 8))
    covered = x.clone()
    covered[:, 1] = 0
    expected = float(net(x)[0, 1] - net(covered)[0, 1])
    np.testing.assert_allclose(found[0, 1].numpy(), expected, rtol=1e-9)


@pytest.mark.parametrize("window", [0, 9, (3, 3, 3, 3), (1, 0)])
def test_occlusion_refuses_other_windows(net, window):
    with pytest.raises(ValueError, match="window must"):
        attribution.occlusion(net, images(), 0, window=window)


def test_occlusion_of_a_net_without_gradients_keeps_the_bound(net):
    fast, seen = convcore.optimize_for_inference(net.float()), []
    expected = attribution.occlusion(net, images(1).float(), 0, window=2)
    fast(images(1).float())  # which makes the plan
    forward = fast.forward
    fast.forward = lambda x: (seen.append(len(x)), forward(x))[1]
    found = attribution.occlusion(fast, images(1).float(), 0, window=2, memory=700_000)
    assert max(seen) == 700_000 // (2 * 64 * 768)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-5)


def in_parts(x):
    """Return the ReLU of x, written into slices of another tensor."""
    y = x + 0
    y[:, :1] = F.relu(x[:, :1])
    y[:, 1:] = F.relu(x[:, 1:])
    return y


class Plain(nn.Module):
    """One ReLU for all, as a module, a function and in place."""

    def __init__(self, how):
        super().__init__()
        convcore.manual_seed(3)
        self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))
        self.relu = {
            "module": nn.ReLU(), "in place": nn.ReLU(inplace=True), "function": F.relu,
            "method in place": lambda x: x.relu_(), "method": lambda x: x.relu(),
            "part by part": in_parts,
            "view in place": lambda x: F.relu_((x + 0).view(-1)).view_as(x),
        }[how]  # fmt: skip

    def forward(self, x):
        for conv in self.convs:
            x = self.relu(conv(x))
        return x.mean((2, 3))


HOWS = ("in place", "function", "method in place", "method", "part by part", "view in place")


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", ["guided_backprop", "deconvolution", "deep_lift", "lrp"])
def test_every_kind_of_relu_follows_the_rule(name, how):
    method = getattr(attribution, name)
    if name == "lrp":  # each operation costs an epsilon
        method = functools.partial(method, rules=attribution.Epsilon(0.0))
    expected = method(Plain("module").double(), images(), 1)
    found = method(Plain(how).double(), images(), 1)
    assert convcore.allclose(found, expected, rtol=1e-6, atol=1e-12)


def test_guided_backprop_and_deconvolution_by_definition():
    net, x = Plain("module").double(), images()
    inputs = []
    y = x
    for conv in net.convs:
        inputs.append(conv(y))
        y = F.relu(inputs[-1])
    for method, guided in ((attribution.guided_backprop, True), (attribution.deconvolution, False)):
        grad = convcore.zeros_like(y)
        grad[:, 1] = 1 / 64
        for conv, before in zip(reversed(net.convs), reversed(inputs), strict=True):
            grad = grad.clamp(min=0) * ((before > 0) if guided else 1)
            grad = F.conv_transpose2d(grad, conv.weight, padding=1)
        assert convcore.allclose(method(net, x, 1), grad.detach())


def test_the_nets_of_models_follow_the_rule_at_fused_relus():
    """A batch norm fused with its ReLU would hide the ReLU from the rule."""
    net = nets()[0]
    guided = attribution.guided_backprop(net, images(), 1)
    for module in net.modules():
        module.register_forward_hook(lambda *_: None)  # nothing is fused now
    assert convcore.allclose(attribution.guided_backprop(net, images(), 1), guided)
    assert not convcore.allclose(attribution.saliency(net, images(), 1, absolute=False), guided)


@pytest.mark.parametrize("name", ["guided_backprop", "deconvolution", "deep_lift", "lrp"])
def test_a_relu_inside_another_operation_is_refused(name):
    class Fused(nn.Module):
        def __init__(self, function):
            super().__init__()
            self.conv, self.function = nn.Conv2d(3, 2, 3), function

        def forward(self, x):
            return self.function(x, self.conv).mean((2, 3))

    def norm(x, conv):
        return F.batch_norm_activation(conv(x), convcore.zeros(2), convcore.ones(2))

    def activated(x, conv):
        return F.conv_activation(x, conv.weight, conv.bias)

    for function in (norm, activated):
        with pytest.raises(NotImplementedError, match="no rule for the operation"):
            getattr(attribution, name)(Fused(function), images().float(), 0)


@pytest.mark.parametrize("name", ["grad_cam", "grad_cam_plus_plus", "layer_cam"])
def test_class_activation_maps_by_definition(net, name):
    kept = {}

    def keep(module, args, output):
        output.retain_grad()
        kept["out"], kept["maps"] = output * 1, output.detach().clone()
        return output * 1  # what comes after it changes it in place

    x = images()
    with net.stem.register_forward_hook(lambda m, a, y: keep(m, a, y)):
        outputs = []
        with net.stem.register_forward_hook(lambda m, a, y: outputs.append(y)):
            score = net(x.requires_grad_())[:, 1].sum()
    maps = kept["maps"].numpy()
    leaf = kept["maps"].clone().requires_grad_()
    stem, net.stem = net.stem, nn.Identity()
    (g,) = convcore.autograd.grad(net(leaf * 1)[:, 1].sum(), leaf)
    net.stem, g = stem, g.numpy()
    if name == "grad_cam":
        weights = g.mean((2, 3), keepdims=True)
    elif name == "layer_cam":
        weights = np.maximum(g, 0)
    else:
        below = 2 * g**2 + maps.sum((2, 3), keepdims=True) * g**3
        alpha = np.where(below != 0, g**2 / np.where(below != 0, below, 1), 0)
        weights = (alpha * np.maximum(g, 0)).sum((2, 3), keepdims=True)
    expected = np.maximum((weights * maps).sum(1, keepdims=True), 0)
    method = getattr(attribution, name)
    found = method(net, x, net.stem, 1, upsample=False)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-15)
    assert method(net, x, "stem", 1).shape == (3, 1, 8, 8) and score.requires_grad


def test_a_call_of_a_layer_that_is_called_again(net):
    def by(**call):
        return attribution.grad_cam(net, images(), "point", 1, relu=False, **call)

    assert not convcore.allclose(by(call=0), by(call=1))
    assert convcore.equal(by(), by(call=1))
    with pytest.raises(ValueError, match="called 2 times"):
        attribution.grad_cam(net, images(), "point", 1, call=2)
    with pytest.raises(KeyError, match=r"no layer 'pint'; it has \w.*point"):
        attribution.grad_cam(net, images(), "pint", 1)
    with pytest.raises(ValueError, match=r"must be \(N, C"):
        attribution.grad_cam(net, images(), "fc", 1)


def test_integrated_gradients_of_a_smooth_net_converge_to_the_integral():
    convcore.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    x = images(1)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    expected = np.zeros((3, 8, 8))
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        expected += weight * attribution.saliency(net, x * node, 1, absolute=False)[0].numpy()
    expected *= x[0].numpy()
    errors = []
    for n_steps in (50, 100):
        found = attribution.integrated_gradients(net, x, 1, n_steps=n_steps)[0].numpy()
        errors.append(np.abs(found - expected).max() / np.abs(expected).max())
    assert errors[0] < 1e-3 and errors[1] < errors[0] / 3


@pytest.mark.parametrize("name", ["deep_lift", "lrp"])
def test_an_operation_without_a_rule_is_named(name):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Flatten()).double()
    with pytest.raises(NotImplementedError, match=f"{name} has no rule for.*NativeGroupNorm"):
        getattr(attribution, name)(net, images(), 0)


def test_rules_that_are_none():
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)).double()
    with pytest.raises(ValueError, match="epsilon_gamma, got 'zennit'"):
        attribution.lrp(net, images(), 0, rules="zennit")
    with pytest.raises(ValueError, match="got 'conv'"):
        attribution.lrp(net, images(), 0, rules={"conv": attribution.ZPlus()})
    with pytest.raises(TypeError, match="got 1"):
        attribution.lrp(net, images(), 0, rules=1)
    with pytest.raises(ValueError, match="gamma must"):
        attribution.Gamma(-1)


def test_progress_is_shown_only_if_asked_for(net, capsys, monkeypatch):
    attribution.occlusion(net, images(), 0, window=4)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    attribution.occlusion(net, images(), 0, window=4, progress=True)
    assert "occlusion [========================] 100%" in capsys.readouterr().err
