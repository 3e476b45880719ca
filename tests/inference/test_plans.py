"""Plans of nets that only run: the same results, whatever is joined and wherever values lie."""

import os
import threading
import weakref

import numpy as np
import pytest
from forks import in_fork
from function_net import Function
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from slim_nets import slim_vgg

import convcore
from convcore import models, nn, optimize_for_inference
from convcore._tensor.reads import mark_static
from convcore.inference import linear, plan_cache
from convcore.inference.execution_plan import Plan, Step, Value, offsets_of
from convcore.nn import functional as F


def plans_of(fast):
    """Return the plans that a net has made."""
    kinds = [kind for kind in fast._plans._kinds.values() if kind is not None]
    return [kind.plans[1] for kind in kinds if kind.plans is not None]


def assert_planned(net, x, planned=True, tolerance=1e-5):
    """Assert that the optimised net returns what the net does, twice, by a plan or without one."""
    net = net.eval()
    with convcore.no_grad():
        expected = net(x).numpy()
    fast = optimize_for_inference(net, x)
    for _ in range(2):
        before = x.numpy().copy()
        result = fast(x)
        scale = max(np.abs(expected).max(), 1e-30)
        assert result.shape == expected.shape
        assert np.abs(result.numpy() - expected).max() / scale <= tolerance
        assert np.array_equal(x.numpy(), before)
        result.numpy()[...] = np.nan  # memory of its own
    assert bool(plans_of(fast)) == planned
    return fast


NETS = {
    "resnet18": (lambda: models.resnet18(num_classes=5), (3, 64, 64)),
    "resnet50": (lambda: models.resnet50(num_classes=5), (3, 64, 64)),
    "mobilenet_v2": (lambda: models.mobilenet_v2(num_classes=5), (3, 64, 64)),
    "vgg11": (lambda: slim_vgg(models.vgg11), (3, 32, 32)),
    "vgg11_bn": (lambda: slim_vgg(models.vgg11_bn), (3, 32, 32)),
    "unet": (lambda: models.unet(init_features=8, depth=2), (3, 32, 32)),
    "lenet": (models.lenet, (1, 28, 28)),
}
# Of the kinds of layers that the others have, and large: sanitizers take minutes over them.
LARGE = {"resnet50", "vgg11", "vgg11_bn"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(n, marks=pytest.mark.slow if n in LARGE else ()) for n in NETS],
)
def model(request):
    """A net and the shape of its pictures, one net at a time: some take seconds to draw."""
    convcore.manual_seed(0)
    make, picture = NETS[request.param]
    return make(), picture


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_models_are_planned(model, n, channels_last):
    net, picture = model
    x = convcore.randn(n, *picture)
    if channels_last:
        x = x.to(memory_format=convcore.channels_last)
    assert_planned(net, x)


