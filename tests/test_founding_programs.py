"""The programs that people wrote to see what a convolution's gradient is, and what they print.

Each runs with PyTorch's names, on convcore and, where it is installed, on PyTorch: what is expected
is written down once and must be what both print.
"""

import importlib
import itertools
import math
import warnings
from collections import OrderedDict
from types import SimpleNamespace

import founding_draws as draws
import numpy as np
import pytest

# What a legacy backward hook warns of, which these programs did not know.
LEGACY_WARNS = pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning")


@pytest.fixture(params=["convcore", "torch"])
def m(request):
    """The library under PyTorch's names, with the sub-modules that the programs import."""
    if request.param == "torch":
        pytest.importorskip("torch")
    module = importlib.import_module(request.param)
    for name in ("nn", "nn.functional", "optim", "autograd"):
        importlib.import_module(f"{request.param}.{name}")
    return module


def rows(*lines):
    """Read a matrix as it would be typed."""
    return [[float(number) for number in line.split()] for line in lines]


def planes(values, size):
    """Return nested lists of a (1, C, size, size) tensor with one value a channel."""
    return np.broadcast_to(np.reshape(values, (1, -1, 1, 1)), (1, len(values), size, size))


def near(tensor, expected, tolerance=6e-5):
    """Compare numbers that are known to four decimals."""
    found = np.asarray(tensor.detach().numpy(), np.float64)
    expected = np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


# A. Conv 1x1, global average pool, cross entropy, and hooks everywhere


def gap_net(m):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = m.nn.Conv2d(1, 4, kernel_size=1, bias=False)
            self.gap = m.nn.AdaptiveAvgPool2d((1, 1))

        def forward(self, x):
            self.conv_output = x = self.conv1(x)
            self.gap_output = x = self.gap(x)
            n = 1
            for size in x.size()[1:]:
                n *= size
            return x.view(-1, n)

    net = Net()
    net.conv1.weight.data = m.ones(4, 1, 1, 1)
    return net


