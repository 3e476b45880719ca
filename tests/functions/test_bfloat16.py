"""bfloat16: computed in float32 and rounded once, as in PyTorch; refused where it is not yet."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import convcore

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
x.isnan(); lib.zeros_like(x); lib.arange(4, dtype=lib.bfloat16); lib.full((2,), 0.1).bfloat16()
"""


def operands(lib) -> dict:
    """Return random numbers, which are the same in each library."""
    draw = np.random.default_rng(0).uniform
    shapes = {"x": (4, 8), "y": (4, 8), "a": (2, 4, 6, 6), "w": (4, 4, 3, 3)}
    arrays = {name: draw(0.1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    found = {name: lib.tensor(array).to(lib.bfloat16) for name, array in arrays.items()}
    return {"lib": lib, "F": lib.nn.functional, **found}


@pytest.mark.parametrize(
    "call", [one.strip() for one in CALLS.replace("\n", ";").split(";") if one]
)
def test_results_are_within_one_ulp_of_pytorchs(torch, call):
    pytest.importorskip("ml_dtypes")
    ours, theirs = (eval(call, operands(lib)) for lib in (convcore, torch))
    assert str(ours.dtype) == str(theirs.dtype)
    a, b = (np.array(one.double().tolist()) for one in (ours, theirs))
    assert a.shape == b.shape
    # An ulp of what was added up, where summands cancel.
    ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(b), 2.0**-8))) - 7)
    assert (np.abs(a - b) <= ulp).all()


def test_long_sums_and_products_are_made_in_float32(torch):
    pytest.importorskip("ml_dtypes")
    for lib in (convcore, torch):
        ones = lib.ones(3, 1000).to(lib.bfloat16)
        assert ones.sum().item() == 3008.0  # bfloat16 of 3000; sums of bfloat16 stay at 256
        assert (ones @ ones.t())[0, 0].item() == ones.cumsum(1)[0, -1].item() == 1000.0
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
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1 and "pip install 'convcore[bfloat16]'" in run.stderr
