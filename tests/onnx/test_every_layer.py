"""Each layer of nn is exported as it computes, or refused: never as what it gave in one run."""

import inspect

import pytest

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export  # noqa: E402
from convcore.onnx.nesting import tensors_in  # noqa: E402

SEQUENCE, ROWS, MAPS = (5, 2, 4), (2, 4), (1, 4, 4, 4)
# Arguments of the constructor, and the shapes of inputs, where they are not the usual ones.
LAYERS = {
    "Flatten": ((), MAPS),
    "Fold": (((4, 4), 2), (1, 12, 9)),
    "GroupNorm": ((2, 4), MAPS),
    "KLDivLoss": ((None, None, "batchmean"), ROWS, ROWS),
    "LayerNorm": ((4,), ROWS),
    "Linear": ((4, 3), ROWS),
    "LocalResponseNorm": ((2,), MAPS),
    "MultiheadAttention": ((4, 2), SEQUENCE, SEQUENCE, SEQUENCE),
    "RMSNorm": ((4,), ROWS),
    "SyncBatchNorm": ((4,), MAPS),
    "Threshold": ((0.3, 0.1), ROWS),
    "Transformer": ((4, 2, 1, 1), SEQUENCE, SEQUENCE),
    "TransformerDecoderLayer": ((4, 2), SEQUENCE, SEQUENCE),
    "TransformerEncoderLayer": ((4, 2), SEQUENCE),
    "Unflatten": ((1, (2, 2)), ROWS),
    **{name: ((), ROWS, ROWS) for name in ("CosineSimilarity", "PairwiseDistance")},
    **{
        name: ((2,), MAPS)
        for name in ("ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Unfold")
    },
    **{name: ((4, 3), SEQUENCE) for name in ("GRU", "LSTM", "RNN")},
    **{name: ((4, 3), ROWS) for name in ("GRUCell", "LSTMCell", "RNNCell")},
    **{n: ((None, 2), MAPS) for n in ("Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d")},
    **{name: ((1,), ROWS) for name in ("LogSoftmax", "Softmax", "Softmin")},
    **{f"ConstantPad{n}d": ((1, 0.5), (1, 2, 4, 4, 4)[: n + 2]) for n in (1, 2, 3)},
    **{f"Dropout{n}d": ((), (1, 2, 4, 4, 4)[: n + 2]) for n in (1, 2, 3)},
}
# Containers, those that take integers, and losses that take more than two tensors alike.
LEFT_OUT = {
    *("CTCLoss", "CosineEmbeddingLoss", "DataParallel", "Embedding"),
    *("GaussianNLLLoss", "LazyLinear", "MarginRankingLoss", "MaxUnpool1d"),
    *("MaxUnpool2d", "MaxUnpool3d", "Module", "ModuleDict", "ModuleList"),
    *("NLLLoss", "ParameterDict", "ParameterList", "RNNBase"),
    *("RNNCellBase", "TransformerDecoder", "TransformerEncoder", "TripletMarginLoss"),
}
NAMES = sorted(
    name
    for name, kind in vars(nn).items()
    if inspect.isclass(kind) and issubclass(kind, nn.Module) and name not in LEFT_OUT
)


def layer_of(name):
    """Return the arguments of a layer's constructor, and the shapes of its inputs."""
    if name in LAYERS:
        return LAYERS[name]
    ranks = next((int(letter) for letter in name if letter.isdigit()), None)
    if name.endswith("Loss"):
        return (), ROWS, ROWS
    if ranks is None:
        return (), ROWS
    shape = (1, 2) + (4,) * ranks
    if "Conv" in name:
        return (2, 3, 2), shape
    return ((2.0, 2) if name.startswith("LP") else (2,)), shape


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_is_exported_as_it_computes_or_refused(name):
    arguments, *shapes = layer_of(name)
    net = getattr(nn, name)(*arguments).eval()
    recorded, other = ([convcore.rand(*shape) for shape in shapes] for _ in range(2))
    expected = tensors_in(net(*other))
    try:
        program = export(net, tuple(recorded))
    except OnnxError:
        return
    for found, value in zip(program(*other), expected, strict=True):
        convcore.testing.assert_close(found, value, rtol=1e-4, atol=1e-5)
