"""Every layer and loss beside PyTorch's, over drawn arguments: values and gradients.

A draw is (class, arguments, inputs).  It runs in float64, where both must agree to the last digits,
and in float32, where PyTorch's own distance from float64 is the bound; in both memory formats.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from elements import ACTIVATIONS, layer_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import nn

SEEDS = st.integers(0, 2**32 - 1)
SMALL = st.integers(1, 3)
BOOLS = st.booleans()
NUMBERS = st.floats(0.125, 2, width=32)
REDUCTIONS = st.sampled_from(["mean", "sum", "none"])


def some(**strategies):
    """Draw some of the arguments, and leave the others to their defaults."""
    return st.fixed_dictionaries({}, optional=strategies)


def per_axis(numbers, rank):
    return numbers | st.tuples(*[numbers] * rank)


# Shapes: an image of few channels, with or without a batch


@st.composite
def images(draw, rank, channels=SMALL, least=3, most=7, batched=None):
    batch = (draw(st.integers(1, 3)),) if batched or (batched is None and draw(BOOLS)) else ()
    sizes = draw(st.tuples(*[st.integers(least, most)] * rank))
    return (*batch, draw(channels), *sizes)


ANY = images(2) | st.sampled_from([(4,), (2, 3), (2, 3, 4), (5, 4, 9, 17)])


# Layers: strategies of (arguments, shape of the input)


def plain(arguments=None, shape=ANY):
    return st.tuples(some() if arguments is None else arguments, shape)


@st.composite
def along_axis(draw):
    shape = draw(ANY)
    return {"dim": draw(st.integers(-len(shape), len(shape) - 1))}, shape


@st.composite
def parametric(draw):
    shape = draw(images(2, batched=True))
    return {"num_parameters": draw(st.sampled_from([1, shape[1]])), "init": draw(NUMBERS)}, shape


@st.composite
def halves(draw):
    shape = [2 * size for size in draw(images(2, most=4))]
    return {"dim": draw(st.integers(-len(shape), len(shape) - 1))}, tuple(shape)


@st.composite
def linear(draw):
    shape = draw(ANY)
    return {"in_features": shape[-1], "out_features": draw(SMALL), "bias": draw(BOOLS)}, shape


@st.composite
def convolutions(draw, rank, transposed=False):
    groups = draw(st.integers(1, 2))
    c_in, c_out = (groups * draw(SMALL) for _ in range(2))
    stride = draw(per_axis(SMALL, rank))
    arguments = {
        "in_channels": c_in,
        "out_channels": c_out,
        "kernel_size": draw(per_axis(SMALL, rank)),
        "stride": stride,
        "groups": groups,
        "bias": draw(BOOLS),
        "padding": draw(per_axis(st.integers(0, 1), rank)),
        "dilation": draw(per_axis(st.integers(1, 2), rank)),
    }
    if transposed:
        least = stride if isinstance(stride, int) else min(stride)
        arguments["output_padding"] = draw(st.integers(0, least - 1))
    else:
        modes = ["zeros", "reflect", "replicate", "circular"]
        arguments["padding_mode"] = draw(st.sampled_from(modes))
    return arguments, draw(images(rank, st.just(c_in), 5, 7))


@st.composite
def pools(draw, rank, kind):
    kernel = draw(st.integers(2, 3))
    arguments = {"kernel_size": kernel} | draw(
        some(stride=per_axis(SMALL, rank), padding=st.integers(0, 1), ceil_mode=BOOLS)
    )
    if kind == "max":
        arguments |= draw(some(dilation=st.integers(1, 2)))
    else:
        arguments |= draw(some(count_include_pad=BOOLS))
        if rank > 1:
            arguments |= draw(some(divisor_override=SMALL))
    return arguments, draw(images(rank, least=5))


def adaptive(rank):
    own = st.integers(1, 9) if rank == 1 else st.integers(1, 9) | st.none()
    sizes = st.integers(1, 9) | st.tuples(*[own] * rank)
    return st.tuples(st.fixed_dictionaries({"output_size": sizes}), images(rank))


def pads(rank, value=False):
    sizes = st.integers(0, 2) | st.tuples(*[st.integers(-1, 2)] * (2 * rank))
    arguments = {"padding": sizes} | ({"value": NUMBERS} if value else {})
    return st.tuples(st.fixed_dictionaries(arguments), images(rank))


@st.composite
def batch_norms(draw, rank):
    shape = draw(images(rank, batched=True, least=2))
    known = {"eps": NUMBERS, "momentum": NUMBERS | st.none(), "affine": BOOLS}
    return {"num_features": shape[1]} | draw(some(**known, track_running_stats=BOOLS)), shape


@st.composite
def group_norms(draw):
    groups = draw(SMALL)
    shape = draw(images(2, SMALL.map(lambda n: n * groups), batched=True))
    return {"num_groups": groups, "num_channels": shape[1]} | draw(
        some(eps=NUMBERS, affine=BOOLS)
    ), shape


@st.composite
def layer_norms(draw):
    shape = draw(ANY)
    axes = draw(st.integers(1, len(shape)))
    known = {"eps": NUMBERS, "elementwise_affine": BOOLS, "bias": BOOLS}
    return {"normalized_shape": shape[-axes:]} | draw(some(**known)), shape


@st.composite
def upsamplings(draw):
    rank = draw(SMALL)
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[rank]
    arguments = {"mode": draw(st.sampled_from(["nearest", "nearest-exact", *smooth]))}
    if draw(BOOLS):
        arguments["size"] = draw(per_axis(st.integers(1, 9), rank))
    else:
        arguments["scale_factor"] = draw(st.sampled_from([0.5, 1.5, 2, 3]))
    if "nearest" not in arguments["mode"]:
        arguments["align_corners"] = draw(BOOLS)
    return arguments, draw(images(rank, batched=True))


@st.composite
def shuffles(draw, inverse):
    factor = draw(SMALL)
    *batch, c, h, w = draw(images(2))
    name = "downscale_factor" if inverse else "upscale_factor"
    shape = (c, h * factor, w * factor) if inverse else (c * factor**2, h, w)
    return {name: factor}, (*batch, *shape)


@st.composite
def flattened(draw):
    shape = draw(ANY)
    first, last = sorted(draw(st.tuples(*[st.integers(0, len(shape) - 1)] * 2)))
    return {"start_dim": first, "end_dim": draw(st.sampled_from([last, last - len(shape)]))}, shape


@st.composite
def unflattened(draw):
    shape = list(draw(images(2)))
    axis, sizes = draw(st.integers(0, len(shape) - 1)), draw(st.tuples(SMALL, SMALL))
    shape[axis] = sizes[0] * sizes[1]
    sizes = draw(st.sampled_from([sizes, (-1, sizes[1])]))
    return {"dim": axis, "unflattened_size": sizes}, tuple(shape)


PATCHES = st.fixed_dictionaries(
    {"kernel_size": per_axis(SMALL, 2)},
    optional={
        "stride": per_axis(SMALL, 2),
        "padding": st.integers(0, 1),
        "dilation": st.integers(1, 2),
    },
)


@st.composite
def folded(draw):
    arguments, shape = draw(PATCHES), draw(images(2, least=5))
    columns = nn.Unfold(**arguments)(convcore.zeros(*shape)).shape
    return arguments | {"output_size": shape[-2:]}, tuple(columns)


INPLACE = some(inplace=st.just(False))
LAYERS = {layer_of(name): plain() for name, arguments, _ in ACTIVATIONS if not arguments} | {
    "ReLU": plain(INPLACE),
    "LeakyReLU": plain(some(negative_slope=st.floats(-1, 2, width=32))),
    "ELU": plain(some(alpha=NUMBERS)),
    "CELU": plain(some(alpha=NUMBERS)),
    "Hardtanh": plain(some(min_val=NUMBERS.map(lambda n: -n), max_val=NUMBERS)),
    "Threshold": plain(st.fixed_dictionaries({"threshold": NUMBERS, "value": NUMBERS})),
    "PReLU": parametric(),
    "GELU": plain(some(approximate=st.sampled_from(["none", "tanh"]))),
    "Softplus": plain(some(beta=NUMBERS, threshold=NUMBERS)),
    "Hardshrink": plain(some(lambd=NUMBERS)),
    "Softshrink": plain(some(lambd=NUMBERS)),
    "GLU": halves(),
    "Softmax": along_axis(),
    "LogSoftmax": along_axis(),
    "Softmin": along_axis(),
    "Identity": plain(),
    "Linear": linear(),
    "Flatten": flattened(),
    "Unflatten": unflattened(),
    "Unfold": plain(PATCHES, images(2, least=5)),
    "Fold": folded(),
    "PixelShuffle": shuffles(False),
    "PixelUnshuffle": shuffles(True),
    "GroupNorm": group_norms(),
    "LayerNorm": layer_norms(),
    "Upsample": upsamplings(),
    "UpsamplingNearest2d": plain(some(scale_factor=SMALL), images(2, batched=True)),
    "UpsamplingBilinear2d": plain(
        st.fixed_dictionaries({"size": st.integers(1, 9)}), images(2, batched=True)
    ),
}
for rank in (1, 2, 3):
    LAYERS |= {
        f"Conv{rank}d": convolutions(rank),
        f"ConvTranspose{rank}d": convolutions(rank, transposed=True),
        f"MaxPool{rank}d": pools(rank, "max"),
        f"AvgPool{rank}d": pools(rank, "average"),
        f"AdaptiveAvgPool{rank}d": adaptive(rank),
        f"AdaptiveMaxPool{rank}d": adaptive(rank),
        f"BatchNorm{rank}d": batch_norms(rank),
        f"InstanceNorm{rank}d": batch_norms(rank),
        f"ZeroPad{rank}d": pads(rank),
        f"ConstantPad{rank}d": pads(rank, value=True),
        f"ReflectionPad{rank}d": pads(rank),
        f"ReplicationPad{rank}d": pads(rank),
        f"CircularPad{rank}d": pads(rank),
    }

# Losses: strategies of (arguments, kind of target, shape of the input)


def loss(kind, shape=ANY, **arguments):
    return st.tuples(some(reduction=REDUCTIONS, **arguments), st.just(kind), shape)


SCORES = st.tuples(st.integers(1, 4), st.integers(2, 12)) | images(
    2, st.integers(2, 5), batched=True
)
LOSSES = {
    "L1Loss": loss("number"),
    "MSELoss": loss("number"),
    "SmoothL1Loss": loss("number", beta=NUMBERS | st.just(0.0)),
    "HuberLoss": loss("number", delta=NUMBERS),
    "KLDivLoss": loss("probability", log_target=BOOLS),
    "BCELoss": loss("probability"),
    "BCEWithLogitsLoss": loss("probability"),
    "NLLLoss": loss("class", SCORES, weight=BOOLS, ignore_index=st.integers(0, 2)),
    "CrossEntropyLoss": loss(
        "class", SCORES, weight=BOOLS, ignore_index=st.integers(0, 2), label_smoothing=NUMBERS
    ),
    "PairwiseDistance": st.tuples(
        some(p=st.sampled_from([1.0, 2.0, 3.0]), keepdim=BOOLS), st.just("number"), ANY
    ),
    "CosineSimilarity": st.tuples(some(eps=NUMBERS), st.just("number"), images(2)),
}

# Random, tested by what they keep; kept with pooling's indices; without a computation of their own;
# and those of test_more_layers.py.
ELSEWHERE = {
    *("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"),
    *("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"),
    *("Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"),
    # Of indices or of several inputs: test_rnn.py, test_sparse.py, test_transformer.py.
    *("RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "RNNBase", "RNNCellBase"),
    *("Embedding", "RMSNorm", "MultiheadAttention", "Transformer"),
    *("TransformerEncoder", "TransformerEncoderLayer"),
    *("TransformerDecoder", "TransformerDecoderLayer"),
    # Their shape comes with the first input, or from another module: test_lazy.py.
    *(name for name in nn.__all__ if name.startswith("Lazy")),
    *("DataParallel", "SyncBatchNorm"),
    *("CTCLoss", "ChannelShuffle", "CosineEmbeddingLoss"),
    *("GaussianNLLLoss", "HingeEmbeddingLoss", "LocalResponseNorm", "MarginRankingLoss"),
    *("PoissonNLLLoss", "RReLU", "TripletMarginLoss"),
}


def test_every_layer_is_drawn():
    classes = inspect.getmembers(nn, inspect.isclass)
    modules = {name for name, one in classes if issubclass(one, nn.Module)}
    assert modules == {*LAYERS, *LOSSES, *ELSEWHERE}


# Comparison

# Where PyTorch has a constant of its own, 1 / 6 and 1 / alpha, in float32 alone.
ROUNDED = {"Hardsigmoid": 1e-7, "CELU": 1e-6}


def tensor(lib, array, dtype, last):
    """Return a leaf of an array, channels_last if that is asked for and can be."""
    made = lib.from_numpy(array if array.dtype.kind == "i" else array.astype(dtype))
    if last and made.ndim == 4:
        made = made.contiguous(memory_format=lib.channels_last)
    return made.requires_grad_() if array.dtype.kind == "f" else made


def in_library(lib, values, dtype):
    """Return a dictionary with its arrays as the library's, those of floats in a dtype."""
    return {
        key: tensor(lib, value, dtype, False).detach() if isinstance(value, np.ndarray) else value
        for key, value in values.items()
    }


