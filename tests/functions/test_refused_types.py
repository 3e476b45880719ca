"""Arguments of a wrong type: refused where PyTorch refuses them, by their names; else taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

import convcore

# What is refused: a call of a library, and what its error names.
BOOLS = {
    "sum": (lambda m: m.ones(2, 3).sum(True), "dim"),
    "sum of several": (lambda m: m.ones(2, 3).sum((True,)), "dim"),
    "softmax": (lambda m: m.softmax(m.ones(2, 3), True), "dim"),
    "size": (lambda m: m.ones(2, 3).size(True), "dim"),
    "std": (lambda m: m.ones(2, 3).std(dim=True, unbiased=False), "dim"),
    "unique": (lambda m: m.unique(m.ones(2, 3), dim=True), "dim"),
    "zeros": (lambda m: m.zeros(True), "size"),
    "reshape": (lambda m: m.ones(1).reshape((True,)), "shape"),
    "roll": (lambda m: m.roll(m.ones(3), True), "shifts"),
    "split": (lambda m: m.split(m.ones(3), True), "split_size"),
    "topk": (lambda m: m.topk(m.ones(3), True), "'k'"),
    "narrow": (lambda m: m.narrow(m.ones(3), 0, 0, True), "length"),
    "diag": (lambda m: m.diag(m.ones(3), True), "diagonal"),
    "diagonal": (lambda m: m.diagonal(m.ones(3, 3), True), "offset"),
    "tril": (lambda m: m.tril(m.ones(3, 3), True), "diagonal"),
    "tril_indices": (lambda m: m.tril_indices(3, 3, True), "offset"),
    "diff": (lambda m: m.diff(m.ones(3), True), "'n'"),
    "round": (lambda m: m.round(m.ones(3), decimals=True), "decimals"),
    "histc": (lambda m: m.histc(m.ones(3), True), "bins"),
    "linspace": (lambda m: m.linspace(0, 1, True), "steps"),
    "avg_pool2d": (lambda m: m.nn.functional.avg_pool2d(m.ones(1, 4, 4), True), "kernel_size"),
    "max_pool2d": (lambda m: m.nn.functional.max_pool2d(m.ones(1, 4, 4), (True, 2)), "kernel_size"),
    "stride": (lambda m: m.conv2d(m.ones(1, 4, 4), m.ones(1, 1, 2, 2), stride=True), "stride"),
    "groups": (lambda m: m.conv2d(m.ones(1, 4, 4), m.ones(1, 1, 2, 2), groups=True), "groups"),
    "layer_norm": (lambda m: m.nn.functional.layer_norm(m.ones(2, 1), (True,)), "normalized_shape"),
}
FLOATS = {
    "diag": (lambda m: m.diag(m.ones(3), 1.5), "diagonal"),
    "diagonal": (lambda m: m.diagonal(m.ones(3, 3), 1.0), "offset"),
    "tril": (lambda m: m.tril(m.ones(3, 3), 1.0), "diagonal"),
    "triu_indices": (lambda m: m.triu_indices(3.0, 3), "row"),
    "round": (lambda m: m.round(m.ones(3), decimals=1.0), "decimals"),
    "kthvalue": (lambda m: m.kthvalue(m.ones(3), np.float32(1)), "'k'"),
}
NUMBERS = {
    "alpha": (lambda m: m.add(m.ones(3), m.ones(3), alpha=np.ones(1)), "alpha"),
    "rtol": (lambda m: m.isclose(m.ones(3), m.ones(3), rtol=np.ones(1)), "rtol"),
    "dx": (lambda m: m.trapezoid(m.ones(3), dx=np.ones(1)), "dx"),
    "dist": (lambda m: m.dist(m.ones(3), m.ones(3), None), "'p'"),
    "clamp_min": (lambda m: m.clamp_min(m.ones(3), None), "min"),
    "logit": (lambda m: m.logit(m.ones(3), 1j), "eps"),
    "eps": (lambda m: m.nn.functional.poisson_nll_loss(m.ones(3), m.ones(3), eps="2"), "eps"),
    "delta": (lambda m: m.nn.HuberLoss(delta="2"), "delta"),
    "normal": (lambda m: m.normal("2", m.ones(3)), "mean"),
    "bernoulli": (lambda m: m.bernoulli(m.ones(3), np.array("2")), "'p'"),
    "histc": (lambda m: m.histc(m.ones(3), min=np.array("2")), "min"),
    "ord": (lambda m: m.linalg.vector_norm(m.ones(3), np.array(["2"], object)), "ord"),
    "trunc_normal_": (lambda m: m.nn.init.trunc_normal_(m.ones(3), "2"), "mean"),
    "scale_factor": (lambda m: m.nn.Upsample(scale_factor=[2]), "scale_factor"),
    "gain": (lambda m: m.nn.init.orthogonal_(m.ones(3, 3), [1]), "gain"),
    "lambd": (lambda m: m.ones(3).exponential_(np.ones(1)), "lambd"),
    "p": (lambda m: m.ones(3).bernoulli_(np.ones(1)), "'p'"),
    "matrix_norm": (lambda m: m.linalg.matrix_norm(m.ones(3, 3), np.ones(1)), "ord"),
    **{
        name: (
            lambda m, name=name: m.nn.functional.local_response_norm(
                m.ones(1, 3, 3), 2, **{name: np.ones(1)}
            ),
            name,
        )
        for name in ("alpha", "beta", "k")
    },
    **{
        f"margin of {name}": (
            lambda m, name=name: getattr(m.nn.functional, name)(
                *[m.ones(2, 3), m.ones(2, 3), m.ones(2)][: 3 if "cos" in name else 2],
                margin=np.ones(1),
            ),
            "margin",
        )
        for name in ("cosine_embedding_loss", "hinge_embedding_loss")
    },
    "gaussian_nll_loss": (
        lambda m: m.nn.functional.gaussian_nll_loss(*[m.ones(3)] * 3, eps=np.ones(1)),
        "eps",
    ),
}
OTHERS = {
    "aminmax": (lambda m: m.aminmax(m.ones(3), dim=[0]), "dim"),
    "prod": (lambda m: m.prod(m.ones(3), dim=[0]), "dim"),
    "logsumexp": (lambda m: m.logsumexp(m.ones(3), None), "dim"),
    "movedim": (lambda m: m.movedim(m.ones(3, 3), [0], 1), "source"),
    "adaptive": (
        lambda m: m.nn.functional.adaptive_avg_pool2d(m.ones(1, 3, 3), None),
        "output_size",
    ),
    "sections": (lambda m: m.ones(3).tensor_split(sections=[1]), "sections"),
    "split_sizes": (lambda m: m.ones(3).split_with_sizes(object()), "split_sizes"),
    "randperm": (lambda m: m.randperm([1]), "'n'"),
    "output_size": (
        lambda m: m.nn.functional.max_unpool2d(
            m.ones(1, 1, 1), m.zeros(1, 1, 1).long(), 2, output_size="2"
        ),
        "output_size",
    ),
    "trunc_normal_": (lambda m: m.nn.init.trunc_normal_("2"), "tensor"),
    "unflatten": (lambda m: m.ones(4).unflatten(0, -1), "sizes"),
    "parameters_to_vector": (lambda m: m.nn.utils.parameters_to_vector(np.ones(1)), "parameters"),
}
GRADIENTS = {
    "an int": 1,
    "None": None,
    "ints": [1],
    "bytes": b"2",
    "an array": np.array(["2"], object),
}
REFUSED = [
    pytest.param(*call, id=f"{kind}-{name}")
    for kind, calls in [("bool", BOOLS), ("float", FLOATS), ("number", NUMBERS), ("other", OTHERS)]
    for name, call in calls.items()
]


@pytest.mark.parametrize(("call", "name"), REFUSED)
def test_wrong_types_are_refused_by_name(call, name):
    with pytest.raises(TypeError, match=name):
        call(convcore)


@pytest.mark.parametrize(("call", "name"), REFUSED)
def test_pytorch_refuses_the_same(torch, call, name):
    with pytest.raises((TypeError, AttributeError, ValueError)):
        call(torch)


def test_tensordot_refuses_a_float_as_pytorch(torch):
    for m in (convcore, torch):
        with pytest.raises(RuntimeError, match=r"tensordot expects dims to be .*dims=1\.0"):
            m.tensordot(m.ones(3), m.ones(3), np.float32(1))


@pytest.mark.parametrize("function", ["clip_grad_norm_", "clip_grad_value_"])
@pytest.mark.parametrize("given", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_to_clip_are_named(function, given):
    with pytest.raises(TypeError, match=r"'parameters' .*Tensor"):
        getattr(convcore.nn.utils, function)(given, 1.0)


def test_total_norm_is_named():
    with pytest.raises(TypeError, match=r"'total_norm' .*Tensor"):
        convcore.nn.utils.clip_grads_with_norm_([convcore.ones(2)], 1.0, np.float32(1))


def test_fused_statistics_are_named():
    weight, mean = convcore.ones(2, 2, 1, 1), convcore.ones(2)
    with pytest.raises(TypeError, match="'bn_rv' must be Tensor"):
        convcore.nn.utils.fuse_conv_bn_weights(weight, None, mean, np.ones(2), 1e-5, None, None)


# What PyTorch takes, of all places.
TAKEN = {
    "a bool behind the first size": lambda m: m.zeros(2, True),
    "a bool behind the first step": lambda m: m.roll(m.arange(4).reshape(2, 2), (0, True), (0, 1)),
    "a bool behind the first window": lambda m: m.nn.functional.max_pool2d(
        m.arange(16.0).reshape(1, 4, 4), (2, True)
    ),
    "a layer of one feature": lambda m: m.nn.Linear(True, 2).weight.shape,
    "a kernel of one tap": lambda m: m.nn.Conv2d(1, 2, True).weight.shape,
    "a tensor of one int": lambda m: m.arange(6.0).reshape(2, 3).sum(m.tensor(1)),
    "NumPy's int": lambda m: m.arange(6.0).reshape(2, 3).sum(np.int64(1)),
    "a quotient of numbers": lambda m: m.div(1, 2),
    "a rounded quotient of numbers": lambda m: m.div(7.0, 2, rounding_mode="floor"),
    "a quotient of numbers below": lambda m: m.floor_divide(7, 2),
    "alpha of 1.0": lambda m: m.add(m.ones(2), m.ones(2), alpha=1.0),
    "alpha of bools": lambda m: m.add(m.ones(2) > 0, m.ones(2) > 0, alpha=True),
    "a fraction of integers": lambda m: m.addmm(*[m.ones(2, 2).long()] * 3, beta=1.5),
    "var's older order": lambda m: m.arange(3.0).var(False),
}


@pytest.mark.parametrize("call", TAKEN.values(), ids=TAKEN)
def test_what_pytorch_takes_is_taken(torch, call):
    ours, theirs = call(convcore), call(torch)
    if isinstance(theirs, torch.Tensor):
        assert str(ours.dtype) == str(theirs.dtype)
        ours, theirs = ours.tolist(), theirs.tolist()
    assert ours == theirs


SCALES = {
    "a bool": (lambda m: m.add(m.ones(2), m.ones(2), alpha=True), "Boolean alpha"),
    "a fraction": (lambda m: m.sub(m.arange(2), m.arange(2), alpha=1.0), "floating point"),
    "NumPy's": (lambda m: m.rsub(m.arange(2), 1, alpha=np.float32(2)), "floating point"),
    "complex": (lambda m: m.add(m.ones(2), 1, alpha=1j), "complex"),
    "value": (lambda m: m.nn.functional.threshold(m.arange(3), 0, math.nan), "without overflow"),
    "a step": (lambda m: m.arange(0, 5, math.nan, dtype=m.int64), "step must be"),
    "NaN": (lambda m: m.addmm(*[m.ones(2, 2).long()] * 3, beta=math.nan), "without overflow"),
    "addcmul": (lambda m: m.addcmul(*[m.ones(2)] * 3, value=1j), "without overflow"),
    "index_add": (
        lambda m: m.index_add(m.ones(2), 0, m.tensor([0]), m.ones(1), alpha=1j),
        "without overflow",
    ),
    "rtol": (lambda m: m.isclose(m.ones(2), m.ones(2), rtol=math.nan), "rtol must be"),
}


@pytest.mark.parametrize(("call", "said"), SCALES.values(), ids=SCALES)
def test_factors_that_the_dtype_has_not_are_refused(torch, call, said):
    for library in (convcore, torch):
        with pytest.raises(RuntimeError, match=said):
            call(library)