CONV = lambda c_in=4, c_out=4, k=3, **kw: nn.Conv2d(c_in, c_out, k, padding=k // 2, **kw)  # noqa: E731

FORMS = {
    "relu as a function": lambda: Function(lambda m, x: F.relu(m.a(x)), a=CONV()),
    "relu in place": lambda: Function(lambda m, x: m.a(x).relu_(), a=CONV()),
    "relu6": lambda: Function(lambda m, x: F.relu6(m.a(x)), a=CONV()),
    "leaky relu": lambda: Function(lambda m, x: F.leaky_relu(m.a(x), 0.2), a=CONV()),
    "a relu of the input": lambda: Function(lambda m, x: m.a(F.relu(x)), a=CONV()),
    "relu after a pool": lambda: Function(lambda m, x: F.relu(F.max_pool2d(m.a(x), 2)), a=CONV()),
    "a pool that others take": lambda: Function(
        lambda m, x: (lambda p: F.relu(p) + p)(F.max_pool2d(m.a(x), 2)), a=CONV()
    ),
    "a pool with a dilation": lambda: Function(
        lambda m, x: F.max_pool2d(m.a(x), 3, 1, 1, 2), a=CONV()
    ),
    "a sum": lambda: Function(lambda m, x: m.a(x) + x, a=CONV()),
    "a sum with a result": lambda: Function(
        lambda m, x: F.relu(m.b(F.relu(m.a(x))) + m.c(x)), a=CONV(), b=CONV(), c=CONV(k=1)
    ),
    "a sum that others take": lambda: Function(
        lambda m, x: (lambda s: F.relu(s) + s.sigmoid())(m.b(m.a(x)) + m.a(x)), a=CONV(), b=CONV()
    ),
    "what was added to is taken later": lambda: Function(
        lambda m, x: (lambda a: (m.b(a) + a) + a)(m.a(x)), a=CONV(), b=CONV()
    ),
    "a sum with itself": lambda: Function(lambda m, x: (lambda a: a + a)(m.a(x)), a=CONV()),
    "one convolution twice": lambda: Function(lambda m, x: m.a(F.relu(m.a(x))), a=CONV()),
    "a concatenation": lambda: Function(
        lambda m, x: m.b(convcore.cat([F.relu(m.a(x)), x, m.a(x)], 1)), a=CONV(), b=CONV(12)
    ),
    "rows joined": lambda: Function(lambda m, x: convcore.cat([m.a(x), x], 2), a=CONV()),
    "a transposed convolution": lambda: Function(
        lambda m, x: m.b(F.relu(m.a(x))), a=CONV(), b=nn.ConvTranspose2d(4, 6, 2, 2)
    ),
    "a transposed convolution of stride 1": lambda: Function(
        lambda m, x: m.b(m.a(x)), a=CONV(4, 32), b=nn.ConvTranspose2d(32, 32, 3, padding=1)
    ),
    "circular padding": lambda: Function(
        lambda m, x: m.a(x), a=nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular")
    ),
    "upsampling": lambda: Function(
        lambda m, x: F.interpolate(m.a(x), scale_factor=2, mode="bilinear"), a=CONV()
    ),
    "means of planes": lambda: Function(
        lambda m, x: m.b(m.a(x).mean((2, 3))), a=CONV(), b=nn.Linear(4, 3)
    ),
    "means that stay pictures": lambda: Function(
        lambda m, x: m.a(x).mean((2, 3), keepdim=True), a=CONV()
    ),
    "planes seen as lines": lambda: Function(
        lambda m, x: m.b(m.a(x).flatten(2)), a=CONV(), b=nn.Conv1d(4, 5, 3)
    ),
    "lines pooled": lambda: Function(lambda m, x: F.max_pool1d(m.a(x).flatten(2), 2), a=CONV()),
    "rows seen as planes": lambda: Function(
        lambda m, x: m.b(m.a(x).reshape(2, 4, 2, 4, 8)), a=CONV(), b=nn.Conv3d(4, 3, (1, 3, 3))
    ),
    "pictures seen as a batch": lambda: Function(
        lambda m, x: m.b(m.a(x).reshape(8, 1, 8, 8)), a=CONV(), b=CONV(1, 3)
    ),
    "a pool of windows in the padding": lambda: Function(
        lambda m, x: F.relu(F.max_pool2d(m.a(F.max_pool2d(x, 4)), 2, 1, 1, 3)), a=CONV()
    ),
    "means of windows": lambda: Function(lambda m, x: F.avg_pool2d(m.a(x), 2), a=CONV()),
    "means that adapt": lambda: Function(lambda m, x: F.adaptive_avg_pool2d(m.a(x), 3), a=CONV()),
    "a linear layer of pictures": lambda: Function(
        lambda m, x: F.relu(m.b(m.a(x).flatten(1))), a=CONV(), b=nn.Linear(256, 5)
    ),
    "flat pictures that others take": lambda: Function(
        lambda m, x: (lambda f: m.b(f + f))(m.a(x).flatten(1)), a=CONV(), b=nn.Linear(256, 5)
    ),
    "softmax": lambda: Function(lambda m, x: F.softmax(m.a(x), 1), a=CONV()),
    "activations": lambda: Function(
        lambda m, x: F.silu(F.gelu(m.a(x))).tanh().sigmoid() + F.hardswish(x), a=CONV()
    ),
    "groups": lambda: Function(
        lambda m, x: F.relu(m.b(m.a(x)) + x), a=CONV(groups=4), b=CONV(groups=2)
    ),
    "numbers": lambda: Function(lambda m, x: 1 - (m.a(x * 2 - 1) * 0.5 + 3) / 6 - 2, a=CONV()),
    "numbers in place": lambda: Function(lambda m, x: m.a(x).add_(1).mul_(m.a(x)), a=CONV()),
    "numbers that others take": lambda: Function(
        lambda m, x: (lambda a: a * F.relu6(a + 3) / 6 + 2 * a)(m.a(x)), a=CONV()
    ),
    "products, differences and quotients": lambda: Function(
        lambda m, x: (lambda a, b: a * b + (a - b) / (b * b + 1) - x)(m.a(x), m.b(x)),
        a=CONV(),
        b=CONV(),
    ),
    "channels that are scaled": lambda: Function(
        lambda m, x: (lambda a: a * m.b(a.mean((2, 3), keepdim=True)).sigmoid() + a)(m.a(x)),
        a=CONV(),
        b=CONV(k=1),
    ),
    "channels that linear layers scale": lambda: Function(
        lambda m, x: (lambda a: F.relu(m.b(a.mean((2, 3)))).sigmoid()[:, :, None, None] * a)(
            m.a(x)
        ),
        a=CONV(),
        b=nn.Linear(4, 4, bias=False),
    ),
    "parameters of the net itself": lambda: Function(
        lambda m, x: m.b(m.w - m.a(x) * m.w + x),
        a=CONV(),
        b=CONV(),
        w=nn.Parameter(convcore.rand(4, 1, 1)),
    ),
    "shapes that broadcast each other": lambda: Function(
        lambda m, x: m.a(x).mean((2, 3), keepdim=True)[:1] + x[:, :1], a=CONV()
    ),
    "halves of channels": lambda: Function(
        lambda m, x: (lambda a, b: convcore.cat([m.b(b), a], 1))(*m.a(x).chunk(2, 1)),
        a=CONV(),
        b=CONV(2, 2),
    ),
    "one of several parts": lambda: Function(
        lambda m, x: m.b(m.a(x).split([1, 3], 1)[1]), a=CONV(), b=CONV(3)
    ),
    "places of an axis": lambda: Function(
        lambda m, x: sum(m.a(x).unbind(1)) + x.select(1, 2) + x[:, -1], a=CONV()
    ),
    "slices": lambda: Function(
        lambda m, x: m.b(m.a(x)[:, 1:3, ::2]) + x.narrow(1, 0, 2)[..., :4, :],
        a=CONV(),
        b=CONV(2, 2),
    ),
    "parts that overlap": lambda: Function(
        lambda m, x: (lambda a: a[:, :, 1:] + a[:, :, :7])(m.a(x)[:1]), a=CONV()
    ),
    "shuffled channels": lambda: Function(
        lambda m, x: m.b(m.a(x).unflatten(1, (2, 2)).transpose(1, 2).flatten(1, 2)),
        a=CONV(),
        b=CONV(groups=2),
    ),
    "tokens": lambda: Function(
        lambda m, x: m.b(m.a(x).flatten(2).transpose(1, 2)).permute(0, 2, 1).reshape(-1, 5, 8, 8),
        a=CONV(),
        b=nn.Linear(4, 5),
    ),
    "a linear layer of lines": lambda: Function(
        lambda m, x: F.relu(m.b(m.a(x))), a=CONV(), b=nn.Linear(8, 5, bias=False)
    ),
    "a linear layer without bias": lambda: Function(
        lambda m, x: F.relu(m.b(m.a(x).flatten(1))), a=CONV(), b=nn.Linear(256, 5, bias=False)
    ),
    "a product with a fixed matrix": lambda: Function(
        lambda m, x: m.a(x).mean((2, 3)) @ m.w, a=CONV(), w=nn.Parameter(convcore.rand(4, 3))
    ),
    "wide ones": lambda: Function(
        lambda m, x: (lambda a: F.relu(m.b(a) + a))(m.a(x)), a=CONV(4, 64), b=CONV(64, 64)
    ),
    "wide ones of one pixel": lambda: Function(
        lambda m, x: (lambda a: m.b(a) + a)(m.a(x)), a=CONV(4, 64), b=CONV(64, 64, 1)
    ),
}


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_forms_are_planned(form, channels_last):
    convcore.manual_seed(1)
    x = convcore.randn(2, 4, 8, 8)
    if channels_last:
        x = x.to(memory_format=convcore.channels_last)
    assert_planned(FORMS[form](), x)


FOR_PAIRS = ("rows seen as planes", "pictures seen as a batch")


@pytest.mark.parametrize("form", [form for form in FORMS if form not in FOR_PAIRS])
def test_kinds_of_inputs_in_turn(form):
    convcore.manual_seed(2)
    net = FORMS[form]().eval()
    a, b, c = (convcore.randn(n, 4, 8, 8) for n in (1, 2, 3))
    inputs = [a, b.to(memory_format=convcore.channels_last), c, b, -c]
    fast = optimize_for_inference(net, a)
    with convcore.no_grad():
        for x in (*inputs, *reversed(inputs)):
            result, expected = fast(x), net(x)
            assert convcore.allclose(result, expected, atol=1e-5 * float(expected.abs().max()))
    assert len(plans_of(fast)) == 4


DRAWN = [
    *("conv", "norm", "relu", "relu_", "add", "cat", "pool", "sigmoid", "up"),
    *("scale", "number", "halves"),
]


def drawn_net(rng):
    """Return a net that makes 4 channels of 4, of operations on whatever it has by then."""
    plan, have = [], 1
    for _ in range(int(rng.integers(2, 9))):
        kind = rng.choice(DRAWN)
        plan.append((str(kind), int(rng.integers(have)), int(rng.integers(have))))
        have += 1
    layers = {f"a{i}": CONV() for i in range(len(plan))}
    layers |= {f"n{i}": nn.BatchNorm2d(4) for i in range(len(plan))}
    layers |= {f"b{i}": CONV(8, 4, 1, bias=False) for i in range(len(plan))}
    last = [int(rng.integers(have)) for _ in range(2)]

    def forward(m, x):
        values = [x]
        for i, (kind, p, q) in enumerate(plan):
            a, b = values[p], values[q]
            values.append({
                "conv": lambda: getattr(m, f"a{i}")(a),  # noqa: B023
                "norm": lambda: getattr(m, f"n{i}")(getattr(m, f"a{i}")(a)),  # noqa: B023
                "relu": lambda: F.relu(a),  # noqa: B023
                "relu_": lambda: F.relu(getattr(m, f"a{i}")(a), inplace=True),  # noqa: B023
                "add": lambda: F.relu(a + getattr(m, f"a{i}")(b)) if i % 2 else a + b,  # noqa: B023
                "cat": lambda: getattr(m, f"b{i}")(convcore.cat([a, b], 1)),  # noqa: B023
                "pool": lambda: F.relu(F.max_pool2d(getattr(m, f"a{i}")(a), 3, 1, 1)),  # noqa: B023
                "sigmoid": lambda: a.sigmoid(),  # noqa: B023
                "scale": lambda: a * b.mean((2, 3), keepdim=True).sigmoid(),  # noqa: B023
                "number": lambda: 1 - a / 2,  # noqa: B023
                "halves": lambda: convcore.cat(a.chunk(2, 1)[::-1], 1),  # noqa: B023
                "up": lambda: F.avg_pool2d(F.interpolate(a, scale_factor=2), 2),  # noqa: B023
            }[kind]())  # fmt: skip
        return F.relu(m.a0(values[-1])) + values[last[0]] + m.a0(values[last[1]])

    return Function(forward, **layers)


@pytest.mark.parametrize("number", range(40))
def test_drawn_nets(number, seed):
    rng = np.random.default_rng([seed, number])
    convcore.manual_seed(number)
    x = convcore.from_numpy(rng.standard_normal((2, 4, 6, 6), dtype=np.float32))
    assert_planned(drawn_net(rng), x)


@pytest.mark.parametrize("channels_last", [False, True])
def test_convolutions_between_others_have_their_arrays_at_hand(channels_last):
    x = convcore.rand(2, 4, 8, 8)
    if channels_last:
        x = x.to(memory_format=convcore.channels_last)
    net = Function(lambda m, x: m.c(m.b(m.a(x))), a=CONV(), b=CONV(), c=CONV())
    (plan,) = plans_of(assert_planned(net, x))
    # The first reads the input, the last writes the result: other memory at each call.
    assert [bool(arguments) for _, arguments in plan._calls] == [True, False, True]


@pytest.mark.parametrize("channels_last", [False, True])
def test_views_are_copied_only_for_what_takes_no_gaps(channels_last):
    x = convcore.rand(2, 4, 8, 8)
    if channels_last:
        x = x.to(memory_format=convcore.channels_last)
    halves = plans_of(assert_planned(FORMS["halves of channels"](), x))[0]
    assert len(halves._steps) == 3  # two convolutions and what joins the halves
    pooled = Function(lambda m, x: F.max_pool2d(m.a(x)[:, :2], 2), a=CONV())
    assert len(plans_of(assert_planned(pooled, x))[0]._steps) == 3  # a copy before the pool


# Constants, and several results


class Scaled(nn.Module):
    """A net with a tensor of its own that is no parameter, and a buffer."""

    def __init__(self):
        super().__init__()
        self.a = CONV()
        self.factor = convcore.tensor(0.7)
        self.register_buffer("offsets", convcore.arange(4.0).reshape(4, 1, 1))

    def forward(self, x):
        return self.a(x) * self.factor + self.offsets


def test_a_models_own_tensors_are_constants():
    x = convcore.randn(2, 4, 6, 6)
    (plan,) = plans_of(assert_planned(Scaled(), x))
    assert len(plan._steps) == 1  # they went into the convolution's weights


def test_static_tensors_are_constants():
    x, fixed = convcore.randn(2, 4, 6, 6), convcore.randn(4, 1, 1)
    net = lambda: Function(lambda m, x: m.a(x) * fixed, a=CONV())  # noqa: E731
    assert_planned(net(), x, planned=False)  # it may have been computed from another input
    mark_static(fixed)
    assert_planned(net(), x)


def test_what_is_made_of_weights_alone_is_a_constant():
    net = Function(
        lambda m, x: F.linear(m.a(x).flatten(1), m.v.weight @ m.w.weight) + m.v.bias.exp(),
        a=CONV(), v=nn.Linear(7, 3), w=nn.Linear(144, 7),
    )  # fmt: skip
    (plan,) = plans_of(assert_planned(net, convcore.randn(2, 4, 6, 6)))
    assert len(plan._steps) <= 3  # a convolution, perhaps a copy, a linear layer


def test_a_linear_layer_that_is_called_twice_is_packed_once():
    net = Function(lambda m, x: m.v(F.relu(m.v(x))), v=nn.Linear(9, 9))
    (plan,) = plans_of(assert_planned(net, convcore.randn(3, 9)))
    weights = {id(one) for step in plan._steps for one in step.arguments if np.ndim(one) == 4}
    assert len(plan._steps) == 2 and len(weights) == 1


@pytest.mark.parametrize("rows", [1, linear.FEW_ROWS])
def test_large_linear_layers(monkeypatch, rows):
    monkeypatch.setattr(linear, "MOST_BYTES", 100)
    net = Function(lambda m, x: F.relu(m.v(x)), v=nn.Linear(9, 9))
    assert_planned(net, convcore.randn(rows, 9))


@pytest.mark.parametrize("kind", [tuple, list])
def test_several_results_come_as_the_net_returns_them(kind):
    def forward(m, x):
        y = m.a(x)
        return kind((y, m.b(F.relu(y)), y[:, :1]))

    net, x = Function(forward, a=CONV(), b=CONV()).eval(), convcore.randn(2, 4, 6, 6)
    with convcore.no_grad():
        expected = net(x)
    fast = optimize_for_inference(net, x)
    for _ in range(2):
        results = fast(x)
        assert type(results) is kind and len(results) == 3
        for result, wanted in zip(results, expected, strict=True):
            assert convcore.allclose(result, wanted, atol=1e-5)
        results[0].numpy()[...] = np.nan  # memory of its own, but for the views of it
    assert plans_of(fast)


def test_results_that_are_no_tensors_have_no_plan():
    net = Function(lambda m, x: {"y": m.a(x)}, a=CONV()).eval()
    x = convcore.randn(2, 4, 6, 6)
    fast = optimize_for_inference(net, x)
    assert convcore.allclose(fast(x)["y"], net(x)["y"], atol=1e-5) and not plans_of(fast)


# Ops that are made one


def by_channel(value):
    return convcore.full((1, 4, 1, 1), value) + convcore.arange(4.0).reshape(1, 4, 1, 1)


ONE_STEP = {
    "a product after": lambda m, x: m.a(x) * m.c,
    "a quotient after": lambda m, x: m.a(x) / m.c,
    "a sum after": lambda m, x: m.c + m.a(x),
    "a difference after": lambda m, x: m.a(x) - m.c,
    "a difference from": lambda m, x: m.c - m.a(x),
    "numbers after": lambda m, x: (m.a(x) * 2 - 0.5) / 3,
    "numbers and a relu after": lambda m, x: F.relu(m.a(x) * m.c + m.c),
    "numbers and a clamp after": lambda m, x: convcore.clamp(m.a(x) * 0.2 + 0.5, 0, 1),
    "a product before": lambda m, x: m.a(x * m.c),
    "numbers before a 1x1": lambda m, x: m.b((x * m.c - m.c) / 3),
    "numbers before groups": lambda m, x: m.g(x * m.c + m.c),
    "silu": lambda m, x: x * convcore.sigmoid(x),
    "silu of a gate": lambda m, x: convcore.sigmoid(x) * x,
    "hardswish": lambda m, x: x * F.relu6(x + 3) / 6,
    "hardswish by a clamp": lambda m, x: convcore.clamp(3 + x, 0, 6) * x * (1 / 6),
}


@pytest.mark.parametrize("name", ONE_STEP)
@pytest.mark.parametrize("bias", [False, True])
def test_ops_that_are_one_step(name, bias):
    x = convcore.randn(2, 4, 6, 6)
    net = Function(
        ONE_STEP[name], a=CONV(bias=bias), b=CONV(k=1, bias=bias), g=CONV(k=1, groups=2, bias=bias)
    )
    net.c = by_channel(0.5)
    (plan,) = plans_of(assert_planned(net, x))
    assert len(plan._steps) == 1


TWO_STEPS = {
    "a sum before padding": lambda m, x: m.a(x + m.c),
    "a row of pixels": lambda m, x: m.a(x) * m.row,
    "a quotient by the convolution": lambda m, x: m.c / (m.b(x) * m.b(x) + 2),
    "used twice": lambda m, x: (lambda y: y + y * m.c)(m.a(x)),
    "another clamp": lambda m, x: x * convcore.clamp(x + 3, 0, 5) / 6,
    "another gate": lambda m, x: x * convcore.sigmoid(m.b(x)),
    "numbers after an activation": lambda m, x: F.relu(m.a(x)) * m.c,
}


@pytest.mark.parametrize("name", TWO_STEPS)
def test_ops_that_look_like_one_step_and_are_not(name):
    x = convcore.randn(2, 4, 6, 6)
    net = Function(TWO_STEPS[name], a=CONV(), b=CONV(k=1))
    net.c, net.row = by_channel(0.5), convcore.arange(1.0, 7.0)
    (plan,) = plans_of(assert_planned(net, x))
    assert len(plan._steps) > 1


REPLAYED = {
    "a power": lambda m, x: m.a(x) ** 3,
    "a power of a tensor": lambda m, x: convcore.pow(m.a(x) ** 2, m.two),
    "a negative": lambda m, x: -m.a(x),
    "a stack": lambda m, x: convcore.stack([m.a(x), m.b(x)], 1),
    "products of matrices": lambda m, x: m.a(x) @ m.b(x).transpose(2, 3),
    "own indices": lambda m, x: m.a(x).index_select(1, m.index),
    "a PReLU": lambda m, x: m.p(m.a(x)),
    "a PReLU of rows": lambda m, x: m.p(m.a(x).mean((2, 3))),
    "a gate a channel": lambda m, x: m.a(x) * convcore.sigmoid(m.b(x).mean((2, 3), keepdim=True)),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_ops_that_are_replayed(name):
    x = convcore.randn(2, 4, 6, 6)
    net = Function(REPLAYED[name], a=CONV(), b=CONV(k=1), p=nn.PReLU(4))
    net.p.weight.data = convcore.randn(4)
    net.two, net.index = convcore.tensor(2.0), convcore.tensor([3, 0, 0])
    assert_planned(net, x)
    assert_planned(net, x.to(memory_format=convcore.channels_last))


# What has no plan


def test_a_net_that_looks_at_elements_is_not_planned():
    net = Function(lambda m, x: m.a(x) if float(x.sum()) > 0 else m.b(x), a=CONV(), b=CONV())
    x = convcore.ones(1, 4, 6, 6)
    fast = assert_planned(net, x, planned=False)
    with convcore.no_grad():
        expected = net(-x)
    assert convcore.allclose(fast(-x), expected, atol=1e-6)


def changed_slices(m, x):
    y = m.a(x)
    y[:, :2] += 1
    return y


def changed_under_a_view(m, x):
    y = m.a(x)
    part = y[:, :2]
    y.mul_(2)
    return part + 1


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: m.a(x) + convcore.ones(1),
        lambda m, x: m.a(x) * x.detach(),
        lambda m, x: x.detach() - m.a(x),
        lambda m, x: m.a(x) * 1j,
        lambda m, x: m.a(x)[:, [0, 2]],
        lambda m, x: m.a(x).index_select(1, x.detach().amax((0, 2, 3)).argsort()),
        changed_slices,
        changed_under_a_view,
        lambda m, x: x.relu_() + m.a(x),
        lambda m, x: m.a(x).double(),
    ],
)
def test_what_plans_do_not_know_is_computed_all_the_same(forward):
    x = convcore.rand(1, 4, 6, 6)
    assert_planned(Function(forward, a=CONV()), x, planned=False)


