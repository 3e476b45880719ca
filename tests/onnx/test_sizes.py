"""Sizes of free axes that a net reads are computed by the model, as PyTorch's are."""

import math

import numpy as np
import pytest
from onnx_nets import runtime_results

import convcore
from convcore import nn
from convcore.nn import functional as F

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import export, load  # noqa: E402
from convcore.onnx.sizes import FreeSize  # noqa: E402


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.token = nn.Parameter(convcore.rand(1, 1, 4))
        self.places = nn.Parameter(convcore.rand(1, 40, 4))
        self.lstm = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x):
        return self.function(self, x)


def assert_agrees(net, given, free, shapes):
    """Export, and compare with ONNX Runtime and with what is loaded at other sizes."""
    net.eval()
    program = export(net, given, dynamic_shapes=[free])
    loaded = load(program.model_proto)
    data = program.model_proto.SerializeToString()
    for shape in (given.shape, *shapes):
        x = convcore.rand(*shape)
        with convcore.no_grad():
            expected = net(x)
            convcore.testing.assert_close(loaded(x), expected, rtol=1e-4, atol=1e-5)
        for found in runtime_results(data, x) or ():
            np.testing.assert_allclose(found, expected.numpy(), 1e-4, 1e-5)
    return [node.op_type for node in program.model_proto.graph.node]


