"""Random nets as ONNX models: layers of every kind, in thirty nets of a few each."""

import numpy as np
import pytest
from elements import layer_of
from onnx_nets import runtime_results

import convcore
from convcore import nn
from convcore.functions.table import ROWS

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import export, load  # noqa: E402

COUNT = 30
SIZES = {1: (13,), 2: (12, 10), 3: (6, 8, 7)}


class First(nn.Module):
    """The first output of a layer on (L, N, F) sequences."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Cell(nn.Module):
    """A recurrent cell on the last step of (N, L, F) sequences; its state is put before them."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        state = self.layer(x[:, -1])
        state = state[0] if isinstance(state, tuple) else state
        return convcore.cat([state.unsqueeze(1), x], 1)


def convolution(draw, shape, name):
    channels = shape[1]
    groups = draw.choice([g for g in (1, 2, 4) if channels % g == 0])
    mode = draw.choice(["zeros", "replicate", "circular"])
    # Padded by 1, each axis stays as it is or is halved.
    return getattr(nn, name)(
        channels, int(groups * draw.integers(1, 4)), 3, stride=int(draw.integers(1, 3)), padding=1,
        groups=int(groups), bias=bool(draw.integers(2)), padding_mode=str(mode),
    )  # fmt: skip


def transposed(draw, shape, name):
    stride = int(draw.integers(1, 3))
    return getattr(nn, name)(
        shape[1], int(draw.integers(2, 6)), 3, stride=stride, padding=1, output_padding=stride - 1
    )


def pool(draw, shape, name, **options):
    stride = int(draw.integers(1, 3)) if min(shape[2:]) > 3 else 1
    return getattr(nn, name)(2 if min(shape[2:]) > 1 else 1, stride, **options)


def norm(draw, shape, name):
    layer = getattr(nn, name)(shape[1], affine=bool(draw.integers(2)))
    if "Batch" in name:  # no statistics of nothing
        layer.running_mean.uniform_(-1, 1)
        layer.running_var.uniform_(0.5, 2)
    return layer


def pads(draw, shape, name, *more):
    highest = min(shape[2:]) - 1
    amounts = draw.integers(0, min(3, highest + 1), 2 * (len(shape) - 2))
    return getattr(nn, name)(tuple(int(a) for a in amounts), *more)


def scaled(draw, shape, name="Upsample", **options):
    return getattr(nn, name)(scale_factor=2, **options)


def even(layer, axis):
    """Return a layer after one that gives an axis an even size, by repeating what is there."""
    return nn.Sequential(Doubled(axis), layer)