def mask(m, x):
    """Return what the graph does not show: elements changed out of its sight."""
    y = m.a(x)
    with convcore.no_grad():
        y[y < 0] = 0
    return m.b(y)


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: F.layer_norm(m.a(x), (6, 6), weight=x.detach().mean((0, 1))),
        lambda m, x: F.batch_norm(m.a(x), x.detach().mean((0, 2, 3)), x.detach().var((0, 2, 3))),
        lambda m, x: F.conv2d(m.a(x), x.detach()[:, :, :3, :3].clone().requires_grad_()),
        lambda m, x: m.a(x) if "-" in f"{x.sum()}" else m.b(x),
        lambda m, x: m.a(x) if "-" in repr(x) else m.b(x),
        mask,
    ],
)
def test_what_the_graph_does_not_show_is_not_planned(forward, rng):
    a, b = (
        convcore.from_numpy(rng.random((1, 4, 6, 6), dtype=np.float32) - shift) for shift in (0, 1)
    )
    net = Function(forward, a=CONV(), b=CONV())
    assert_planned(net, a * 0, planned=False)
    fast = assert_planned(net, a, planned=False)
    with convcore.no_grad():
        assert convcore.allclose(fast(b), net(b), atol=1e-5)


def test_a_net_that_refuses_gradients_is_not_planned():
    def forward(m, x):
        if x.requires_grad:
            raise ValueError("this net only runs")
        return m.a(x)

    assert_planned(Function(forward, a=CONV()), convcore.rand(1, 4, 6, 6), planned=False)