def computed(lib, name, arguments, arrays, dtype, last, state, seed):
    """Return the error, if there was one, and else a layer's result, all gradients, its buffers."""
    inputs = [tensor(lib, array, dtype, last) for array in arrays]
    try:
        layer = getattr(lib.nn, name)(**in_library(lib, arguments, dtype)).to(getattr(lib, dtype))
        layer.load_state_dict(in_library(lib, state, dtype))
        out = layer(*inputs)
        grad = np.random.default_rng(seed).standard_normal(tuple(out.shape))
        out.backward(lib.from_numpy(np.asarray(grad, dtype)))
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return error, []
    leaves = [leaf for leaf in (*inputs, *layer.parameters()) if leaf.requires_grad]
    gradients = [leaf.grad.numpy() for leaf in leaves]
    return None, [out.detach().numpy(), *gradients, *(kept.numpy() for kept in layer.buffers())]


def state_of(torch, name, arguments, rng):
    """Return numbers for a layer's parameters, and its buffers as they are; nothing if it fails."""
    try:
        layer = getattr(torch.nn, name)(**in_library(torch, arguments, "float32"))
    except (RuntimeError, ValueError, TypeError):
        return {}
    state = {key: value.numpy().copy() for key, value in layer.state_dict().items()}
    drawn = {key: rng.standard_normal(state[key].shape) for key, _ in layer.named_parameters()}
    return state | {key: np.asarray(value) for key, value in drawn.items()}