class Doubled(nn.Module):
    """A tensor twice along an axis, the second time negative."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x):
        return convcore.cat([x, -x], self.axis)


def plain(name, *arguments, **options):
    """Return the kind of a layer that takes any shape."""
    return name, None, lambda draw, shape: getattr(nn, name)(*arguments, **options)


def at_rank(name, rank, make, *more, **options):
    """Return the kind of a layer for one number of spatial axes."""
    return name, rank, lambda draw, shape: make(draw, shape, name, *more, **options)


def ranked(name, make, *more, **options):
    return [at_rank(f"{name}{rank}d", rank, make, *more, **options) for rank in (1, 2, 3)]


# (name of the class, number of spatial axes or None, what makes one for a shape)
KINDS = [
    *(plain(layer_of(name), **row.cases[0]) for name, row in ROWS.items()),
    *(plain(name) for name in ("Identity", "RReLU", "Dropout", "AlphaDropout")),
    *(plain(name, 1) for name in ("Softmax", "LogSoftmax", "Softmin")),
    *((f"Dropout{rank}d", rank, lambda draw, shape, rank=rank: getattr(nn, f"Dropout{rank}d")())
      for rank in (1, 2, 3)),
    ("PReLU", None, lambda draw, shape: nn.PReLU(shape[1])),
    ("GLU", None, lambda draw, shape: even(nn.GLU(1), 1)),
    ("Linear", None, lambda draw, shape: nn.Linear(shape[-1], int(draw.integers(5, 12)))),
    ("LayerNorm", None, lambda draw, shape: nn.LayerNorm(tuple(shape[2:]))),
    ("RMSNorm", None, lambda draw, shape: nn.RMSNorm(tuple(shape[2:]))),
    ("GroupNorm", None, lambda draw, shape: even(nn.GroupNorm(2, 2 * shape[1]), 1)),
    ("SyncBatchNorm", None, lambda draw, shape: norm(draw, shape, "SyncBatchNorm")),
    ("ChannelShuffle", None, lambda draw, shape: even(nn.ChannelShuffle(2), 1)),
    ("LocalResponseNorm", 2, lambda draw, shape: nn.LocalResponseNorm(3)),
    ("PixelShuffle", 2, lambda draw, shape: even(even(nn.PixelShuffle(2), 1), 1)),
    ("PixelUnshuffle", 2, lambda draw, shape: even(even(nn.PixelUnshuffle(2), 2), 3)),
    ("Unflatten", None, lambda draw, shape: nn.Sequential(
        nn.Unflatten(1, (1, shape[1])), nn.Flatten(1, 2))),
    ("Flatten", 2, lambda draw, shape: nn.Sequential(nn.Flatten(2), nn.Unflatten(2, shape[2:]))),
    *ranked("Conv", convolution), *ranked("ConvTranspose", transposed),
    *ranked("BatchNorm", norm), *ranked("InstanceNorm", norm),
    *ranked("MaxPool", pool), *ranked("AvgPool", pool, count_include_pad=False),
    *ranked("AdaptiveAvgPool", lambda draw, shape, name: getattr(nn, name)(tuple(shape[2:]))),
    *ranked("AdaptiveMaxPool", lambda draw, shape, name: nn.Sequential(
        *(Doubled(axis) for axis in range(2, len(shape))), getattr(nn, name)(tuple(shape[2:])))),
    *ranked("ZeroPad", pads), *ranked("ConstantPad", pads, 0.5), *ranked("CircularPad", pads),
    *ranked("ReflectionPad", pads), *ranked("ReplicationPad", pads),
    ("Upsample", 1, lambda draw, shape: scaled(draw, shape, mode="linear")),
    ("Upsample", 2, lambda draw, shape: scaled(draw, shape, mode="bicubic")),
    ("Upsample", 3, lambda draw, shape: scaled(draw, shape, mode="trilinear")),
    at_rank("UpsamplingBilinear2d", 2, scaled), at_rank("UpsamplingNearest2d", 2, scaled),
    *((name, 1, lambda draw, shape, name=name: First(getattr(nn, name)(shape[2], 5)))
      for name in ("RNN", "GRU", "LSTM")),
    *((name, 1, lambda draw, shape, name=name: Cell(getattr(nn, name)(shape[2], shape[2])))
      for name in ("RNNCell", "GRUCell", "LSTMCell")),
]  # fmt: skip

# Layers in `nn` of which no random net is made, and why.
LEFT_OUT = {
    "is in tests of its own, for it takes more than one tensor or joins axes": {
        *("Unfold", "MultiheadAttention", "Transformer", "TransformerDecoder"),
        *("TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"),
    },
    "a container, a loss, a distance or a base": {
        *("Module", "Sequential", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList"),
        *("DataParallel", "CosineSimilarity", "PairwiseDistance", "RNNBase", "RNNCellBase"),
        *(name for name in nn.__all__ if name.endswith("Loss")),
    },
    "becomes another layer at its first call": {n for n in nn.__all__ if n.startswith("Lazy")},
    "takes integers or two inputs": {"Embedding"},
    "has no translation": {*("Fold", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d")},
}
# Kinds whose nodes round in another order than the layer does.
ROUNDED = {
    *({layer_of(name) for name, row in ROWS.items() if not row.operator}),
    *("Hardsigmoid", "SELU", "Softsign"),
    *("GroupNorm", "LocalResponseNorm", "RMSNorm", "Upsample", "UpsamplingBilinear2d"),
    *("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell"),
} - {"Hardtanh", "ReLU6", "Tanhshrink", "Threshold"}


def deal():
    """Return thirty lists of kinds with their number of spatial axes; each kind is in one."""
    draw = np.random.default_rng(0)
    cards = [(name, rank or int(draw.integers(1, 4)), make) for name, rank, make in KINDS]
    draw.shuffle(cards)
    cards.sort(key=lambda card: card[1])
    nets = []
    for rank in (1, 2, 3):
        own = [card for card in cards if card[1] == rank]
        count = COUNT // 3
        nets += [own[k::count] for k in range(count)]
    return nets


NETS = deal()


def random_net(number):
    """Return a random net, an input for it and the names of the kinds in it."""
    draw = np.random.default_rng(number)
    convcore.manual_seed(number)
    kinds = NETS[number]
    rank = kinds[0][1]
    x = convcore.tensor(draw.standard_normal((2, 4, *SIZES[rank])).astype(np.float32))
    layers, shape = [], x.shape
    for _, _, make in kinds:
        layers.append(make(draw, tuple(shape)).eval())
        with convcore.no_grad():
            shape = nn.Sequential(*layers).eval()(x).shape
    return nn.Sequential(*layers), x, {name for name, _, _ in kinds}


def test_every_kind_of_layer_is_in_a_net_or_left_out_for_a_reason():
    dealt = {name for kinds in NETS for name, _, _ in kinds}
    layers = {
        name
        for name in nn.__all__
        if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
    }
    out = set().union(*LEFT_OUT.values()) & layers
    assert len(NETS) == COUNT
    assert not dealt & out
    assert layers == dealt | out


@pytest.mark.parametrize("number", range(COUNT))
def test_random_nets_come_back_and_agree_with_onnx_runtime(number, tmp_path):
    net, recorded, kinds = random_net(number)
    file = tmp_path / "net.onnx"
    export(net, recorded, file)
    x = recorded.flip(0) * 0.9  # what was computed from the first input is no constant
    onnx.checker.check_model(onnx.load(file), full_check=True)
    loaded = load(file)
    with convcore.no_grad():
        expected, result = net.eval()(x), loaded(x)
    convcore.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)
    if not kinds & ROUNDED:
        assert result.equal(expected)
    pytest.importorskip("onnxruntime")
    (other,) = runtime_results(file, x)
    assert np.abs(other - expected.numpy()).max() <= 1e-5 * max(1, expected.abs().max().item())