def test_float64_is_not_planned():
    assert_planned(CONV().double(), convcore.rand(1, 4, 6, 6).double(), planned=False)


def test_pictures_without_a_batch():
    assert_planned(CONV(), convcore.rand(4, 6, 6))
    assert_planned(Function(lambda m, x: m.a(x), a=CONV()), convcore.rand(4, 6, 6), planned=False)


def test_several_results():
    net = Function(lambda m, x: (m.a(x), x), a=CONV()).eval()
    x = convcore.rand(1, 4, 6, 6)
    a, same = optimize_for_inference(net, x)(x)
    assert convcore.allclose(a, net.a(x), atol=1e-6)
    assert convcore.equal(same, x)


def test_hooks_are_called():
    net = nn.Sequential(CONV(), nn.MaxPool2d(2))
    x = convcore.rand(1, 4, 6, 6)
    fast = assert_planned(net, x)
    seen = []
    handle = fast.model[1].register_forward_hook(lambda m, args, out: seen.append(out.shape))
    expected = fast(x)
    assert seen == [(1, 4, 3, 3)]
    handle.remove()
    assert convcore.equal(fast(x), expected)
    assert len(seen) == 1


def test_few_plans_are_in_memory_and_others_are_made_again_without_the_net():
    runs = []
    layer = CONV().eval()
    fast = optimize_for_inference(layer)
    xs = [convcore.rand(1, 4, size, size) for size in (4, 5, 6, 7, 8, 9)]
    first = [fast(x) for x in xs]
    assert len(plans_of(fast)) == plan_cache.MAX_PLANS
    fast.model.forward = lambda x: runs.append(x)  # a plan runs none of the net's code
    assert all(convcore.equal(fast(x), y) for x, y in zip(xs, first, strict=True))
    assert len(plans_of(fast)) == plan_cache.MAX_PLANS and not runs


