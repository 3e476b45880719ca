"""Calls of functions and layers whose operands have to fit one another, which drawn ones seldom do.

A call is a function of `Operands`, which makes its tensors: new ones each time, of the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from elements import layer_of

import convcore
from convcore import Tensor, nn
from convcore.functions.table import ROWS
from convcore.nn import functional as F


class Operand(NamedTuple):
    """A tensor that a call reads, with its version and its values before the call."""

    tensor: Tensor
    version: int
    values: bytes


class Operands:
    """The operands of one call; ``leaves`` are what has a gradient."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(20)
        self.reads: list[Operand] = []
        self.leaves: list[Tensor] = []

    def read(self, tensor: Tensor) -> Tensor:
        """Make a tensor an operand; return it."""
        self.reads.append(Operand(tensor, tensor._version, values_of(tensor)))
        return tensor

    def floats(self, *shape: int) -> Tensor:
        """Return numbers around 0 that require a gradient; they are no leaf."""
        return self.of(self.rng.standard_normal(shape))

    def shares(self, *shape: int) -> Tensor:
        """Return numbers between 0 and 1 that require a gradient."""
        return self.of(self.rng.uniform(0.1, 0.9, shape))

    def of(self, values: Any) -> Tensor:
        """Return given numbers, which require a gradient."""
        leaf = convcore.tensor(np.asarray(values, np.float32).tolist()).requires_grad_()
        self.leaves.append(leaf)
        return self.read(leaf.reshape(np.shape(values)).clone())

    def kept(self, *shape: int) -> Tensor:
        """Return numbers between 0 and 1 without a gradient, such as running statistics."""
        return self.read(convcore.tensor(self.rng.uniform(0.1, 0.9, shape).astype("f")))

    def ints(self, high: int, *shape: int, low: int = 0) -> Tensor:
        """Return integers in [low, high)."""
        return self.read(convcore.tensor(self.rng.integers(low, high, shape)))

    def bools(self, *shape: int) -> Tensor:
        return self.read(convcore.tensor(self.rng.random(shape) < 0.5))

    def listed(self, *values: Any) -> Tensor:
        """Return a tensor of given integers or bools."""
        return self.read(convcore.tensor(values))

    def layer(self, name: str, *args: Any, **kwargs: Any) -> nn.Module:
        """Return a new layer; its parameters and buffers are operands too."""
        convcore.manual_seed(7)
        made = getattr(nn, name)(*args, **kwargs)
        self.leaves += made.parameters()
        for tensor in (*made.parameters(), *made.buffers()):
            self.read(tensor)
        return made


def values_of(tensor: Tensor) -> bytes:
    return tensor.detach().clone()._array.tobytes()


Call = Callable[[Operands], Any]


def _set(x: Tensor, key: Any, value: Any) -> Tensor:
    x[key] = value
    return x


def _sizes(n: int, rank: int) -> tuple[int, ...]:
    return (n,) * rank


def _image(o: Operands, rank: int, channels: int = 2, size: int = 5) -> Tensor:
    return o.floats(2, channels, *_sizes(size, rank))


def _probs(o: Operands, *shape: int) -> Tensor:
    return F.log_softmax(o.floats(*shape), -1)


