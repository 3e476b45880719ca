"""bfloat16: values and gradients computed in float32 and rounded, beside PyTorch's."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import convcore
from convcore.nn import functional as F

CALLS = """
x + y; x - y; x * y; x / y; x * 2; x * 2.5; 1 - x; 3 / y; x ** 2; x ** 0.5; -x; x.abs(); x.exp()
x.expm1(); x.log(); x.log1p(); x.log2(); x.sqrt(); x.rsqrt(); x.reciprocal(); x.square(); x.sin()
x.cos(); x.tan(); x.atan(); x.sinh(); x.cosh(); x.tanh(); x.sigmoid(); x.relu(); x.erf(); x.sign()
x.floor(); x.ceil(); (x * 9).round(); x.trunc(); x.frac(); x.clamp(0.2, 0.8); lib.maximum(x, y)
lib.minimum(x, y); lib.where(x > y, x, y); lib.lerp(x, y, 0.5); x.atan2(y); x > y; x <= y; x == y
x + lib.tensor(2.5); lib.tensor(2.5) * x; x.float() + y; x.half() + y; x + lib.tensor(3)
x + x.long(); x.sum(); x.sum(0); x.sum(1, keepdim=True); x.mean(); x.mean(0); x.var(); x.std(1)
x.prod(1); x.norm(); x.norm(1, 0); x.norm(3.0, 1); x.cumsum(1); x.logsumexp(1); x.max(); x.amax(1)
x.amin(0); x.argmax(1); x.max(1).values; x.sort(1).values; x.topk(2).values; x.any(); x.nansum()
x.nanmean(1); x @ y.t(); lib.mm(x, y.t()); lib.bmm(x[None], y.t()[None])
lib.einsum("ij,kj->ik", x, y); lib.addmm(x[:, :4], x, y.t()); x @ y[0]; F.linear(x, y)
F.linear(x, y, y[:, 0]); x.softmax(1); x.log_softmax(0); F.gelu(x); F.silu(x)
F.leaky_relu(x - 0.5); F.softplus(x); F.elu(-x); F.hardswish(x); F.mish(x); F.relu6(x * 9)
F.hardtanh(x * 3); F.layer_norm(x, (8,)); F.group_norm(a, 2); F.conv2d(a, w)
F.conv2d(a, w, padding=1, stride=2); F.conv_transpose2d(a, w); F.mse_loss(x, y)
F.conv2d(a, w, w[:, 0, 0, 0]); F.conv1d(a[0, :, :3], w[0]); F.pad(a, (1, 2)); F.dropout(x, 0.0)
lib.cat([x, y]); lib.stack([x, y], 1); x.reshape(-1); x.t(); x[1:3]; x[[0, 2]]
x.masked_fill(x > 0.5, 0); x.gather(1, lib.tensor([[0], [1], [2], [3]]))
x.index_select(0, lib.tensor([0, 1])); x.expand(2, 4, 8).sum(0); x.clone().add_(y)
x.clone().mul_(2); x.clone().div_(y); x.clone().copy_(y.float()); x.float(); x.long(); x.isfinite()
x.isnan(); lib.zeros_like(x); lib.arange(0, 1, 0.25, dtype=lib.bfloat16)
lib.full((2,), 0.1).bfloat16(); x * 0.1; x + 0.1; 0.7 - x; x / 3.3; x * lib.tensor(0.1)
x.clone().mul_(0.1); x.clone().add_(lib.tensor(0.1)); x.clone().div_(lib.tensor(3.3))
x.clone().sub_(y.float()); x.clone().add_(y, alpha=0.5); x.clone().clamp_(0.2, 0.5)
x.clone().exp_(); x.clone().lerp_(y, 0.3); x.clone().index_add_(0, lib.tensor([0]), y[:1])
F.max_pool1d(x, 2); F.max_pool2d(a, 2); F.max_pool2d(a, 3, 2, 1); F.max_pool3d(a, 2)
F.max_pool2d(a, 2, return_indices=True)[0]; F.avg_pool1d(x, 2); F.avg_pool2d(a, 3, 1, 1)
F.adaptive_avg_pool1d(x, 2); F.adaptive_avg_pool2d(a, 1); F.adaptive_avg_pool2d(a, 4)
F.adaptive_max_pool2d(a, 2); F.max_unpool2d(*F.max_pool2d(a, 2, return_indices=True), 2)
F.interpolate(a, scale_factor=2); F.interpolate(a, scale_factor=2, mode="bilinear")
F.interpolate(a, size=4, mode="bicubic"); F.interpolate(a, size=4, mode="area")
F.interpolate(a[0], size=9, mode="linear"); F.pixel_shuffle(a, 2); F.unfold(a, 2)
F.fold(F.unfold(a, 2), 6, 2); F.pad(a, (1, 2, 2, 1), mode="reflect")
F.pad(a, (1, 2, 2, 1), mode="replicate"); F.pad(a, (1, 2, 2, 1), mode="circular")
F.grid_sample(a, g, align_corners=False); F.grid_sample(a, g, mode="nearest", align_corners=False)
F.affine_grid(x[:2, :6].reshape(2, 2, 3), (2, 4, 5, 5), align_corners=False); F.cross_entropy(x, i)
F.cross_entropy(x, i, label_smoothing=0.1); F.cross_entropy(x, i, y[0].detach())
F.cross_entropy(x, y.detach().softmax(1)); F.nll_loss(x.log_softmax(1), i)
F.nll_loss(x, i, reduction="none"); F.binary_cross_entropy(x, y.detach())
F.binary_cross_entropy_with_logits(x, y.detach()); F.l1_loss(x, y); F.smooth_l1_loss(x, y)
F.huber_loss(x, y); F.kl_div(x.log(), y, reduction="sum"); F.rms_norm(x, (8,))
F.rms_norm(x, (8,), y[0]); F.layer_norm(x, (8,), y[0], y[1])
F.batch_norm(a, None, None, training=True); F.batch_norm(a, v[0], v[1])
F.batch_norm(a, v[0], v[1], w[0, :, 0, 0], w[1, :, 0, 0], training=True)
F.batch_norm(a, v[0].float(), v[1].float(), v[2].float(), v[3].float(), training=True)
F.instance_norm(a); F.group_norm(a, 2, w[0, :, 0, 0], w[1, :, 0, 0]); F.normalize(x)
F.prelu(x - 0.5, y[0, :1]); F.glu(x); F.celu(x - 0.5); F.selu(x - 0.5); F.logsigmoid(x)
F.softsign(x); F.hardshrink(x); F.softshrink(x); F.hardsigmoid(x); F.gelu(x, approximate="tanh")
F.rrelu(x - 0.5); F.embedding(i, x.t()); F.scaled_dot_product_attention(x[None], y[None], y[None])
F.cosine_similarity(x, y); F.pairwise_distance(x, y); x.cumprod(1); x.median(1).values
x.kthvalue(2, 1).values; x.min(1).values; x.norm(float("inf")); lib.linalg.matrix_norm(x)
x.nansum(1); x.asin(); x.acos(); (x + 1).acosh(); x.asinh(); x.atanh(); x.log10(); x.exp2()
x.erfc(); x.erfinv(); x.lgamma(); x.digamma(); x.sinc(); x.logit(); x.hypot(y); x.logaddexp(y)
x.fmod(y); x.remainder(y); x.pow(y); 2.0**x; x.xlogy(y); x.copysign(-y); x.fmax(y); x.nan_to_num()
lib.clamp(x, y * 0.5, y); x.addcmul(x, y, value=2); x.addcdiv(x, y, value=2); x.dist(y)
x.detach().nextafter(y.detach()); lib.outer(x[0], y[0]); x[0].dot(y[0]); x.mv(y[0]); x.trace()
lib.baddbmm(x[None, :, :4], x[None], y.t()[None]); x.tril(); x.diagonal(); x.flip(0); x.roll(1)
x.repeat(2, 2); x.unfold(1, 2, 1); x.split(2)[0]; x.unbind()[0]; x.take(lib.tensor([0, 3]))
x.scatter_add(1, lib.tensor([[0, 1], [1, 1], [2, 3], [3, 3]]), y[:, :2].clone())
x.index_put((lib.tensor([0, 0]),), y[:2], accumulate=True); x.masked_select(x > 0.5)
x.masked_scatter(x > 0.5, y); F.conv2d(a, w[:, :2], groups=2); F.conv2d(a, w, dilation=2)
F.conv_transpose2d(a, w, w[:, 0, 0, 0], stride=2); F.conv3d(a[:, None], w[:1, None, :3])
x.sum(dtype=lib.float32); x.softmax(1, dtype=lib.float32); lib.eye(3, dtype=x.dtype)
lib.linspace(0, 1, 5, dtype=x.dtype); lib.nn.BatchNorm2d(4).to(a.dtype)(a)
"""
LEAVES = ("x", "y", "a", "w", "g")


def operands(lib, wide: bool = False) -> dict:
    """Return random bfloat16 numbers, the same in each library; if ``wide``, in float64."""
    draw = np.random.default_rng(0).uniform
    shapes = {"x": (4, 8), "y": (4, 8), "a": (2, 4, 6, 6), "w": (4, 4, 3, 3)}
    shapes |= {"g": (2, 3, 3, 2), "v": (4, 4)}
    arrays = {name: draw(0.1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    found = {name: lib.tensor(array).to(lib.bfloat16) for name, array in arrays.items()}
    if wide:
        found = {name: tensor.double() for name, tensor in found.items()}
    return {"lib": lib, "F": lib.nn.functional, "i": lib.tensor([1, 0, 7, 3]), **found}


def values_and_gradients(lib, call: str, wide: bool = False) -> dict:
    """Return a call's result and its operands' gradients, as (dtype, float64 array) by name."""
    given = operands(lib, wide)
    leaves = {name: given[name].requires_grad_() for name in LEAVES}
    lib.manual_seed(0)
    out = eval(call, given)
    found = {"result": out.detach()}
    if out.requires_grad:
        slopes = np.random.default_rng(1).uniform(0.1, 1, tuple(out.shape)).astype(np.float32)
        out.backward(lib.tensor(slopes).bfloat16().to(out.dtype))
        found |= {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    return {name: (str(t.dtype), np.array(t.double().tolist())) for name, t in found.items()}


@pytest.mark.parametrize(
    "call", [one.strip() for one in CALLS.replace("\n", ";").split(";") if one]
)
def test_values_and_gradients_are_within_one_ulp_or_nearer_to_float64s(torch, call):
    pytest.importorskip("ml_dtypes")
    ours, theirs = (values_and_gradients(lib, call) for lib in (convcore, torch))
    assert ours.keys() == theirs.keys()
    exact = None
    for name, (dtype, b) in theirs.items():
        a = ours[name][1]
        assert ours[name][0] == dtype and a.shape == b.shape
        # An ulp of what was added up, where summands cancel.
        largest = np.maximum(np.abs(b), np.abs(b).max(initial=0) if name != "result" else 2.0**-8)
        ulp = np.exp2(np.floor(np.log2(np.maximum(largest, 2.0**-126))) - 7)
        if (np.abs(a - b) <= ulp).all():
            continue
        if exact is None:  # PyTorch rounds some steps that are not rounded here
            exact = values_and_gradients(torch, call, wide=True)
        c = exact[name][1]
        assert (np.abs(a - c) / ulp).max() <= (np.abs(b - c) / ulp).max() + 0.25


def test_long_sums_and_products_are_made_in_float32(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        ones = lib.ones(3, 1000).to(lib.bfloat16)
        assert ones.sum().item() == 3008.0  # bfloat16 of 3000; sums of bfloat16 stay at 256
        assert (ones @ ones.t())[0, 0].item() == ones.cumsum(1)[0, -1].item() == 1000.0
        shrunk = (ones * 0.99609375).cumprod(1)[0, -1]  # 1 - 2^-8: rounded at each step, another
        assert abs(shrunk.item() / 0.99609375**1000 - 1) < 2.0**-8
        assert ones.norm().item() == 54.75 and ones.mean().item() == 1.0


def test_nans_and_infinities_stay(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        x = lib.tensor([float("nan"), float("inf"), 3.4e38]).to(lib.bfloat16)
        assert (x * 2).isinf().tolist() == [False, True, True] and x.exp()[0].isnan()
        assert x.sum().isnan() and x[1:].sum().isinf()


def test_printed_as_in_pytorch(torch):
    pytest.importorskip("ml_dtypes")
    for name in "xaw":
        assert str(operands(convcore)[name]) == str(operands(torch)[name])


def test_numpy_is_refused_as_in_pytorch(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        x = lib.ones(2).to(lib.bfloat16)
        with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
            x.numpy()
        with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
            np.asarray(x)


def test_without_ml_dtypes_the_extra_is_named():
    code = "import sys; sys.modules['ml_dtypes'] = None; import convcore as c; c.ones(1).bfloat16()"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert run.returncode == 1 and "pip install 'convcore[bfloat16]'" in run.stderr


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, x: x.sort()[0],
        lambda lib, x: x.sort(descending=True)[0],
        lambda lib, x: x.argsort(stable=True),
        lambda lib, x: x.topk(2)[0],
        lambda lib, x: x.topk(3, largest=False)[0],
        lambda lib, x: x[0].unique(),
        lambda lib, x: lib.searchsorted(lib.tensor([0.0, 1.0, 2.0]).to(x.dtype), x),
        lambda lib, x: lib.bucketize(x, lib.tensor([0.0, 1.0]).to(x.dtype)),
        lambda lib, x: lib.tensor(lib.allclose(x, x, equal_nan=True)),
    ],
)
def test_nan_is_the_largest_number_where_bfloat16_is_sorted(torch, call):
    values = [[np.nan, 1, -np.inf, 2], [3, np.nan, np.nan, -1]]
    found, expected = (
        call(lib, lib.tensor(values, dtype=lib.bfloat16)).float().tolist()
        for lib in (convcore, torch)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.clamp(0, 1),
        lambda x: x.maximum(x.flip(0)),
        lambda x: x.copysign(-1.0),
        lambda x: x ** x.detach(),
        lambda x: F.hardsigmoid(x),
        lambda x: F.elu(x),
        lambda x: F.gaussian_nll_loss(x, x, x.detach()),
    ],
)
@pytest.mark.parametrize("again", [False, True])
def test_nan_gives_no_warnings_of_numpys(call, again):
    pytest.importorskip("ml_dtypes")
    x = convcore.tensor([math.nan, 1.0, 2.0], dtype=convcore.bfloat16, requires_grad=True)
    out = call(x)
    convcore.autograd.grad(out.sum(), x, create_graph=again)


def test_nan_is_no_chance_no_mean_and_no_scale():
    pytest.importorskip("ml_dtypes")
    x = convcore.tensor([math.nan, 1.0], dtype=convcore.bfloat16)
    with pytest.raises(RuntimeError, match="p_in >= 0"):
        convcore.bernoulli(x)
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        convcore.poisson(x)
    assert convcore.normal(x, x).shape == (2,)