@pytest.mark.parametrize("max_kinds", [2, 64])
def test_bits_do_not_depend_on_the_inputs_before(monkeypatch, max_kinds):
    monkeypatch.setattr(plan_cache, "MAX_KINDS", max_kinds)
    convcore.manual_seed(0)
    net = models.resnet8(num_classes=10).eval()
    x = convcore.randn(2, 3, 32, 32)
    fast = optimize_for_inference(net)
    expected = fast(x)
    for batch in range(1, 45):
        fast(convcore.randn(batch, 3, 1, 1))
    assert len(fast._plans._kinds) <= max_kinds
    assert convcore.equal(fast(x), expected)
    assert convcore.equal(optimize_for_inference(net, convcore.randn(1, 3, 8, 8))(x), expected)


def test_bits_do_not_depend_on_the_numbers_of_threads_before():
    net = models.resnet18(num_classes=10).eval()
    x = convcore.randn(2, 3, 32, 32)
    fast = optimize_for_inference(net)
    expected, threads = fast(x), convcore.get_num_threads()
    try:
        for number in (1, 2, 3, 4, 5, 6, 1, 2, 3):
            convcore.set_num_threads(number)
            assert convcore.equal(fast(x), expected)
    finally:
        convcore.set_num_threads(threads)
    assert len(plans_of(fast)) == 1


