"""Plans with bfloat16 in memory: half the bytes, and results near float32's."""

import pickle

import numpy as np
import pytest
from function_net import Function
from slim_nets import slim_vgg

import convcore
from convcore import models, nn, optimize_for_inference
from convcore.nn import functional as F

NETS = {
    "resnet18": (lambda: models.resnet18(num_classes=5), (3, 64, 64)),
    "resnet50": (lambda: models.resnet50(num_classes=5), (3, 64, 64)),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=5), (3, 64, 64)),
    "vgg11_bn": (lambda: slim_vgg(models.vgg11_bn), (3, 32, 32)),
    "unet": (lambda: models.unet(init_features=16, depth=3), (3, 64, 64)),
    "lenet": (models.lenet, (1, 28, 28)),
}


def plan_of(fast):
    """Return the plan of the last kind of input."""
    kinds = list(fast._plans._kinds.values())
    assert kinds and kinds[-1] is not None
    return kinds[-1].plans[1]


def narrow_values(plan):
    """Return the values of a plan that own bfloat16 memory."""
    return {root for step in plan._steps for root in step.roots() if root.narrow}


def apart(a, b):
    """Return how far two results lie apart, over the largest element of the second."""
    return float((a - b).abs().max() / b.abs().max())


@pytest.fixture(scope="module", params=NETS)
def model(request):
    """A net and the shape of its pictures, one net at a time: some take seconds to draw."""
    convcore.manual_seed(0)
    make, picture = NETS[request.param]
    return make().eval(), picture


@pytest.mark.parametrize("n", [1, 3])
def test_models_are_near_float32(model, n):
    net, picture = model
    x = convcore.randn(n, *picture)
    exact, rounded = (
        optimize_for_inference(net, x),
        optimize_for_inference(net, x, precision="bf16"),
    )
    assert exact.difference is None
    assert 0 < rounded.mean_difference <= rounded.difference < 3e-2
    result = rounded(x)
    assert result.dtype is convcore.float32
    assert apart(result, exact(x)) == pytest.approx(rounded.difference, rel=1e-3)
    assert narrow_values(plan_of(rounded)) and not narrow_values(plan_of(exact))
    assert plan_of(rounded).n_bytes < plan_of(exact).n_bytes


def test_a_result_of_zeros_is_no_difference():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
    for parameter in net.parameters():
        nn.init.zeros_(parameter)
    rounded = optimize_for_inference(net.eval(), convcore.randn(1, 1, 8, 8), precision="bf16")
    assert rounded.difference == rounded.mean_difference == 0


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "unet"])
def test_they_are_no_farther_off_than_a_net_of_bfloat16(name):
    pytest.importorskip("ml_dtypes")
    convcore.manual_seed(0)
    make, picture = NETS[name]
    net, eager, x = make().eval(), make().eval(), convcore.randn(8, *picture)
    eager.load_state_dict(net.state_dict())
    with convcore.no_grad():
        exact = net(x)
        whole = eager.to(convcore.bfloat16)(x.to(convcore.bfloat16)).to(convcore.float32)
    made = optimize_for_inference(net, precision="bf16")(x)
    assert (made - exact).norm() < 1.2 * (whole - exact).norm()


def test_memory_is_half():
    convcore.manual_seed(0)
    x = convcore.rand(2, 32, 32, 32)
    net = nn.Sequential(*[nn.Conv2d(32, 32, 3, padding=1) for _ in range(6)]).eval()
    fast = optimize_for_inference(net, x, precision="bf16")
    # Two values that take turns; the input and the result are the caller's.
    assert plan_of(fast).n_bytes == x.nbytes


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "unet"])
def test_bits_do_not_depend_on_threads(name):
    make, picture = NETS[name]
    convcore.manual_seed(0)
    x = convcore.randn(2, *picture)
    fast = optimize_for_inference(make().eval(), x, precision="bf16")
    before, results = convcore.get_num_threads(), []
    try:
        for threads in (1, 2, 3, 7):
            convcore.set_num_threads(threads)
            results.append(fast(x))
    finally:
        convcore.set_num_threads(before)
    assert all(convcore.equal(results[0], other) for other in results)