@LEGACY_WARNS
def test_one_step_of_a_net_with_hooks_everywhere(m):
    net, events, seen = gap_net(m), [], {}
    bystander = m.nn.Module()
    optimizer = m.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def note(name):
        def hook(grad):
            events.append(name)
            seen[name] = grad.clone()

        return hook

    def change(z):
        events.append("output")
        seen["output"] = z.clone()
        bystander.data = z
        changed = z[0] + m.tensor([[0, 0, 1, 0]]) - m.tensor([[0, 0, -1, 0]])
        seen["changed"] = changed
        return changed

    def watch(name):
        def forward_hook(module, args, output):
            events.append(f"{name} forward")

        def backward_hook(module, grad_input, grad_output):
            events.append(f"{name} backward")
            seen[name] = SimpleNamespace(grad_input=grad_input, grad_output=grad_output)

        return forward_hook, backward_hook

    for name in ("conv1", "gap"):
        forward_hook, backward_hook = watch(name)
        module = getattr(net, name)
        module.register_forward_hook(forward_hook)
        module.register_backward_hook(backward_hook)

    inputs, label = m.ones(1, 1, 5, 5), m.LongTensor([2])
    outputs = net(inputs)
    net.conv_output.register_hook(note("conv output"))
    net.gap_output.register_hook(note("gap output"))
    outputs.register_hook(change)
    loss = m.nn.functional.cross_entropy(outputs, label)
    loss.register_hook(note("loss"))
    loss.requires_gard = True  # misspelt, and legal
    assert net.conv1.weight.grad is None
    assert outputs.max(1, keepdim=True)[1].tolist() == [[0]]

    optimizer.zero_grad()
    loss.backward()
    loss.register_hook(note("too late"))

    assert events == [
        *("conv1 forward", "gap forward"),
        *("loss", "output", "gap output", "gap backward", "conv output", "conv1 backward"),
    ]
    assert str(seen["loss"]) == "tensor(1.)"
    assert seen["output"][0].tolist() == [0.25, 0.25, -0.75, 0.25]
    assert seen["changed"].dtype == m.float32
    assert seen["changed"].tolist() == [[0.25, 0.25, 1.25, 0.25]]
    assert seen["gap output"].tolist() == [[[[0.25]], [[0.25]], [[1.25]], [[0.25]]]]
    (arrived,) = seen["gap"].grad_output
    assert arrived.shape == (1, 4, 1, 1)
    assert arrived.flatten().tolist() == [0.25, 0.25, 1.25, 0.25]
    spread = planes([0.01, 0.01, 0.05, 0.01], 5)
    near(seen["gap"].grad_input[0], spread, 1e-8)
    near(seen["conv output"], spread, 1e-8)
    grad_input, grad_weight, grad_bias = seen["conv1"].grad_input
    assert grad_input is None and grad_bias is None
    near(grad_weight.view(4), [0.25, 0.25, 1.25, 0.25], 1e-6)
    near(seen["conv1"].grad_output[0], spread, 1e-8)
    near(net.conv1.weight.grad.view(4), [0.25, 0.25, 1.25, 0.25], 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert loss.grad is None and outputs.grad is None
    assert bystander.data.shape == (1, 4)

    optimizer.step()
    near(net.conv1.weight.view(4), [0.9975, 0.9975, 0.9875, 0.9975], 1e-6)


def test_that_net_prints_its_parts(m):
    net = gap_net(m)
    assert str(net.conv1) == "Conv2d(1, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)"
    assert str(net.gap) == "AdaptiveAvgPool2d(output_size=(1, 1))"
    printed = str(net.conv1.weight)
    assert printed.startswith("Parameter containing:\ntensor([[[[1.]]],\n")
    assert printed.endswith(", requires_grad=True)")


# B. Zero weights are not zero gradients


def test_a_weight_of_zero_has_a_gradient(m):
    data = m.tensor([1.688])
    weights = [m.tensor([value], requires_grad=True) for value in (1.0, 0.0, 1.0)]
    x1 = weights[0] * data
    x2 = weights[1] * x1
    x3 = weights[2] * x2
    out = x3 * m.ones(1)
    assert out.shape == (1,)
    out.backward()
    grads = [weight.grad[0] for weight in weights]
    assert [f"{float(grad):.3f}" for grad in grads] == ["0.000", "1.688", "0.000"]
    assert f"{grads[0]}" == "0.0"  # a tensor without axes formats as its number
    assert f"{m.tensor(2)}" == "2"


def two_convs(m, w1, w2, **kwargs):
    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = m.nn.Conv2d(3, 3, bias=False, **kwargs)
            self.conv2 = m.nn.Conv2d(3, 3, bias=False, **kwargs)
            self.mask = m.tensor([1.0, 0.0, 1.0])

    net = Net()
    net.conv1.weight.data = m.from_numpy(w1.copy())
    net.conv2.weight.data = m.from_numpy(w2.copy())
    assert [name for name, _ in net.named_parameters()] == ["conv1.weight", "conv2.weight"]
    return net


def test_masked_filters_have_gradients(m):
    net = two_convs(m, draws.N1_W1, draws.N1_W2, kernel_size=2, padding=1)
    weight = net.conv1.weight
    weight.data = weight.data.transpose(0, 3) * net.mask
    assert weight.shape == (2, 3, 2, 3) and not weight.is_contiguous()
    weight.data = weight.data.transpose(0, 3)
    assert weight.is_contiguous()
    assert "-0.0000" in str(weight)  # negative zeros survive
    x = m.from_numpy(draws.N1_X)
    out = net.conv2(net.conv1(x)).view(1, -1).sum(1)
    assert f"{out.item():.4f}" == "-5.7640"
    out.backward()
    by_channel = [[1.3665, -0.1851, 0.8171], [-1.3336, 0.1807, -0.7974], [-8.2042, 1.1116, -4.9058]]
    near(weight.grad, np.broadcast_to(np.reshape(by_channel, (3, 3, 1, 1)), (3, 3, 2, 2)), 2e-4)
    by_input = np.reshape([-1.7231, 0, 4.6560], (1, 3, 1, 1))
    near(net.conv2.weight.grad, np.broadcast_to(by_input, (3, 3, 2, 2)), 2e-4)


def test_a_masked_activation_silences_its_filter(m):
    net = two_convs(m, draws.N2_W1, draws.N2_W2, kernel_size=3, padding=1)
    hidden = net.conv1(m.from_numpy(draws.N2_X))
    hidden = (hidden.transpose(1, 3) * net.mask).transpose(1, 3)
    out = net.conv2(hidden).view(1, -1).sum(1)
    assert f"{out.item():.4f}" == "0.2569"
    out.backward()
    first, second = net.conv1.weight.grad, net.conv2.weight.grad
    assert first[1].abs().max().item() == 0 and second[:, 1].abs().max().item() == 0
    near(
        first[0, 0],
        rows("1.2873 2.1295 1.7824", "1.8223 2.5102 1.4646", "1.0475 1.5060 .7760"),
        2e-4,
    )
    expected = rows(".3392 .4461 -.4528", ".6036 .7465 -.0223", "1.0414 .8226 -.3322")
    for channel in range(3):
        near(second[channel, 0], expected, 2e-4)


# C. Hooks, and modules


def test_a_mean_of_squares_and_one_step_by_hand(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    y = x + 2
    z = m.mean(m.pow(y, 2))
    z.backward()
    assert x.grad.tolist() == [3.0, 4.0]
    x.data -= 1e-3 * x.grad.data
    assert str(x.data) == "tensor([0.9970, 1.9960])"
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


def test_print_is_a_hook(m, capsys):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    handle = y.register_hook(print)
    m.mean(y).backward()
    assert capsys.readouterr().out == "tensor([0.5000, 0.5000])\n"
    assert type(handle).__name__ == "RemovableHandle"


def chain(m, parts, weight, bias):
    """Return a module of Linear(4, 1) and divisions, as ``parts`` say, with a legacy hook."""

    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.f1 = m.nn.Linear(4, 1)
            m.nn.init.constant_(self.f1.weight, weight)
            m.nn.init.constant_(self.f1.bias, bias)
            self.seen = []
            self.register_backward_hook(self.look)

        def look(self, module, grad_input, grad_output):
            self.seen.append((grad_input, grad_output))
            return tuple(grad_input)

        def forward(self, x):
            for part in parts:
                x = self.f1(x) if part == "f1" else part(x)
            return x

    return Net()


@LEGACY_WARNS
def test_a_legacy_hook_on_a_net_that_divides(m):
    net = chain(m, [lambda x: x * 0.75, "f1", lambda x: x / 4], 4.0, 0.1)
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True).to(m.device("cpu"))
    assert x.is_leaf
    out = net(x)
    assert str(out.data) == "tensor([7.5250])"
    out.backward()
    ((grad_input, grad_output),) = net.seen
    assert str(grad_input) == "(tensor([0.2500]), None)"
    assert str(grad_output) == "(tensor([1.]),)"
    assert x.grad.tolist() == [0.75] * 4
    assert str(net.f1.weight.grad) == "tensor([[0.1875, 0.3750, 0.5625, 0.7500]])"
    assert str(net.f1.bias.grad) == "tensor([0.2500])"


def is_torch(m):
    return m.__name__ == "torch"


@LEGACY_WARNS
def test_a_legacy_hook_on_a_net_that_ends_in_linear(m):
    net = chain(m, [lambda x: x * 0.75, "f1"], 4.0, 0.1)
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    out = net(x)
    assert abs(out.item() - 30.1) < 1e-5
    out.backward()
    ((grad_input, grad_output),) = net.seen
    if not is_torch(m):  # PyTorch 2.13 has another last node here; 1.x printed this
        assert str(grad_input) == "(tensor([1.]), tensor([1.]))"
    assert str(grad_output) == "(tensor([1.]),)"
    assert str(net.f1.weight.grad) == "tensor([[0.7500, 1.5000, 2.2500, 3.0000]])"
    assert net.f1.bias.grad.tolist() == [1.0]
    assert x.grad.tolist() == [3.0] * 4


def test_a_lenet_of_21840_parameters(m):
    nn = m.nn
    net = nn.Sequential(
        OrderedDict(
            conv1=nn.Conv2d(1, 10, kernel_size=5),
            pool1=nn.MaxPool2d(2),
            relu1=nn.ReLU(),
            conv2=nn.Conv2d(10, 20, kernel_size=5),
            drop=nn.Dropout(),
            pool2=nn.MaxPool2d(2),
            relu2=nn.ReLU(),
            flat=nn.Flatten(),
            fc1=nn.Linear(320, 50),
            fc2=nn.Linear(50, 10),
        )
    )
    assert sum(p.numel() for p in net.parameters()) == 21_840
    assert net(m.randn(2, 1, 28, 28)).shape == (2, 10)


# D. Autograd and module hooks


def test_requiring_a_gradient_spreads(m):
    x, y = m.randn(5, 5), m.randn(5, 5)
    z = m.randn((5, 5), requires_grad=True)
    a = x + y
    assert not a.requires_grad and (a + z).requires_grad


def test_only_leaves_keep_gradients(m):
    x = m.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = m.mean(y)
    z.backward()
    assert str(z.data) == "tensor(3.)" and x.grad.tolist() == [1.0, 1.0]
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None and z.grad is None


ORDERS = {
    # parts: result, legacy grad_input, input.grad, weight.grad, bias.grad
    "f1 then /4": (
        ["f1", lambda x: x / 4], 20.5, "(tensor([0.2500]), None)", 2.0,
        "tensor([[0.2500, 0.5000, 0.7500, 1.0000]])", 0.25,
    ),
    "/4 then f1": (
        [lambda x: x / 4, "f1"], 22.0, "(tensor([1.]), tensor([1.]))", 2.0,
        "tensor([[0.2500, 0.5000, 0.7500, 1.0000]])", 1.0,
    ),
    "/4, f1, /4": (
        [lambda x: x / 4, "f1", lambda x: x / 4], 5.5, "(tensor([0.2500]), None)", 0.5,
        "tensor([[0.0625, 0.1250, 0.1875, 0.2500]])", 0.25,
    ),
}  # fmt: skip


@LEGACY_WARNS
@pytest.mark.parametrize("order", ORDERS)
def test_what_a_legacy_hook_sees_depends_on_the_last_operation(m, order):
    parts, result, legacy, grad, weight_grad, bias_grad = ORDERS[order]
    net = chain(m, parts, 8.0, 2.0)
    order_of_hooks = []
    inner = net.look

    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    x.register_hook(lambda g: order_of_hooks.append(("input", g)))
    net.seen = Log(order_of_hooks)
    out = net(x)
    assert out.item() == result
    out.backward()
    assert inner is not None and [name for name, _ in order_of_hooks] == ["module", "input"]
    ((grad_input, grad_output),) = net.seen
    if order != "/4 then f1" or not is_torch(m):
        assert str(grad_input) == legacy
    assert str(grad_output) == "(tensor([1.]),)"
    assert x.grad.tolist() == [grad] * 4 == order_of_hooks[1][1].tolist()
    assert str(net.f1.weight.grad) == weight_grad
    assert net.f1.bias.grad.tolist() == [bias_grad]


class Log(list):
    """A list that tells another when something is added."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def append(self, item):
        self.order.append(("module", item))
        super().append(item)


@pytest.mark.parametrize("order", ORDERS)
def test_a_full_hook_sees_the_input(m, order):
    parts, _, _, grad, _, _ = ORDERS[order]

    class Net(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.f1 = m.nn.Linear(4, 1)
            m.nn.init.constant_(self.f1.weight, 8.0)
            m.nn.init.constant_(self.f1.bias, 2.0)

        def forward(self, x):
            for part in parts:
                x = self.f1(x) if part == "f1" else part(x)
            return x

    net, seen = Net(), []
    net.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go)))
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    net(x).backward()
    (((grad_input,), (grad_output,)),) = seen
    assert grad_input.tolist() == [grad] * 4 == x.grad.tolist()
    assert grad_output.tolist() == [1.0]


def test_the_legacy_hook_names_its_successor(m):
    with pytest.warns(FutureWarning, match="register_full_backward_hook"):
        m.nn.Linear(4, 1).register_backward_hook(lambda *_: None)
        net = m.nn.Sequential(m.nn.Linear(4, 1), m.nn.ReLU())
        net.register_backward_hook(lambda *_: None)
        net(m.ones(1, 4, requires_grad=True)).sum().backward()


def encoder(m, width):
    """Return four strided convolutions, two linear layers, and a pixel shuffle by hand."""
    nn = m.nn

    class Down(nn.Sequential):
        def __init__(self, c_in, c_out):
            super().__init__()
            conv = nn.Conv2d(c_in, c_out, kernel_size=5, stride=2, padding=2)
            self.add_module("conv", conv)
            self.add_module("act", nn.LeakyReLU(0.1, inplace=True))

    class Flatten(nn.Module):
        def forward(self, x):
            return x.view(x.size(0), -1)

    class Reshape(nn.Module):
        def forward(self, x):
            return x.view(-1, 8 * width, 4, 4)

    class Shuffle(nn.Module):
        def forward(self, x):
            b, c, h, w = x.size()
            x = x.view(b, 2, 2, c // 4, h, w)
            return x.permute(0, 3, 4, 1, 5, 2).contiguous().view(b, c // 4, 2 * h, 2 * w)

    class Up(nn.Sequential):
        def __init__(self, c_in, c_out):
            super().__init__()
            self.add_module("conv", nn.Conv2d(c_in, 4 * c_out, kernel_size=3, padding=1))
            self.add_module("act", nn.LeakyReLU(0.1, inplace=True))
            self.add_module("shuffle", Shuffle())

    class Encoder(nn.Sequential):
        def __init__(self):
            super().__init__()
            sizes = [3, width, 2 * width, 4 * width, 8 * width]
            for number, pair in enumerate(itertools.pairwise(sizes)):
                self.add_module(f"down{number}", Down(*pair))
            self.add_module("flatten", Flatten())
            self.add_module("fc1", nn.Linear(8 * width * 16, 8 * width))
            self.add_module("fc2", nn.Linear(8 * width, 8 * width * 16))
            self.add_module("reshape", Reshape())
            self.add_module("up", Up(8 * width, 4 * width))

    return Encoder()


def test_an_autoencoders_encoder(m):
    net = encoder(m, 4)
    parameters = list(net.parameters())
    assert len(parameters) == 14 and all(p.requires_grad for p in parameters)
    out = net(m.randn(2, 3, 64, 64))
    assert out.shape == (2, 16, 8, 8)
    out.sum().backward()
    assert all(p.grad is not None and math.isfinite(p.grad.abs().sum()) for p in parameters)


def test_that_encoder_at_full_width():
    convcore = importlib.import_module("convcore")
    net = encoder(convcore, 128)
    assert 69e6 < sum(p.numel() for p in net.parameters()) < 72e6


# E. im2col by hand


def arange(m, n, *shape):
    return m.autograd.Variable(m.arange(n).view(*shape).float(), requires_grad=True)


def ones_conv(m, *args, **kwargs):
    conv = m.nn.Conv2d(*args, bias=False, **kwargs)
    conv.weight.data.copy_(m.ones_like(conv.weight))
    return conv


def test_padding_larger_than_the_kernel(m):
    conv, x = ones_conv(m, 1, 1, 2, padding=3, stride=2), arange(m, 25, 1, 1, 5, 5)
    out = conv(x)
    expected = rows("0 0 0 0 0", "0 0 3 7 0", "0 15 36 44 0", "0 35 76 84 0", "0 0 0 0 0")
    assert out[0, 0].tolist() == expected
    loss = out.sum()
    loss.backward()
    assert loss.item() == 300 and x.grad.min() == x.grad.max() == 1
    assert conv.weight.grad[0, 0].tolist() == [[48, 72], [72, 108]]


def test_strides_and_a_step(m):
    conv, x = ones_conv(m, 1, 1, 2, stride=2), arange(m, 64, 1, 1, 8, 8)
    optimizer = m.optim.SGD(conv.parameters(), lr=1)
    optimizer.zero_grad()
    out = conv(x)
    expected = ("18 26 34 42", "82 90 98 106", "146 154 162 170", "210 218 226 234")
    assert out[0, 0].tolist() == rows(*expected)
    out.sum().backward()
    assert out.sum().item() == 2016 and x.grad.min() == x.grad.max() == 1
    assert conv.weight.grad[0, 0].tolist() == [[432, 448], [560, 576]]
    optimizer.step()
    assert conv.weight[0, 0].tolist() == [[-431, -447], [-559, -575]]


def test_stride_1(m):
    conv, x = ones_conv(m, 1, 1, 2), arange(m, 64, 1, 1, 8, 8)
    out = conv(x)
    out.sum().backward()
    assert out.shape == (1, 1, 7, 7) and out.sum().item() == 6174
    assert conv.weight.grad[0, 0].tolist() == [[1323, 1372], [1715, 1764]]


def test_integers_are_copied_into_a_weight(m):
    conv, x = m.nn.Conv2d(1, 1, 2, padding=1, bias=False), arange(m, 9, 1, 1, 3, 3)
    conv.weight.data.copy_(m.arange(4).view(1, 1, 2, 2))
    out = conv(x)
    assert out[0, 0].tolist() == rows("0 3 8 4", "9 19 25 10", "21 37 43 16", "6 7 8 0")
    out.sum().backward()
    assert out.sum().item() == 216
    assert x.grad.min() == x.grad.max() == 6
    assert conv.weight.grad.min() == conv.weight.grad.max() == 36


def test_a_batch_of_two(m):
    conv, x = ones_conv(m, 3, 1, 2), arange(m, 150, 2, 3, 5, 5)
    conv(x).sum().backward()
    ends, middle = "1 2 2 2 1", "2 4 4 4 2"
    assert x.grad[1, 2].tolist() == x.grad[0, 0].tolist() == rows(ends, *[middle] * 3, ends)
    assert conv.weight.grad[0].tolist() == [
        [[1488, 1520], [1648, 1680]],
        [[2288, 2320], [2448, 2480]],
        [[3088, 3120], [3248, 3280]],
    ]


def test_the_im2col_view():
    from convcore import engine

    x = np.arange(9.0).reshape(1, 1, 3, 3)
    view = engine.im2col_view(x, 2, stride=2, dilation=2)
    assert view.tolist() == [[[[[[0, 2], [6, 8]]]]]]
    assert np.shares_memory(view, x)