def test_an_array_that_is_not_aligned_has_the_bits_of_one_that_is():
    net = models.resnet18(num_classes=10).eval()
    memory = np.zeros(2 * 3 * 32 * 32 * 4 + 1, np.uint8)
    array = memory[1:].view(np.float32).reshape(2, 3, 32, 32)
    array[...] = np.random.default_rng(0).standard_normal(array.shape)
    fast = optimize_for_inference(net)
    assert convcore.equal(fast(convcore.from_numpy(array)), fast(convcore.from_numpy(array.copy())))


def test_memory_that_lacked_for_a_plan_is_an_error_once(monkeypatch):
    """Layer by layer, the bits would be others, in this call and in all that follow."""
    net, x = models.resnet18(num_classes=10).eval(), convcore.randn(2, 3, 32, 32)
    expected = optimize_for_inference(net, x)(x)
    fast = optimize_for_inference(net)

    def fail(*args):
        monkeypatch.undo()
        raise MemoryError

    monkeypatch.setattr(plan_cache, "lowered", fail)
    with pytest.raises(MemoryError):
        fast(x)
    assert convcore.equal(fast(x), expected)


def test_kinds_without_a_plan_are_tried_a_few_times():
    net = Function(lambda m, x: x * x.sum().item())
    fast = optimize_for_inference(net)
    for size in range(1, 20):
        fast(convcore.rand(1, size))
    assert len(fast._plans._kinds) == plan_cache.MAX_FAILURES