CONV = lambda c_in, c_out, k=3, **kw: nn.Conv2d(c_in, c_out, k, padding=k // 2, **kw)  # noqa: E731

FORMS = {
    "a sum with what is needed again": lambda: Function(
        lambda m, x: m.c(a := m.a(x)) + m.b(a) * a, a=CONV(24, 32), b=CONV(32, 32), c=CONV(32, 32)
    ),
    "a shortcut": lambda: Function(
        lambda m, x: m.c(F.relu(m.b(F.relu(a := m.a(x))) + a)),
        a=CONV(24, 32), b=CONV(32, 32), c=CONV(32, 8, 1),
    ),
    "parts side by side": lambda: Function(
        lambda m, x: m.c(convcore.cat([a := m.a(x), m.b(a)], 1)),
        a=CONV(24, 32), b=CONV(32, 20, 1), c=CONV(52, 8, 1),
    ),
    "parts, one of them float32": lambda: Function(
        lambda m, x: m.c(convcore.cat([m.a(x), x], 1)), a=CONV(24, 32), c=CONV(56, 8, 1)
    ),
    "a pool, and an activation after it": lambda: Function(
        lambda m, x: m.b(F.relu(F.max_pool2d(m.a(x), 3, 2, 1))), a=CONV(24, 33), b=CONV(33, 8, 1)
    ),
    "an activation that no convolution applies": lambda: Function(
        lambda m, x: m.b(F.silu(m.a(x))), a=CONV(24, 32), b=CONV(32, 8, 1)
    ),
    "a gate": lambda: Function(
        lambda m, x: m.c((a := m.a(x)) * m.b(F.adaptive_avg_pool2d(a, 1)).sigmoid()),
        a=CONV(24, 32), b=CONV(32, 32, 1), c=CONV(32, 8, 1),
    ),
    "an intermediate result that is returned": lambda: Function(
        lambda m, x: (a := m.a(x), m.b(a)), a=CONV(24, 32), b=CONV(32, 8, 1)
    ),
    "up": lambda: Function(
        lambda m, x: m.c(m.b(m.a(x))),
        a=CONV(24, 32), b=nn.ConvTranspose2d(32, 24, 2, 2), c=CONV(24, 8, 1),
    ),
    "grouped": lambda: Function(
        lambda m, x: m.c(m.b(m.a(x))),
        a=CONV(24, 32, 1), b=CONV(32, 32, groups=8), c=CONV(32, 8, 1),
    ),
    "depthwise of float32": lambda: Function(
        lambda m, x: m.b(m.a(x)), a=CONV(24, 24, groups=24), b=CONV(24, 8, 1)
    ),
    "halves": lambda: Function(
        lambda m, x: m.b(convcore.chunk(m.a(x), 2, 1)[1]), a=CONV(24, 64), b=CONV(32, 8, 1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_forms_are_near_float32(name, channels_last):
    convcore.manual_seed(0)
    net, x = FORMS[name]().eval(), convcore.randn(2, 24, 14, 15)
    if channels_last:
        x = x.to(memory_format=convcore.channels_last)
    with convcore.no_grad():
        exact = net(x)
    fast = optimize_for_inference(net, x, precision="bf16")
    for _ in range(2):
        before = x.numpy().copy()
        made = fast(x)
        assert np.array_equal(x.numpy(), before)
        pairs = zip(made, exact, strict=True) if isinstance(exact, tuple) else [(made, exact)]
        for one, other in pairs:
            assert one.dtype is convcore.float32
            assert apart(one, other) < 2e-2
    plan_of(fast)


def test_a_copy_has_the_same_bits():
    convcore.manual_seed(0)
    net = nn.Sequential(CONV(3, 32), nn.ReLU(), CONV(32, 32), nn.ReLU(), CONV(32, 8)).eval()
    x = convcore.randn(2, 3, 20, 20)
    fast = optimize_for_inference(net, x, precision="bf16")
    again = pickle.loads(pickle.dumps(fast))
    assert convcore.equal(again(x), fast(x)) and again.difference == fast.difference
    assert narrow_values(plan_of(again))


def test_tensors_stay_float32_under_the_switch_alone():
    convcore.manual_seed(0)
    net = nn.Sequential(CONV(3, 32), nn.ReLU(), CONV(32, 32)).eval()
    x = convcore.randn(2, 3, 20, 20)
    fast = optimize_for_inference(net, x)
    with convcore.backends.conv.flags(fp32_precision="bf16"):
        fast(x)
    assert not narrow_values(plan_of(fast))


def packings(fast):
    """Return how often the weights of a net's convolutions lie packed beside those of its plans."""
    layers = [layer for layer in fast.modules() if hasattr(layer, "prepacked")]
    assert layers
    return [len(layer.prepacked._plans) for layer in layers]


@pytest.mark.parametrize("precision", [None, "bf16"])
def test_packed_weights_are_held_once_by_the_plan(precision):
    net, x = models.resnet18(num_classes=5).eval(), convcore.randn(1, 3, 64, 64)
    fast = optimize_for_inference(net, x, precision=precision)
    expected = fast(x)
    assert plan_of(fast) and not any(packings(fast))
    assert convcore.equal(fast(x), expected)


def test_without_a_plan_they_are_packed_once_for_all_calls():
    net = Function(lambda net, x: net.conv(x) + float(x[0, 0, 0, 0] > 9), conv=nn.Conv2d(8, 8, 3))
    net, x = net.eval(), convcore.randn(1, 8, 9, 9)
    fast = optimize_for_inference(net, x, precision="bf16")
    expected = fast(x)
    assert packings(fast) == [1]
    assert convcore.equal(fast(x), expected)