FUNCTIONS: dict[str, Call] = {
    "addmm": lambda o: convcore.addmm(o.floats(3, 2), o.floats(3, 5), o.floats(5, 2)),
    "addmm_": lambda o: o.floats(3, 2).addmm_(o.floats(3, 5), o.floats(5, 2)),
    "affine_grid": lambda o: F.affine_grid(o.floats(2, 2, 3), (2, 1, 3, 4), align_corners=False),
    "baddbmm": lambda o: convcore.baddbmm(o.floats(4, 3, 2), o.floats(4, 3, 5), o.floats(4, 5, 2)),
    "baddbmm_": lambda o: o.floats(4, 3, 2).baddbmm_(o.floats(4, 3, 5), o.floats(4, 5, 2)),
    "batch_norm": lambda o: F.batch_norm(
        o.floats(3, 2, 4), o.kept(2), o.kept(2), o.floats(2), o.floats(2), training=True
    ),
    "batch_norm, given statistics": lambda o: F.batch_norm(
        o.floats(3, 2, 4), o.kept(2), o.kept(2), o.floats(2), o.floats(2)
    ),
    "batch_norm_activation": lambda o: F.batch_norm_activation(
        *(o.floats(3, 2, 4), o.kept(2), o.kept(2), o.floats(2), o.floats(2), True),
        residual=o.floats(3, 2, 4),
    ),
    "binary_cross_entropy": lambda o: F.binary_cross_entropy(
        o.shares(3, 2), o.kept(3, 2), o.kept(3, 2)
    ),
    "binary_cross_entropy_with_logits": lambda o: F.binary_cross_entropy_with_logits(
        o.floats(3, 2), o.kept(3, 2), o.kept(3, 2), pos_weight=o.kept(2)
    ),
    "bincount": lambda o: convcore.bincount(o.ints(5, 7)),
    "bincount, weights": lambda o: convcore.bincount(o.ints(5, 7), o.kept(7), 3),
    "bmm": lambda o: convcore.bmm(o.floats(4, 3, 5), o.floats(4, 5, 2)),
    "cholesky": lambda o: _cholesky(o),
    "cholesky_solve": lambda o: o.floats(3, 2).cholesky_solve(_cholesky(o)),
    "cosine_embedding_loss": lambda o: F.cosine_embedding_loss(
        o.floats(4, 3), o.floats(4, 3), o.listed(1, -1, 1, 1)
    ),
    "cross": lambda o: convcore.linalg.cross(o.floats(2, 3), o.floats(2, 3)),
    "cross_entropy, classes": lambda o: F.cross_entropy(
        o.floats(4, 3, 2), o.ints(3, 4, 2), o.kept(3), label_smoothing=0.1
    ),
    "cross_entropy, probabilities": lambda o: F.cross_entropy(
        o.floats(4, 3), o.shares(4, 3), o.kept(3)
    ),
    "ctc_loss": lambda o: F.ctc_loss(
        *(_probs(o, 6, 2, 4), o.ints(4, 2, 3, low=1), o.listed(6, 5), o.listed(3, 2))
    ),
    "dropout": lambda o: F.dropout(o.floats(3, 4), 0.5),
    "einsum": lambda o: convcore.einsum("ij,jk->ik", o.floats(2, 3), o.floats(3, 4)),
    "einsum, repeated": lambda o: convcore.einsum("ii,ij->j", o.floats(3, 3), o.floats(3, 4)),
    "embedding": lambda o: F.embedding(o.ints(5, 2, 3), o.floats(5, 4), 1, scale_grad_by_freq=True),
    "embedding, norms": lambda o: F.embedding(o.ints(5, 2, 3), o.kept(5, 4), max_norm=0.5),
    "fold": lambda o: F.fold(o.floats(2, 8, 9), (4, 4), 2),
    "gather": lambda o: convcore.gather(o.floats(3, 4), 1, o.ints(4, 3, 5)),
    "gaussian_nll_loss": lambda o: F.gaussian_nll_loss(
        o.floats(3, 2), o.floats(3, 2), o.shares(3, 2)
    ),
    "gelu": lambda o: F.gelu(o.floats(3, 2), approximate="tanh"),
    "grid_sample": lambda o: F.grid_sample(
        _image(o, 2), o.of(o.rng.uniform(-1.2, 1.2, (2, 3, 4, 2))), align_corners=False
    ),
    "grid_sample, cubic": lambda o: F.grid_sample(
        *(_image(o, 2), o.of(o.rng.uniform(-1, 1, (2, 3, 4, 2))), "bicubic", "reflection", True)
    ),
    "group_norm": lambda o: F.group_norm(o.floats(2, 4, 3), 2, o.floats(4), o.floats(4)),
    "hinge_embedding_loss": lambda o: F.hinge_embedding_loss(o.floats(4), o.listed(1, -1, 1, 1)),
    "index, ints": lambda o: o.floats(4, 5)[o.ints(4, 6)],
    "index, several": lambda o: o.floats(4, 5, 3)[o.ints(4, 6), :, o.ints(3, 6)],
    "index, bools": lambda o: o.floats(4, 5)[o.bools(4, 5)],
    "index, one": lambda o: o.floats(4, 5)[o.listed(2)[0]],
    "index, bytes": lambda o: o.floats(4, 5)[o.ints(4, 6).to(convcore.int32)],
    "index set, ints": lambda o: _set(o.floats(4, 5), o.ints(4, 3), o.floats(3, 5)),
    "index set, bools": lambda o: _set(o.floats(4, 5), o.bools(4, 5), o.floats(1)),
    "index set, slices": lambda o: _set(o.floats(4, 5), (slice(1, 3), o.ints(5, 2)), o.floats(2)),
    "index_add": lambda o: convcore.index_add(o.floats(4, 3), 0, o.ints(4, 6), o.floats(6, 3)),
    "index_add_": lambda o: o.floats(4, 3).index_add_(0, o.ints(4, 6), o.floats(6, 3), alpha=2),
    "index_put": lambda o: convcore.index_put(o.floats(4, 3), (o.ints(4, 5),), o.floats(5, 3)),
    "index_put_": lambda o: o.floats(4, 3).index_put_((o.ints(4, 5),), o.floats(5, 3), True),
    "index_select": lambda o: convcore.index_select(o.floats(4, 3), 1, o.ints(3, 5)),
    "instance_norm": lambda o: F.instance_norm(
        o.floats(3, 2, 4), o.kept(2), o.kept(2), o.floats(2), o.floats(2)
    ),
    "interpolate": lambda o: F.interpolate(_image(o, 2), scale_factor=1.5, mode="bicubic"),
    "kthvalue": lambda o: convcore.kthvalue(o.floats(3, 4), 2, 1),
    "layer_norm": lambda o: F.layer_norm(o.floats(3, 4), (4,), o.floats(4), o.floats(4)),
    "margin_ranking_loss": lambda o: F.margin_ranking_loss(
        o.floats(4), o.floats(4), o.listed(1, -1, 1, 1), 0.5
    ),
    "masked_fill": lambda o: o.floats(3, 4).masked_fill(o.bools(3, 4), o.floats()),
    "masked_fill_": lambda o: o.floats(3, 4).masked_fill_(o.bools(3, 4), 2.0),
    "masked_scatter": lambda o: o.floats(3, 4).masked_scatter(o.bools(3, 4), o.floats(12)),
    "masked_scatter_": lambda o: o.floats(3, 4).masked_scatter_(o.bools(3, 4), o.floats(12)),
    "masked_select": lambda o: o.floats(3, 4).masked_select(o.bools(3, 4)),
    "multi_head_attention_forward": lambda o: F.multi_head_attention_forward(
        *(o.floats(3, 2, 4), o.floats(5, 2, 4), o.floats(5, 2, 4), 4, 2),
        *(o.floats(12, 4), o.floats(12), None, None, False, 0.0, o.floats(4, 4), o.floats(4)),
        key_padding_mask=o.listed([False] * 5, [False] * 3 + [True] * 2),
        attn_mask=o.listed(*([False] * 4 + [True] for _ in range(3))),
    ),
    "multinomial": lambda o: convcore.multinomial(o.kept(2, 4), 2),
    "mv": lambda o: convcore.mv(o.floats(3, 4), o.floats(4)),
    "nll_loss": lambda o: F.nll_loss(_probs(o, 4, 3), o.ints(3, 4), o.kept(3)),
    "nll_loss, planes": lambda o: F.nll_loss(o.floats(4, 3, 2), o.ints(3, 4, 2)),
    "one_hot": lambda o: F.one_hot(o.ints(4, 3)),
    "pad_packed_sequence": lambda o: nn.utils.rnn.pad_packed_sequence(
        nn.utils.rnn.pack_padded_sequence(o.floats(4, 3, 2), o.listed(4, 2, 1))
    )[0],
    "prelu": lambda o: F.prelu(o.floats(2, 3, 4), o.shares(3)),
    "repeat_interleave": lambda o: o.floats(3, 4).repeat_interleave(o.listed(2, 0, 1), 0),
    "rms_norm": lambda o: F.rms_norm(o.floats(3, 4), (4,), o.floats(4)),
    "searchsorted": lambda o: convcore.searchsorted(
        o.kept(4), o.kept(3), sorter=o.listed(0, 2, 1, 3)
    ),
    "scaled_dot_product_attention": lambda o: F.scaled_dot_product_attention(
        o.floats(2, 3, 4), o.floats(2, 5, 4), o.floats(2, 5, 4), o.bools(3, 5)
    ),
    "scaled_dot_product_attention, added": lambda o: F.scaled_dot_product_attention(
        o.floats(2, 3, 4), o.floats(2, 5, 4), o.floats(2, 5, 4), o.floats(3, 5)
    ),
    "scatter": lambda o: convcore.scatter(
        o.floats(3, 4), 1, o.listed([0], [2], [1]), o.floats(3, 1)
    ),
    "scatter_": lambda o: o.floats(3, 4).scatter_(1, o.listed([0], [2], [1]), o.floats(3, 1)),
    "scatter_add": lambda o: o.floats(3, 4).scatter_add(1, o.ints(4, 3, 5), o.floats(3, 5)),
    "scatter_add_": lambda o: o.floats(3, 4).scatter_add_(1, o.ints(4, 3, 5), o.floats(3, 5)),
    "solve_triangular": lambda o: convcore.linalg.solve_triangular(
        o.floats(3, 3) + 4 * convcore.eye(3), o.floats(3, 2), upper=True
    ),
    "take": lambda o: convcore.take(o.floats(3, 4), o.ints(12, 5)),
    "take_along_dim": lambda o: convcore.take_along_dim(o.floats(3, 4), o.ints(4, 3, 5), 1),
    "tensordot": lambda o: convcore.tensordot(o.floats(2, 3), o.floats(3, 4), 1),
    "triplet_margin_loss": lambda o: F.triplet_margin_loss(
        o.floats(4, 3), o.floats(4, 3), o.floats(4, 3), swap=True
    ),
    "threshold, of elements that overlap": lambda o: F.threshold(
        o.kept(5).as_strided((3, 2), (1, 1)), 0.5, 20.0, inplace=True
    ),
    "trace": lambda o: convcore.trace(o.floats(3, 3)),
    "unflatten": lambda o: o.floats(6).unflatten(0, (2, 3)),
    "unfold": lambda o: F.unfold(_image(o, 2), 2),
    "where": lambda o: convcore.where(o.bools(3, 4), o.floats(3, 4), o.floats(4)),
}