def test_other_weights_are_refused():
    fast = optimize_for_inference(CONV().eval(), convcore.rand(1, 4, 4, 4))
    with pytest.raises(RuntimeError, match="keeps its weights"):
        fast.load_state_dict({})


def test_states_that_would_lack_weights_are_refused():
    """The net's own one too, where its layers were taken; the net that was copied has all."""
    net = nn.Sequential(CONV()).eval()
    fast = optimize_for_inference(net, convcore.rand(1, 4, 4, 4))
    taken = nn.Sequential(CONV()).eval()
    optimize_for_inference(taken, convcore.rand(1, 4, 4, 4), inplace=True)
    for one in (fast, optimize_for_inference(net), nn.Sequential(fast), fast.model, taken):
        with pytest.raises(RuntimeError, match=r"Save the state_dict\(\) of the model that it was"):
            one.state_dict()
    assert nn.Sequential(CONV()).load_state_dict(net.state_dict()).missing_keys == []


def test_optimized_net_is_saved_whole(tmp_path):
    x = convcore.rand(1, 4, 4, 4)
    fast = optimize_for_inference(nn.Sequential(CONV()).eval(), x)
    convcore.save(fast, tmp_path / "fast.pt")
    assert convcore.equal(convcore.load(tmp_path / "fast.pt", weights_only=False)(x), fast(x))