def attention(net, x):
    b, n, c = x.shape
    q = x.view(b, n, 2, c // 2).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    return y.transpose(1, 2).reshape(b, n, c)


def heads(net, x):
    b, n, c = x.shape
    q = x.view(b, n, 2, c // 2).transpose(1, 2).reshape(b * 2, n, c // 2)
    mask = convcore.full((n, n), -math.inf).triu(1)
    y = (q @ q.transpose(1, 2) + mask).softmax(-1) @ q
    return y.view(b, 2, n, -1).transpose(1, 2).reshape(b, n, c)


def started(net, x):
    state = convcore.zeros(1, x.shape[0], 5)
    return net.lstm(x, (state, convcore.zeros(1, x.size(0), 5)))[0]


FOLLOWED = {
    "mean": lambda net, x: x.sum(0) / x.shape[0],
    "len": lambda net, x: x.sum(0) / len(x),
    "numel": lambda net, x: x.sum() / x.numel(),
    "token": lambda net, x: convcore.cat([net.token.expand(x.shape[0], -1, -1), x], 1),
    "view": lambda net, x: x.view(x.shape[0] * 2, -1),
    "joined": lambda net, x: x.reshape((*x.shape[:1], -1)),
    "unflatten": lambda net, x: x.flatten(0, 1).unflatten(0, (x.shape[0], x.shape[1])),
    "arange": lambda net, x: x + convcore.arange(x.shape[1]).view(-1, 1),
    "embedded": lambda net, x: x + net.places[0][convcore.arange(x.shape[1])],
    "cut": lambda net, x: x + net.places[:, : x.size(1)],
    "last": lambda net, x: x[:, x.shape[1] - 1],
    "narrow": lambda net, x: x.narrow(1, 0, x.shape[1] - 1),
    "zeros": lambda net, x: convcore.cat([x[:, 0], convcore.zeros(x.shape[0], 3)], 1),
    "new": lambda net, x: x + x.new_ones(x.shape[0], 1, 4) + x.new_full((x.shape[1], 1), 2.0),
    "ones": lambda net, x: x + convcore.ones((x.shape[0], 1, 4)).tril(),
    "half": lambda net, x: x[:, : x.shape[1] // 2] * 2 - (-x.shape[1] // 2) + x.shape[1] % 3,
    "repeat": lambda net, x: net.token.repeat(x.shape[0], x.shape[1], 1) + x,
    "tensor": lambda net, x: (
        x * convcore.tensor(x.shape[1]) + convcore.tensor([x.shape[0], 1.0])[0]
    ),
    "attention": attention,
    "heads": heads,
    "lstm": started,
}


@pytest.mark.parametrize("function", FOLLOWED.values(), ids=FOLLOWED)
def test_a_size_is_computed_by_the_model(function):
    shapes = [(5, 7, 4), (1, 2, 4), (2, 9, 4)]
    assert_agrees(Call(function), convcore.rand(3, 2, 4), {0: "batch", 1: "n"}, shapes)


@pytest.mark.parametrize("function", FOLLOWED.values(), ids=FOLLOWED)
def test_sizes_of_fixed_axes_are_numbers(function):
    net, x = Call(function).eval(), convcore.rand(3, 2, 4)
    program = export(net, x)
    assert "Shape" not in [node.op_type for node in program.model_proto.graph.node]
    convcore.testing.assert_close(program(x)[0], net(x).detach(), rtol=1e-5, atol=1e-6)


def test_a_size_that_a_reshape_takes_over_needs_no_node():
    net = Call(lambda net, x: x.view(x.shape[0], -1))
    assert "Shape" not in assert_agrees(net, convcore.rand(3, 2, 4), {0: "b"}, [(5, 2, 4)])


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(convcore.rand(1, 1, 8))
        self.places = nn.Parameter(convcore.rand(1, 26, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        n, _, h, w = x.shape
        y = self.patches(x).reshape(n, 8, (h // 4) * (w // 4)).permute(0, 2, 1)
        y = convcore.cat([self.token.expand(n, -1, -1), y], 1)
        return self.head(self.encoder(y + self.places[:, : y.size(1)])[:, 0])


def test_a_vision_transformer():
    shapes = [(1, 3, 8, 8), (5, 3, 16, 12), (3, 3, 20, 20)]
    assert_agrees(Vit(), convcore.rand(2, 3, 8, 8), {0: "n", 2: "h", 3: "w"}, shapes)


class UNet(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode
        self.down, self.deep = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, 2, 1)
        self.norm = nn.GroupNorm(2, 4)
        self.up = nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x):
        y = self.norm(self.down(x)).relu()
        deep = F.interpolate(self.deep(y), size=y.shape[2:], mode=self.mode)
        return self.up(convcore.cat([y, deep], 1))


def test_a_u_net_of_free_height_and_width():
    shapes = [(1, 2, 9, 12), (3, 2, 8, 7), (2, 2, 11, 11)]
    free = {0: "n", 2: "h", 3: "w"}
    assert_agrees(UNet("bilinear"), convcore.rand(1, 2, 8, 8), free, shapes)


@pytest.mark.parametrize("layer", [nn.ChannelShuffle(2), nn.PixelUnshuffle(2)], ids=str)
def test_layers_that_move_pixels_take_other_sizes(layer):
    shapes = [(1, 4, 8, 6), (3, 4, 2, 2), (2, 4, 10, 4)]
    assert_agrees(layer, convcore.rand(2, 4, 4, 6), {0: "n", 2: "h", 3: "w"}, shapes)


def test_free_sizes_are_ints_that_know_what_they_are_in_each_run():
    n = FreeSize(3, ("Shape", "x", 0), (3, 6))
    assert n == 3 and isinstance(n, int) and f"{n}" == "3"
    computed = {
        n + 1: (4, 7),
        1 - n: (-2, -5),
        n * n: (9, 36),
        n // 2: (1, 3),
        8 % n: (2, 2),
        -n: (-3, -6),
    }
    assert all(each.values == values for each, values in computed.items() if each != 2)
    assert type(8 % n) is int  # it is 2 in both
    assert type(n - n) is int and type(n / 2) is float and type(n * 0.5) is float
    assert isinstance(convcore.Size([n]).__add__((2,))[0], FreeSize)
    assert isinstance(convcore.Size([2, n]).numel(), FreeSize)
    assert (n * 2 + 1).expression == ("Add", ("Mul", ("Shape", "x", 0), 2), 1)