def _cholesky(o: Operands) -> Tensor:
    x = o.floats(3, 3)
    return convcore.linalg.cholesky(x @ x.mT + convcore.eye(3))


for _name in ("prod", "amax", "amin", "mean", "sum"):
    for _self in (True, False):
        FUNCTIONS[f"scatter_reduce, {_name}, {_self}"] = lambda o, name=_name, with_self=_self: (
            convcore.scatter_reduce(
                o.floats(3, 4), 1, o.ints(4, 3, 5), o.floats(3, 5), name, include_self=with_self
            )
        )
_SPATIAL: dict[str, Callable] = {  # of (name, number of spatial axes, operands)
    "conv": lambda f, n, o: getattr(F, f)(_image(o, n), o.floats(4, 2, *_sizes(3, n)), o.floats(4)),
    "conv_transpose": lambda f, n, o: getattr(F, f)(
        _image(o, n), o.floats(2, 4, *_sizes(3, n)), o.floats(4), 2
    ),
    "avg_pool": lambda f, n, o: getattr(F, f)(_image(o, n), 2),
    "max_pool": lambda f, n, o: getattr(F, f)(_image(o, n), 2, return_indices=True),
    "max_unpool": lambda f, n, o: getattr(F, f)(*_pooled(o, n), 2),
    "adaptive_avg_pool": lambda f, n, o: getattr(F, f)(_image(o, n), 2),
    "adaptive_max_pool": lambda f, n, o: getattr(F, f)(_image(o, n), 2, return_indices=True),
}
for _rank in (1, 2, 3):
    FUNCTIONS |= {
        f"{name}{_rank}d": partial(call, f"{name}{_rank}d", _rank)
        for name, call in _SPATIAL.items()
    }