def test_threads_get_plans_of_their_own(rng):
    net = models.lenet().eval()
    xs = [
        convcore.from_numpy(rng.standard_normal((1, 1, 28, 28), dtype=np.float32)) for _ in range(4)
    ]
    fast = optimize_for_inference(net, xs[0])
    expected = [fast(x) for x in xs]
    wrong = []

    def work(number):
        for _ in range(50):
            if not convcore.equal(fast(xs[number]), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("name", ["mobilenet_v2", "resnet18", "lenet"])
def test_bits_do_not_depend_on_threads(name):
    make, picture = NETS[name]
    convcore.manual_seed(0)
    x = convcore.randn(2, *picture)
    fast = optimize_for_inference(make().eval(), x)
    before = convcore.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            convcore.set_num_threads(threads)
            results.append(fast(x))
    finally:
        convcore.set_num_threads(before)
    assert all(convcore.equal(results[0], other) for other in results)


# Memory


def test_a_plan_that_fails_keeps_neither_input_nor_result():
    def fail(x, out):
        seen.extend(map(weakref.ref, (x, out)))
        raise MemoryError

    seen = []
    x, y = Value((3,), False), Value((3,), False)
    plan = Plan([Step(fail, (x, y))], x, [y])
    with pytest.raises(MemoryError):
        plan(np.zeros(3, np.float32))
    assert [one() for one in seen] == [None, None]


@examples(100)
@given(st.data())
def test_values_that_live_together_lie_apart(data):
    values = [
        Value((data.draw(st.integers(1, 300)),), False) for _ in range(data.draw(st.integers(1, 9)))
    ]
    some = st.lists(st.sampled_from(values), min_size=1, max_size=3)
    steps = [Step(print, tuple(data.draw(some))) for _ in range(data.draw(st.integers(1, 12)))]
    offsets, total = offsets_of(steps)
    lives = {
        value: [i for i, step in enumerate(steps) if value in step.arguments] for value in offsets
    }
    for a in offsets:
        assert offsets[a] + a.n_bytes <= total
        for b in offsets:
            together = lives[a][0] <= lives[b][-1] and lives[b][0] <= lives[a][-1]
            if a is not b and together:
                assert offsets[a] + a.n_bytes <= offsets[b] or offsets[b] + b.n_bytes <= offsets[a]
    if len(steps) == 1:
        assert total == sum(value.n_bytes for value in offsets)


def test_memory_is_used_again():
    x = convcore.rand(1, 16, 32, 32)
    net = nn.Sequential(*[CONV(16, 16) for _ in range(10)])
    (plan,) = plans_of(assert_planned(net, x))
    assert plan.n_bytes == 2 * x.nbytes


def test_means_of_pictures_without_a_batch():
    net = Function(lambda m, x: F.adaptive_avg_pool2d(F.relu(x), 1))
    assert_planned(net, convcore.randn(3, 5, 6), planned=False)


def test_arrays_that_are_not_aligned():
    net = CONV()
    x = convcore.rand(1, 4, 6, 6)
    fast = assert_planned(net, x)
    memory = np.zeros(x.nbytes + 1, np.uint8)
    shifted = memory[1:].view(np.float32).reshape(x.shape)
    shifted[...] = x.numpy()
    assert convcore.equal(fast(convcore.from_numpy(shifted)), fast(x))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_child_runs_plans_of_its_own():
    x = convcore.randn(4, 3, 32, 32)
    fast = optimize_for_inference(models.resnet8().eval(), x)
    expected = fast(x)
    assert in_fork(lambda: str(convcore.equal(fast(x), expected))) == "True"


@pytest.mark.parametrize(
    "forward",
    [
        lambda m, x: F.conv2d(m.a(x), F.relu(x)[:4]),
        lambda m, x: F.conv2d(x, x),
        lambda m, x: F.conv2d(x, m.w, m.a(x).sum((0, 2, 3))),
        lambda m, x: F.linear(x.mean((2, 3)), m.a(x)[:4, :, 0, 0]),
        lambda m, x: convcore.addmm(x[0, :, 0, 0], x.mean((2, 3)), m.w[:, :, 0, 0]),
        lambda m, x: F.conv_transpose2d(x, m.a(x)[:4]),
    ],
)
def test_weights_that_are_computed_have_no_plan(forward):
    net = Function(forward, a=CONV(), w=nn.Parameter(convcore.rand(4, 4, 3, 3)))
    assert_planned(net, convcore.rand(4, 4, 6, 6), planned=False)
