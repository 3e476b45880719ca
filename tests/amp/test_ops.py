"""autocast gives the dtypes that PyTorch's gives, of float32 and of bfloat16 operands."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

import convcore
from convcore._errors import without_hint
from convcore.amp import _ops

# One call of every function of PyTorch's lists, and of many that are on none.
CALLS = """
F.conv1d(s, k1); F.conv2d(a, k2); F.conv2d(a, k2, v4, padding="same"); F.conv3d(d, k3)
F.conv_transpose1d(s, k1); F.conv_transpose2d(a, k2); F.conv_transpose3d(d, k3); F.linear(x, y)
F.linear(x, y, v4); lib.matmul(x, xt); x @ xt; x.matmul(xt); x @ v8; v8 @ xt; v8 @ v8
lib.mm(x, xt); x.mm(xt); lib.bmm(b, bt); b.bmm(bt); lib.addmm(q, x, xt); q.addmm(x, xt)
lib.baddbmm(b3, b, bt); b3.baddbmm(b, bt); F.scaled_dot_product_attention(b, b, b); lib.mv(x, v8)
x.mv(v8); lib.dot(v8, v8); lib.outer(v4, v8); lib.ger(v4, v8); lib.einsum("ij,kj->ik", x, y)
lib.tensordot(x, xt, 1); lib.cross(b33, b33); lib.linalg.matmul(x, xt); lib.linalg.matrix_norm(q)
lib.linalg.vector_norm(q); lib.linalg.norm(q); F.avg_pool1d(s, 2); F.avg_pool2d(a, 2)
F.avg_pool3d(d, 2); F.adaptive_avg_pool1d(s, 2); F.adaptive_avg_pool2d(a, 2)
F.adaptive_avg_pool3d(d, 2); F.adaptive_max_pool1d(s, 2); F.adaptive_max_pool2d(a, 2)
F.adaptive_max_pool3d(d, 2); F.max_pool1d(s, 2); F.max_pool2d(a, 2); F.max_pool3d(d, 2)
F.max_unpool1d(s[..., :3], i1, 2); F.max_unpool2d(a[..., :3, :3], i2, 2)
F.max_unpool3d(d[..., :2, :2, :2], i3, 2); F.max_pool2d(a, 2, return_indices=True)[0]
F.binary_cross_entropy(p, p.float()); F.binary_cross_entropy_with_logits(x, y); F.mse_loss(x, y)
F.l1_loss(x, y); F.smooth_l1_loss(x, y); F.huber_loss(x, y); F.kl_div(x, y); F.cross_entropy(x, t4)
F.cross_entropy(x, y); F.nll_loss(x, t4); F.nll_loss(a, t66)
F.ctc_loss(s.permute(2, 0, 1).log_softmax(2), t23, (6, 6), (2, 3))
F.cosine_embedding_loss(x, y, one); F.hinge_embedding_loss(x, y); F.margin_ranking_loss(v8, v8, v8)
F.poisson_nll_loss(x, y); F.gaussian_nll_loss(x, y, p); F.triplet_margin_loss(x, y, x)
F.cosine_similarity(x, y); F.pairwise_distance(x, y); lib.cdist(x, y); F.normalize(x)
F.grid_sample(a, g); F.grid_sample(d, g5); F.affine_grid(th, (2, 4, 6, 6)); F.interpolate(a, 3)
F.interpolate(a, scale_factor=2, mode="bilinear"); F.pad(s, (1, 1), "reflect")
F.pad(a, (1, 1, 1, 1), "reflect"); F.pad(d, (1, 1, 1, 1, 1, 1), "reflect")
F.pad(s, (1, 1), "replicate"); F.pad(a, (1, 1, 1, 1), "replicate")
F.pad(d, (1, 1, 1, 1, 1, 1), "replicate"); F.pad(a, (1, 1)); F.prelu(x, v1); lib.prelu(x, v1)
lib.prod(x); x.prod(); x.prod(1); lib.trace(q); q.trace(); lib.quantile(x, 0.5); x.quantile(0.5)
lib.polar(x, y); lib.view_as_complex(c2); lib.complex(x, y); lib.linalg.cholesky(pd)
lib.cholesky(pd); lib.linalg.cholesky_ex(pd)[0]; lib.cholesky_solve(q, pd); lib.linalg.eigh(pd)[0]
lib.linalg.eigvalsh(pd); lib.linalg.eig(pd)[0]; lib.linalg.eigvals(pd); lib.linalg.inv(pd)
lib.inverse(pd); pd.inverse(); lib.linalg.inv_ex(pd)[0]; lib.linalg.lstsq(pd, q)[0]
lib.linalg.solve(pd, q); lib.linalg.svdvals(pd); lib.linalg.pinv(pd); lib.linalg.det(pd)
lib.linalg.slogdet(pd)[1]; lib.linalg.solve_triangular(pd, q, upper=True); lib.cat([x, y.float()])
lib.cat([x, y]); lib.stack([x, y.float()]); lib.stack([x, y]); lib.concat([x, y.float()])
lib.hstack([x, y.float()]); lib.vstack([x, y.float()]); lib.dstack([x, y.float()])
lib.column_stack([x, y.float()]); lib.concatenate([x, y.float()]); x + y; x * y; x - 1; x / y; -x
x ** 2; x.exp(); x.log(); x.sum(); x.mean(0); x.softmax(1); F.softmax(x, 1); F.log_softmax(x, 1)
F.gelu(x); F.silu(x); F.relu(x); F.sigmoid(x); x.tanh(); F.layer_norm(x, (8,)); F.group_norm(a, 2)
F.batch_norm(a, v4.float(), v4.float()); F.rms_norm(x, (8,)); F.instance_norm(a)
F.local_response_norm(a, 2); F.dropout(x, 0.5); F.embedding(t4, x); x.norm(); F.unfold(a, 2)
F.fold(b8, (4, 4), 2); F.pixel_shuffle(a, 2); F.glu(x); F.softplus(x); F.elu(x)
F.leaky_relu(x, 0.1); F.hardswish(x); x.cumsum(1); x.cumprod(1); x.var(); x.std(1)
x.clamp(0.2, 0.5); x.logsumexp(1); x.max(); x.sort(1)[0]; lib.where(x > y, x, y); x.t()
x.reshape(-1); lib.lerp(x, y, 0.5); lib.addcmul(x, y, y); lib.addcdiv(x, y, y); lib.atan2(x, y)
lib.erfinv(x); lib.dist(x, y); x.index_add(0, t2, y[:2]); x.scatter(1, t4[:, None], y)
x.gather(1, t4[:, None]); x.index_select(0, t2); x.masked_fill(x > 0.5, 0); x.median()
F.mse_loss(x, y, reduction="none"); F.gumbel_softmax(x); F.threshold(x, 0.5, 0.0); lib.diff(x)
lib.linalg.qr(pd)[0]; lib.linalg.svd(pd)[0]; nn.Linear(8, 3)(x)
nn.Conv2d(4, 3, 3)(a); nn.BatchNorm2d(4)(a); nn.LayerNorm(8)(x.float())
nn.PReLU()(x); nn.CrossEntropyLoss()(x, t4); nn.MSELoss()(x, y); nn.LSTM(8, 3)(b)[0]
nn.LSTM(8, 3)(b)[1][1]; nn.GRU(8, 3)(b)[0]; nn.RNN(8, 3)(b)[0]; nn.LSTMCell(8, 3)(x)[0]
nn.LSTMCell(8, 3)(x)[1]; nn.GRUCell(8, 3)(x); nn.RNNCell(8, 3)(x)
nn.MultiheadAttention(8, 2)(b, b, b)[0]; nn.MultiheadAttention(8, 2)(b, b, b)[1]
nn.MultiheadAttention(8, 2).eval()(b, b, b)[0]
nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)(b.float())
nn.TransformerEncoderLayer(8, 2, 16).eval()(b.float())
"""
NAMES = [one.strip() for one in CALLS.replace("\n", ";").split(";") if one.strip()]


def operands(lib, dtype: str) -> dict:
    """Return operands of one dtype, the same in each library, and indices."""
    draw = np.random.default_rng(0).uniform
    shapes = {
        "x": (4, 8),
        "y": (4, 8),
        "q": (4, 4),
        "b": (3, 4, 8),
        "b3": (3, 4, 4),
        "s": (2, 4, 6),
    }
    shapes |= {"b33": (3, 3), "k1": (4, 4, 3), "k2": (4, 4, 3, 3), "k3": (4, 4, 2, 2, 2)}
    shapes |= {"a": (2, 4, 6, 6), "d": (2, 4, 4, 4, 4), "p": (4, 8), "c2": (4, 2)}
    shapes |= {"v1": (1,), "v3": (3,), "v4": (4,), "v8": (8,), "th": (2, 2, 3), "b8": (2, 8, 9)}
    shapes |= {"g": (2, 3, 3, 2), "g5": (2, 2, 2, 2, 3)}
    arrays = {name: draw(0.1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    arrays["pd"] = (arrays["q"] @ arrays["q"].T + np.eye(4)).astype(np.float32)
    found = {name: lib.tensor(array).to(getattr(lib, dtype)) for name, array in arrays.items()}
    found |= {"xt": found["x"].t(), "bt": found["b"].transpose(1, 2), "lib": lib, "nn": lib.nn}
    indices = {
        "t2": [1, 0],
        "t4": [0, 1, 2, 3],
        "one": [1, -1, 1, 1],
        "t23": [[1, 2, 3], [1, 2, 1]],
    }
    found |= {name: lib.tensor(values) for name, values in indices.items()}
    found |= {"t66": lib.zeros(2, 6, 6).long()}
    found |= {"i1": lib.zeros(2, 4, 3).long(), "i2": lib.zeros(2, 4, 3, 3).long()}
    return found | {"i3": lib.zeros(2, 4, 2, 2, 2).long(), "F": lib.nn.functional}


def outcome(lib, call: str, dtype: str, target: str = "bfloat16") -> str:
    """Return the result's dtype under autocast, or the class of the error."""
    values = operands(lib, dtype)
    lib.manual_seed(0)
    with warnings.catch_warnings(), lib.autocast("cpu", dtype=getattr(lib, target)):
        warnings.simplefilter("ignore")
        try:
            return str(eval(call, values).dtype)
        except Exception as error:
            return f"error {type(error).__name__}: {without_hint(error)}"


@pytest.mark.parametrize("table", ["LOWER", "FLOAT32", "WIDEST"])
def test_listed_functions_are_those_of_their_modules(table):
    for module, names in vars(_ops)[table].items():
        home = importlib.import_module(f"convcore.functions.{module}")
        for name in names.split():
            assert vars(home)[name].__module__ == home.__name__


@pytest.mark.parametrize("call", NAMES)
def test_dtypes_are_pytorchs(torch, call):
    pytest.importorskip("ml_dtypes")
    for dtype in ("float32", "bfloat16"):
        theirs = outcome(torch, call, dtype)
        if not theirs.startswith("error"):
            assert outcome(convcore, call, dtype) == theirs