def _pooled(o: Operands, rank: int) -> tuple[Tensor, Tensor]:
    """Return what max_unpool takes: pooled images, and where each pixel was."""
    places = np.arange(2**rank) * 2
    return o.floats(2, 2, *_sizes(2, rank)), o.read(
        convcore.tensor(np.broadcast_to(places, (2, 2, 2**rank))).reshape(2, 2, *_sizes(2, rank))
    )


def _layer(name: str, *args: Any, **kwargs: Any) -> Callable[..., Call]:
    """Return a function of the inputs' makers; its result is the call of a layer."""
    return lambda *inputs: lambda o: o.layer(name, *args, **kwargs)(*(make(o) for make in inputs))


def _in(*shape: int) -> Call:
    return lambda o: o.floats(*shape)


def _ints(high: int, *shape: int, low: int = 0) -> Call:
    return lambda o: o.ints(high, *shape, low=low)


def _kept(*shape: int) -> Call:
    return lambda o: o.kept(*shape)


def _listed(*values: Any) -> Call:
    return lambda o: o.listed(*values)


LAYERS: dict[str, Call] = {
    "AlphaDropout": _layer("AlphaDropout", 0.5)(_in(4, 3)),
    "BCELoss": _layer("BCELoss")(lambda o: o.shares(4, 3), _kept(4, 3)),
    "BCEWithLogitsLoss": _layer("BCEWithLogitsLoss")(_in(4, 3), _kept(4, 3)),
    "CTCLoss": _layer("CTCLoss")(
        *(lambda o: _probs(o, 6, 2, 4), _ints(4, 2, 3, low=1), _listed(6, 5), _listed(3, 2))
    ),
    "ChannelShuffle": _layer("ChannelShuffle", 2)(_in(2, 4, 3, 3)),
    "CosineEmbeddingLoss": _layer("CosineEmbeddingLoss")(_in(2, 3), _in(2, 3), _listed(1, -1)),
    "CosineSimilarity": _layer("CosineSimilarity")(_in(2, 3), _in(2, 3)),
    "CrossEntropyLoss": _layer("CrossEntropyLoss")(_in(4, 3), _ints(3, 4)),
    "Embedding": _layer("Embedding", 5, 3)(_ints(5, 2, 4)),
    "Flatten": _layer("Flatten")(_in(2, 3, 4)),
    "Fold": _layer("Fold", (4, 4), 2)(_in(2, 8, 9)),
    "GLU": _layer("GLU")(_in(3, 4)),
    "GRU": _layer("GRU", 3, 4)(_in(3, 2, 3), _in(1, 2, 4)),
    "GRUCell": _layer("GRUCell", 3, 4)(_in(2, 3), _in(2, 4)),
    "GaussianNLLLoss": _layer("GaussianNLLLoss")(_in(4), _in(4), lambda o: o.shares(4)),
    "GroupNorm": _layer("GroupNorm", 2, 4)(_in(2, 4, 3)),
    "HingeEmbeddingLoss": _layer("HingeEmbeddingLoss")(_in(3), _listed(1, -1, 1)),
    "LSTM": _layer("LSTM", 3, 4)(_in(2, 2, 3)),
    "LSTM, projected": _layer("LSTM", 3, 4, proj_size=2, bidirectional=True)(_in(2, 2, 3)),
    "LSTMCell": _layer("LSTMCell", 3, 4)(_in(2, 3), lambda o: (o.floats(2, 4), o.floats(2, 4))),
    "LayerNorm": _layer("LayerNorm", 4)(_in(3, 4)),
    "Linear": _layer("Linear", 3, 4)(_in(2, 3)),
    "LocalResponseNorm": _layer("LocalResponseNorm", 3)(_in(2, 4, 3)),
    "MarginRankingLoss": _layer("MarginRankingLoss")(_in(3), _in(3), _listed(1, -1, 1)),
    "MultiheadAttention": _layer("MultiheadAttention", 4, 2)(*[_in(3, 2, 4)] * 3),
    "NLLLoss": _layer("NLLLoss")(_in(4, 3), _ints(3, 4)),
    "PReLU": _layer("PReLU", 3)(_in(2, 3, 4)),
    "PairwiseDistance": _layer("PairwiseDistance")(_in(2, 3), _in(2, 3)),
    "PixelShuffle": _layer("PixelShuffle", 2)(_in(2, 4, 3, 3)),
    "PixelUnshuffle": _layer("PixelUnshuffle", 2)(_in(2, 1, 4, 4)),
    "PoissonNLLLoss": _layer("PoissonNLLLoss", full=True)(_in(4), lambda o: o.shares(4)),
    "RMSNorm": _layer("RMSNorm", 4)(_in(3, 4)),
    "RNN": _layer("RNN", 3, 4, nonlinearity="relu")(_in(5, 2, 3)),
    "RNNCell": _layer("RNNCell", 3, 4)(_in(2, 3)),
    "RReLU": _layer("RReLU")(_in(4, 3)),
    "SyncBatchNorm": _layer("SyncBatchNorm", 3)(_in(2, 3, 4)),
    "Threshold": _layer("Threshold", 0.1, 0.2)(_in(4, 3)),
    "TransformerDecoderLayer": _layer("TransformerDecoderLayer", 4, 2, 5)(
        _in(3, 2, 4), _in(5, 2, 4)
    ),
    "TransformerEncoderLayer": _layer("TransformerEncoderLayer", 4, 2, 5)(_in(3, 2, 4)),
    "TripletMarginLoss": _layer("TripletMarginLoss")(*[_in(4, 3)] * 3),
    "Unflatten": _layer("Unflatten", 1, (2, 2))(_in(3, 4)),
    "Unfold": _layer("Unfold", 2)(_in(2, 2, 4, 4)),
    "Upsample": _layer("Upsample", scale_factor=2)(_in(2, 2, 3)),
    "UpsamplingBilinear2d": _layer("UpsamplingBilinear2d", 5)(_in(2, 2, 3, 3)),
    "UpsamplingNearest2d": _layer("UpsamplingNearest2d", 5)(_in(2, 2, 3, 3)),
}
LAYERS |= {  # of one input and no argument, and of two
    **{
        name: _layer(name)(_in(4, 3))
        for name in (
            *("Dropout", "Identity", "LogSoftmax", "Softmax", "Softmin"),
            *(layer_of(name) for name in ROWS if name != "threshold"),
        )
    },
    **{
        f"{name}, in place": _layer(name, inplace=True)(_in(4, 3))
        for name in (
            *("Dropout", "RReLU"),
            *(layer_of(n) for n, row in ROWS.items() if row.has_inplace and n != "threshold"),
        )
    },
    **{
        name: _layer(name)(_in(4, 3), _in(4, 3))
        for name in ("HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "SmoothL1Loss")
    },
}
for _rank in (1, 2, 3):
    _x = (2, 2, *_sizes(5, _rank))
    LAYERS |= {
        f"{name}{_rank}d": _layer(f"{name}{_rank}d", *args)(_in(*_x))
        for name, args in {
            **dict.fromkeys(("AdaptiveAvgPool", "AdaptiveMaxPool", "AvgPool", "MaxPool"), (2,)),
            **dict.fromkeys(("CircularPad", "ReflectionPad", "ReplicationPad", "ZeroPad"), (1,)),
            **dict.fromkeys(("BatchNorm", "LazyBatchNorm", "LazyInstanceNorm"), (2,)),
            **dict.fromkeys(("Conv", "ConvTranspose"), (2, 4, 3)),
            **{"ConstantPad": (1, 0.5), "Dropout": (0.5,)},
        }.items()
        if not name.startswith("Lazy")
    }
    LAYERS[f"InstanceNorm{_rank}d"] = _layer(
        f"InstanceNorm{_rank}d", 2, affine=True, track_running_stats=True
    )(_in(*_x))
    LAYERS[f"MaxUnpool{_rank}d"] = lambda o, rank=_rank: o.layer(f"MaxUnpool{rank}d", 2)(
        *_pooled(o, rank)
    )
    LAYERS[f"BatchNorm{_rank}d, mean of all"] = _layer(f"BatchNorm{_rank}d", 2, momentum=None)(
        _in(*_x)
    )