def check(torch, name, arguments, arrays, rng):
    """Compare in both formats and dtypes; where one library raises an error, so does the other."""
    state, seed = state_of(torch, name, arguments, rng), int(rng.integers(2**32))
    rtol = ROUNDED.get(name, 1e-10)
    for last in (False, True):
        found = {}
        for dtype in ("float64", "float32"):
            case = (name, arguments, arrays, dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error, theirs = computed(torch, *case, last, state, seed)
                if last and error:  # a few of PyTorch's layers know no channels_last
                    error, theirs = computed(torch, *case, False, state, seed)
                own_error, ours = computed(convcore, *case, last, state, seed)
            assert (own_error is None) == (error is None), (own_error, error)
            found[dtype] = ours, theirs
        for exact, ours64, theirs, ours in zip(
            found["float64"][1], found["float64"][0], *found["float32"][::-1], strict=True
        ):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            scale = max(1, np.abs(exact).max(initial=0, where=np.isfinite(exact)))
            np.testing.assert_allclose(ours64, exact, rtol=rtol, atol=rtol * scale)
            distance = np.abs(theirs - exact).max(initial=0, where=np.isfinite(exact))
            np.testing.assert_allclose(ours, exact, rtol=1e-5, atol=4 * distance + 2e-6 * scale)


@pytest.mark.parametrize("name", LAYERS)
@examples(12)
@given(data=st.data(), seed=SEEDS)
def test_layer_agrees_with_pytorch(torch, name, data, seed):
    arguments, shape = data.draw(LAYERS[name])
    rng = np.random.default_rng(seed)
    check(torch, name, arguments, [2 * rng.standard_normal(shape)], rng)


@pytest.mark.parametrize("name", LOSSES)
@examples(12)
@given(data=st.data(), seed=SEEDS)
def test_loss_agrees_with_pytorch(torch, name, data, seed):
    arguments, kind, shape = data.draw(LOSSES[name])
    rng = np.random.default_rng(seed)
    input, target = 2 * rng.standard_normal((2, *shape))
    if kind == "probability":
        target = rng.uniform(0.1, 0.9, shape)
        input = rng.uniform(0.1, 0.9, shape) if name == "BCELoss" else input
    elif kind == "class":
        target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
        weighted = arguments.pop("weight", False)
        arguments |= {"weight": rng.uniform(0.1, 2, shape[1])} if weighted else {}
        if arguments.get("label_smoothing", 0) > 1:
            arguments["label_smoothing"] /= 2
    check(torch, name, arguments, [np.asarray(input), np.asarray(target)], rng)
