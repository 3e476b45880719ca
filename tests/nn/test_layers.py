"""Layers: outputs, gradients, printed forms, errors and what legacy hooks see, against PyTorch."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest
from against_torch import same_error
from elements import ACTIVATIONS, IDS, layer_maker
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import nn
from convcore._errors import without_hint

EXAMPLES = examples(50)


# The same module twice


def twins(torch, make):
    """The same module of PyTorch and of convcore, with the same parameters, in float64."""
    theirs = make(torch.nn).double()
    ours = make(nn).double()
    state = {k: convcore.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    ours.load_state_dict(state)
    return theirs, ours


def tensor_in(library, array):
    """A leaf around a copy of an array; it requires grad if it can."""
    tensor = library.from_numpy(array.copy(order="K"))
    if array.dtype.kind == "f":
        tensor.requires_grad = True
    return tensor


def outcome(library, module, arrays, seed, **kwargs):
    """Output and gradients of inputs and parameters, or the error, as arrays or text."""
    inputs = [tensor_in(library, array) for array in arrays]
    try:
        output = module(*inputs, **kwargs)
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        return type(error), without_hint(error)
    outputs = output if isinstance(output, tuple) else (output,)
    values = [t.detach().numpy() for t in outputs]
    rng = np.random.default_rng(seed)
    grad = library.from_numpy(np.asarray(rng.standard_normal(outputs[0].shape)))
    outputs[0].backward(grad)
    leaves = [*inputs, *module.parameters()]
    gradients = [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    return values, gradients


def check_twins(torch, make, *arrays, seed=0, rtol=1e-10, **kwargs):
    """The same outputs and gradients in both libraries, or an error in both."""
    theirs, ours = twins(torch, make)
    expected = outcome(torch, theirs, arrays, seed, **kwargs)
    got = outcome(convcore, ours, arrays, seed, **kwargs)
    assert repr(theirs) == repr(ours)
    if isinstance(expected[0], type):
        assert isinstance(got[0], type), f"PyTorch raises {expected}"
        return
    assert not isinstance(got[0], type), got
    for mine, other in zip(got[0] + got[1], expected[0] + expected[1], strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert mine.shape == other.shape and mine.dtype == other.dtype
            np.testing.assert_allclose(mine, other, rtol=rtol, atol=rtol)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


# Convolutions


@st.composite
def convolutions(draw):
    """(class name, arguments, keyword arguments, input shape)."""
    rank = draw(st.sampled_from([1, 1, 2, 2, 2, 3]))
    groups = draw(st.integers(1, 2))
    channels = [groups * draw(st.integers(1, 2)) for _ in range(2)]
    per_axis = st.tuples(*[st.integers(1, 3)] * rank)
    kernel = draw(per_axis)
    dilation = draw(per_axis)
    mode = draw(st.sampled_from(["zeros", "zeros", "reflect", "replicate", "circular"]))
    padding = draw(
        st.sampled_from(["same", "valid", 1])
        | st.integers(0, 2)
        | st.tuples(*[st.integers(0, 2)] * rank)
    )
    stride = 1 if padding == "same" else draw(st.integers(1, 3) | per_axis)
    sizes = draw(st.tuples(*[st.integers(3, 7)] * rank))
    kwargs = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
        "bias": draw(st.booleans()),
        "padding_mode": mode,
    }
    batch = draw(st.sampled_from([(2,), (1,), ()]))
    return f"Conv{rank}d", (*channels, kernel), kwargs, (*batch, channels[0], *sizes)


def test_convolutions_equal_pytorch(torch, seed):
    @examples(120)
    @given(convolutions())
    def check(case):
        name, args, kwargs, shape = case
        with warnings.catch_warnings():  # PyTorch copies for even kernels and 'same', and says so
            warnings.simplefilter("ignore")
            check_twins(torch, lambda nn: getattr(nn, name)(*args, **kwargs), normal(seed, *shape))

    check()


@st.composite
def transposed_convolutions(draw):
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    groups = draw(st.integers(1, 2))
    channels = [groups * draw(st.integers(1, 2)) for _ in range(2)]
    per_axis = st.tuples(*[st.integers(1, 3)] * rank)
    kernel, stride, dilation = draw(per_axis), draw(per_axis), draw(per_axis)
    padding = draw(st.tuples(*[st.integers(0, 1)] * rank))
    output_padding = draw(st.integers(0, 1) | st.tuples(*[st.integers(0, 2)] * rank))
    sizes = draw(st.tuples(*[st.integers(2, 4)] * rank))
    batch = draw(st.sampled_from([(2,), ()]))
    kwargs = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "output_padding": output_padding,
        "groups": groups,
        "bias": draw(st.booleans()),
    }
    shape = (*batch, channels[0], *sizes)
    smallest = [
        (n - 1) * s - 2 * p + d * (k - 1) + 1
        for n, s, p, d, k in zip(sizes, stride, padding, dilation, kernel, strict=True)
    ]
    more = draw(st.none() | st.tuples(*[st.integers(-1, 3)] * rank))
    size = None if more is None else [a + b for a, b in zip(smallest, more, strict=True)]
    if size is not None and draw(st.booleans()):
        size = [*batch, channels[1], *size]
    return f"ConvTranspose{rank}d", (*channels, kernel), kwargs, shape, size


def test_transposed_convolutions_equal_pytorch(torch, seed):
    @examples(80)
    @given(transposed_convolutions())
    def check(case):
        name, args, kwargs, shape, size = case
        make = lambda nn: getattr(nn, name)(*args, **kwargs)  # noqa: E731
        check_twins(torch, make, normal(seed, *shape), output_size=size)

    check()


def test_channels_last_goes_through_a_convolution(seed):
    layer = nn.Conv2d(3, 4, 3, padding=1)
    image = convcore.from_numpy(normal(seed, 2, 3, 5, 5).astype(np.float32))
    last = image.contiguous(memory_format=convcore.channels_last)
    output = layer(last)
    assert output.is_contiguous(memory_format=convcore.channels_last)
    np.testing.assert_allclose(
        output.detach().numpy(), layer(image).detach().numpy(), rtol=1e-5, atol=1e-5
    )


def test_a_weight_may_be_replaced_by_a_plain_tensor():
    layer = nn.Conv2d(1, 1, 1, bias=False)
    weight = convcore.ones(1, 1, 1, 1) * 3
    del layer.weight
    layer.weight = weight
    assert layer(convcore.ones(1, 1, 1, 1)).item() == 3


def test_subclasses_may_convolve_with_another_weight():
    class Doubled(nn.Conv2d):
        def forward(self, input):
            return self._conv_forward(input, 2 * self.weight, None)

    layer = Doubled(1, 1, 1)
    with convcore.no_grad():
        layer.weight.fill_(1.0)
    assert layer(convcore.ones(1, 1, 1, 1)).item() == 2


# Other layers, over their settings


@st.composite
def pools(draw):
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    kind = draw(st.sampled_from(["MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool"]))
    per_axis = lambda numbers: numbers | st.tuples(*[numbers] * rank)  # noqa: E731
    kwargs = {}
    if kind.startswith("Adaptive"):
        args = (draw(per_axis(st.integers(1, 4) | (st.none() if rank > 1 else st.just(2)))),)
        if args == (None,):
            args = ((None,) * rank,)
    else:
        args = (draw(per_axis(st.integers(1, 3))),)
        kwargs["stride"] = draw(st.none() | per_axis(st.integers(1, 3)))
        kwargs["padding"] = draw(st.integers(0, 1))
        kwargs["ceil_mode"] = draw(st.booleans())
        if kind == "MaxPool":
            kwargs["dilation"] = draw(st.integers(1, 2))
        else:
            kwargs["count_include_pad"] = draw(st.booleans())
            if rank > 1:
                kwargs["divisor_override"] = draw(st.none() | st.integers(1, 3))
    if "Max" in kind:
        kwargs["return_indices"] = draw(st.booleans())
    batch = draw(st.sampled_from([(2,), ()]))
    sizes = draw(st.tuples(*[st.integers(2, 6)] * rank))
    return f"{kind}{rank}d", args, kwargs, (*batch, 2, *sizes)


def test_pools_equal_pytorch(torch, seed):
    @examples(120)
    @given(pools())
    def check(case):
        name, args, kwargs, shape = case
        check_twins(torch, lambda nn: getattr(nn, name)(*args, **kwargs), normal(seed, *shape))

    check()


@st.composite
def pads(draw):
    rank = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["Zero", "Constant", "Reflection", "Replication", "Circular"]))
    args = (draw(st.integers(0, 2) | st.tuples(*[st.integers(-1, 2)] * (2 * rank))),)
    if kind == "Constant":
        args += (draw(st.sampled_from([0, 1.5])),)
    batch = draw(st.sampled_from([(2,), ()]))
    return f"{kind}Pad{rank}d", args, (*batch, 2, *draw(st.tuples(*[st.integers(3, 4)] * rank)))


def test_pads_equal_pytorch(torch, seed):
    @examples(80)
    @given(pads())
    def check(case):
        name, args, shape = case
        check_twins(torch, lambda nn: getattr(nn, name)(*args), normal(seed, *shape))

    check()


@EXAMPLES
@given(
    kernel=st.integers(1, 3) | st.tuples(st.integers(1, 3), st.integers(1, 2)),
    stride=st.integers(1, 2),
    padding=st.integers(0, 1),
    dilation=st.integers(1, 2),
    batched=st.booleans(),
)
def check_unfold_and_fold(kernel, stride, padding, dilation, batched, torch, seed):
    kwargs = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    batch = (2,) if batched else ()
    image = normal(seed, *batch, 2, 5, 6)
    check_twins(torch, lambda nn: nn.Unfold(**kwargs), image)
    columns = nn.Unfold(**kwargs)(convcore.from_numpy(image)).numpy()
    check_twins(torch, lambda nn: nn.Fold((5, 6), **kwargs), columns)


def test_unfold_and_fold_equal_pytorch(torch, seed):
    check_unfold_and_fold(torch=torch, seed=seed)


ELEMENTWISE = {
    key: layer_maker(name, **arguments)
    for key, (name, arguments, _) in zip(IDS, ACTIVATIONS, strict=True)
} | {
    "Softmax": lambda nn: nn.Softmax(-1),
    "LogSoftmax": lambda nn: nn.LogSoftmax(1),
    "Softmin": lambda nn: nn.Softmin(0),
    "PReLU": lambda nn: nn.PReLU(),
    "PReLU channels": lambda nn: nn.PReLU(4, 0.5),
    "GLU": lambda nn: nn.GLU(1),
    "Identity": lambda nn: nn.Identity(3, unused=4),
    "Flatten": lambda nn: nn.Flatten(),
    "Flatten some": lambda nn: nn.Flatten(0, 1),
    "Unflatten": lambda nn: nn.Unflatten(1, (2, 2)),
    "PixelShuffle": lambda nn: nn.PixelShuffle(2),
    "PixelUnshuffle": lambda nn: nn.PixelUnshuffle(2),
    "Linear": lambda nn: nn.Linear(6, 3),
    "Linear without bias": lambda nn: nn.Linear(6, 3, bias=False),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_layer_equals_pytorch(torch, name, seed):
    # PyTorch's 1 / 6 and 1 / alpha are float32.
    rtol = 1e-6 if name.startswith(("celu", "hardsigmoid")) else 1e-10
    check_twins(torch, ELEMENTWISE[name], 2 * normal(seed, 2, 4, 4, 6), rtol=rtol)


@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 6), (0, 6), (2, 5)])
def test_linear_takes_any_rank(torch, shape, seed):
    for bias in (True, False):
        check_twins(torch, lambda nn, bias=bias: nn.Linear(6, 3, bias), normal(seed, *shape))


INPLACE = [
    layer_maker(name, **arguments, inplace=True)
    for name, arguments, has_inplace in ACTIVATIONS
    if has_inplace
]


@pytest.mark.parametrize("make", INPLACE, ids=lambda make: repr(make(nn)))
def test_inplace_layers_write_into_their_input(torch, make, seed):
    class AfterProduct:
        """Doubles its input first: a leaf may not be changed in place."""

        def __init__(self, module):
            self.module = module
            self.parameters = module.parameters

        def __call__(self, x):
            product = x * 2
            assert self.module(product) is product
            return product

    array = normal(seed, 3, 4)
    theirs, ours = twins(torch, make)
    expected = outcome(torch, AfterProduct(theirs), [array], seed)
    got = outcome(convcore, AfterProduct(ours), [array], seed)
    for mine, other in zip(got[0] + got[1], expected[0] + expected[1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-7)


# Losses

CLASSES = np.array([2, 0, 4, -100, 1])
LOSSES = {
    "L1Loss": (lambda nn, r: nn.L1Loss(reduction=r), "any"),
    "MSELoss": (lambda nn, r: nn.MSELoss(reduction=r), "any"),
    "SmoothL1Loss": (lambda nn, r: nn.SmoothL1Loss(reduction=r, beta=0.5), "any"),
    "HuberLoss": (lambda nn, r: nn.HuberLoss(r, 0.5), "any"),
    "BCELoss": (lambda nn, r: nn.BCELoss(reduction=r), "probability"),
    "BCEWithLogitsLoss": (lambda nn, r: nn.BCEWithLogitsLoss(reduction=r), "probability"),
    "KLDivLoss": (lambda nn, r: nn.KLDivLoss(reduction=r, log_target=True), "any"),
    "NLLLoss": (lambda nn, r: nn.NLLLoss(reduction=r), "class"),
    "NLLLoss ignoring": (lambda nn, r: nn.NLLLoss(ignore_index=2, reduction=r), "class"),
    "CrossEntropyLoss": (lambda nn, r: nn.CrossEntropyLoss(reduction=r), "class"),
    "CrossEntropyLoss smoothed": (
        lambda nn, r: nn.CrossEntropyLoss(reduction=r, label_smoothing=0.1),
        "class",
    ),
    "CrossEntropyLoss of probabilities": (
        lambda nn, r: nn.CrossEntropyLoss(reduction=r),
        "probability",
    ),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_equals_pytorch(torch, name, reduction, seed):
    make, kind = LOSSES[name]
    rng = np.random.default_rng(seed)
    input = rng.standard_normal((5, 5))
    target = {"any": rng.standard_normal((5, 5)), "class": CLASSES}.get(kind)
    if kind == "probability":
        target = rng.uniform(0.1, 0.9, (5, 5))
        input = rng.uniform(0.1, 0.9, (5, 5)) if name == "BCELoss" else input
    if name == "NLLLoss ignoring":
        target = np.abs(CLASSES) % 5
    with warnings.catch_warnings():  # that a mean of divergences is not the divergence's
        warnings.simplefilter("ignore", UserWarning)
        check_twins(torch, lambda nn: make(nn, reduction), input, target, seed=seed)


def test_weighted_losses_equal_pytorch(torch, seed):
    rng = np.random.default_rng(seed)
    input, weight = rng.standard_normal((5, 5, 2)), rng.uniform(0.5, 2, 5)
    target = rng.integers(0, 5, (5, 2))
    for reduction in ("mean", "sum", "none"):
        for name in ("NLLLoss", "CrossEntropyLoss"):
            theirs = getattr(torch.nn, name)(torch.from_numpy(weight), reduction=reduction)
            ours = getattr(nn, name)(convcore.from_numpy(weight), reduction=reduction)
            expected = outcome(torch, theirs, [input, target], seed)
            got = outcome(convcore, ours, [input, target], seed)
            for mine, other in zip(got[0] + got[1], expected[0] + expected[1], strict=True):
                if mine is not None:
                    np.testing.assert_allclose(mine, other, rtol=1e-10)
            assert list(ours.state_dict()) == ["weight"]


def test_older_arguments_of_losses_warn_and_count():
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert nn.CrossEntropyLoss(reduce=False).reduction == "none"
    with pytest.warns(UserWarning, match="please use reduction='mean' instead"):
        assert nn.NLLLoss(size_average=True).reduction == "mean"
    with pytest.raises(ValueError, match="best is not a valid value for reduction"):
        nn.MSELoss(reduction="best")(convcore.ones(2), convcore.ones(2))


# Dropout


def test_dropout_zeroes_a_part_and_scales_the_rest(seed):
    convcore.manual_seed(seed)
    x = convcore.ones(100, 100, requires_grad=True)
    layer = nn.Dropout(0.25)
    output = layer(x)
    values = output.detach().numpy()
    assert set(np.unique(values)) == {np.float32(0), np.float32(1 / 0.75)}
    assert (values == 0).mean() == pytest.approx(0.25, abs=0.03)
    output.sum().backward()
    assert np.array_equal(x.grad.numpy(), values)
    assert layer.eval()(x) is x


def test_dropout_with_the_same_seed_drops_the_same():
    layer, x = nn.Dropout(), convcore.ones(50)
    outputs = []
    for _ in range(2):
        convcore.manual_seed(5)
        outputs.append(layer(x).tolist())
    assert outputs[0] == outputs[1] != layer(x).tolist()


@pytest.mark.parametrize("name", ["Dropout1d", "Dropout2d", "Dropout3d"])
def test_channel_dropout_zeroes_whole_channels(name, seed):
    convcore.manual_seed(seed)
    shape = (50, 20, *(3,) * int(name[-2]))
    values = getattr(nn, name)(0.5)(convcore.ones(*shape)).numpy().reshape(50, 20, -1)
    assert np.array_equal(values, np.broadcast_to(values[:, :, :1], values.shape))
    assert (values == 0).mean() == pytest.approx(0.5, abs=0.1)


def test_dropout_probability_is_checked():
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            nn.Dropout(p)
    assert nn.Dropout(1.0)(convcore.ones(3)).tolist() == [0, 0, 0]
    assert nn.Dropout(0.0)(convcore.ones(3)).tolist() == [1, 1, 1]


def test_dropout_in_place_changes_its_input():
    x = convcore.ones(20)
    assert nn.Dropout(0.5, inplace=True)(x) is x and 0 in x.tolist()


def test_alpha_dropout_keeps_mean_and_variance(seed):
    convcore.manual_seed(seed)
    values = nn.AlphaDropout(0.3)(convcore.randn(200, 200)).numpy()
    assert values.mean() == pytest.approx(0, abs=0.05)
    assert values.std() == pytest.approx(1, abs=0.05)


# Printed forms and signatures

PRINTED = [
    *ELEMENTWISE.values(),
    *INPLACE,
    lambda nn: nn.Conv2d(1, 4, kernel_size=1, bias=False),
    lambda nn: nn.Conv1d(2, 4, 3, 2, 1, 2, 2),
    lambda nn: nn.Conv2d(4, 4, (3, 2), padding="same", padding_mode="reflect"),
    lambda nn: nn.Conv2d(4, 4, [3, 2], padding="valid", stride=(1, 2)),
    lambda nn: nn.Conv3d(4, 4, 3, padding=(0, 1, 0)),
    lambda nn: nn.ConvTranspose1d(4, 4, 3),
    lambda nn: nn.ConvTranspose2d(4, 4, 3, 2, 1, 1, 2, False, 2),
    lambda nn: nn.ConvTranspose3d(4, 4, (1, 2, 3)),
    lambda nn: nn.Linear(2, 3),
    lambda nn: nn.Linear(2, 3, bias=False),
    lambda nn: nn.Softmax(),
    lambda nn: nn.MaxPool1d(2),
    lambda nn: nn.MaxPool2d((2, 3), stride=1, padding=(1, 1), dilation=2, ceil_mode=True),
    lambda nn: nn.MaxPool3d(2),
    lambda nn: nn.AvgPool1d(2),
    lambda nn: nn.AvgPool2d((2, 2), 1, 1, True, False, 3),
    lambda nn: nn.AvgPool3d(2),
    lambda nn: nn.AdaptiveAvgPool1d(2),
    lambda nn: nn.AdaptiveAvgPool2d((1, None)),
    lambda nn: nn.AdaptiveAvgPool2d((1, 1)),
    lambda nn: nn.AdaptiveMaxPool2d(1),
    lambda nn: nn.ZeroPad2d(1),
    lambda nn: nn.ConstantPad1d(1, 0),
    lambda nn: nn.ConstantPad3d(1, 2.5),
    lambda nn: nn.ReflectionPad2d((1, 2, 3, 4)),
    lambda nn: nn.ReplicationPad3d(2),
    lambda nn: nn.CircularPad1d(2),
    lambda nn: nn.Dropout(),
    lambda nn: nn.Dropout2d(0.2, True),
    lambda nn: nn.AlphaDropout(),
    lambda nn: nn.Unfold(2),
    lambda nn: nn.Fold((3, 3), 2, padding=1),
    lambda nn: nn.CrossEntropyLoss(),
    lambda nn: nn.BCEWithLogitsLoss(),
    lambda nn: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten()),
]


def test_printed_forms_equal_pytorch(torch):
    for make in PRINTED:
        assert repr(make(nn)) == repr(make(torch.nn))


def test_readme_of_a_founding_program_is_printed_as_there():
    layer = nn.Conv2d(1, 4, kernel_size=1, bias=False)
    assert str(layer) == "Conv2d(1, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)"
    assert str(nn.AdaptiveAvgPool2d((1, 1))) == "AdaptiveAvgPool2d(output_size=(1, 1))"


def parameters_of(function):
    parameters = list(inspect.signature(function).parameters.values())
    return [
        (p.name, getattr(p.default, "__name__", p.default), p.kind)  # a function by its name
        for p in parameters
        if p.name != "self"
    ]


LAYERS = sorted(
    name
    for name in nn.__all__
    if isinstance(getattr(nn, name), type)
    and getattr(nn, name).__module__.split(".")[-1] not in ("container", "module", "parameter")
)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_has_pytorchs_signature(torch, name):
    theirs, ours = getattr(torch.nn, name), getattr(nn, name)
    removed = {"min_value", "max_value"}  # of Hardtanh, deprecated since long
    expected = [p for p in parameters_of(theirs.__init__) if p[0] not in removed]
    assert parameters_of(ours.__init__) == expected
    if ours.forward is not nn.Module.forward:  # else it is a base of layers
        assert parameters_of(ours.forward) == parameters_of(theirs.forward)


def test_modules_are_found_where_pytorch_has_them():
    from convcore.nn.modules.conv import Conv2d
    from convcore.nn.modules.utils import _ntuple, _pair

    assert Conv2d is nn.Conv2d and nn.modules.Conv2d is Conv2d
    assert _pair(3) == (3, 3) and _pair([1, 2]) == (1, 2) and _ntuple(4)(0) == (0, 0, 0, 0)


def test_layers_have_pytorchs_attributes_and_state(torch):
    for make in PRINTED:
        theirs, ours = make(torch.nn), make(nn)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        public = {name for name in vars(theirs) if not name.startswith("_")} - {"transposed"}
        for name in public - {"training"}:
            if not isinstance(getattr(theirs, name), torch.Tensor):
                assert getattr(ours, name) == getattr(theirs, name), name


def test_device_and_dtype_of_parameters_can_be_chosen():
    for layer in (
        nn.Conv2d(1, 2, 3, device="cpu", dtype=convcore.float64),
        nn.ConvTranspose2d(1, 2, 3, dtype=convcore.float64),
        nn.Linear(1, 2, dtype=convcore.float64),
        nn.PReLU(dtype=convcore.float64),
    ):
        assert {p.dtype for p in layer.parameters()} == {convcore.float64}
    with pytest.raises(RuntimeError, match="CPU"):
        nn.Conv2d(1, 2, 3, device="cuda")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_layers_compute_the_same(copied, seed):
    layer = nn.Sequential(nn.Conv2d(1, 2, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2))
    x = convcore.from_numpy(normal(seed, 1, 1, 6, 6).astype(np.float32))
    assert copied(layer)(x).tolist() == layer(x).tolist()


# Errors

ERRONEOUS = [
    lambda nn: nn.Conv2d(3, 4, 3, groups=2),
    lambda nn: nn.Conv2d(4, 3, 3, groups=2),
    lambda nn: nn.Conv2d(4, 4, 3, groups=0),
    lambda nn: nn.Conv2d(4, 4, 3, groups=-1),
    lambda nn: nn.Conv1d(4, 4, 3, padding="same", stride=2),
    lambda nn: nn.ConvTranspose1d(4, 4, 3, padding_mode="reflect"),
    lambda nn: nn.ConvTranspose2d(4, 4, 3, padding_mode="circular"),
    lambda nn: nn.Dropout(2),
    lambda nn: nn.Dropout(-1),
]


@pytest.mark.parametrize("make", ERRONEOUS)
def test_errors_are_those_of_pytorch(torch, make):
    same_error(torch, lambda lib: make(lib.nn))


def test_errors_that_print_sets_name_what_is_allowed():
    with pytest.raises(ValueError, match=r"Invalid padding string 'valid2', should be one of \{"):
        nn.Conv2d(1, 1, 1, padding="valid2")
    with pytest.raises(ValueError, match=r"padding_mode must be one of \{.*'circular'.*\}, but"):
        nn.Conv2d(1, 1, 1, padding_mode="mirror")
    with pytest.raises(ValueError, match="padding of ConvTranspose2d must be numbers"):
        nn.ConvTranspose2d(1, 1, 1, padding="same")
    with pytest.raises(ValueError, match="must be below"):
        nn.Hardtanh(1, -1)


@pytest.mark.parametrize("size", [(1, 1), (1, 1, 1), (13, 13), [1, 4, 13, 11]])
def test_output_sizes_that_cannot_be_are_named_as_pytorch_names_them(torch, size):
    texts = []
    for library in (torch, convcore):
        layer = library.nn.ConvTranspose2d(4, 4, 3, stride=2)
        with pytest.raises(ValueError) as error:
            layer(library.ones(1, 4, 5, 5), output_size=size)
        texts.append(str(error.value).replace("(", "[").replace(")", "]"))
    assert texts[0] == texts[1]


CONV_ERRORS = [
    ((2, 3, 2), {}, (1, 3, 4, 4)),
    ((3, 3, 2), {}, (4, 4)),
    ((3, 3, 5), {}, (1, 3, 4, 4)),
    ((3, 3, 2), {"stride": 0}, (1, 3, 4, 4)),
    ((3, 3, 2), {"padding": -1}, (1, 3, 4, 4)),
    ((3, 3, 2), {"dilation": 0}, (1, 3, 4, 4)),
]


@pytest.mark.parametrize("case", CONV_ERRORS)
def test_convolution_errors_are_those_of_pytorch(torch, case):
    args, kwargs, shape = case
    texts = []
    for library in (torch, convcore):
        with pytest.raises(RuntimeError) as error:
            library.nn.Conv2d(*args, **kwargs)(library.ones(*shape))
        texts.append(without_hint(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "args", [("1", (2, 3)), (1, 6), (1, (2, "3"))], ids=["dim", "sizes", "a size"]
)
def test_unflatten_checks_its_arguments(args):
    with pytest.raises(TypeError):
        nn.Unflatten(*args)


def test_softmax_without_an_axis_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax") as caught:
        nn.Softmax()(convcore.ones(2, 3))
    assert len(caught) == 1


# What the legacy hook sees

IMAGE = (1, 2, 6, 6)
SCORES = (2, 3)
LEGACY = {
    # name: (module, input shape, node, grad_input shapes, grad_output shapes)
    "Linear": (
        lambda: nn.Linear(4, 1),
        (2, 4),
        "AddmmBackward0",
        ((1,), (2, 4), (4, 1)),
        ((2, 1),),
    ),
    "Linear 1-d": (lambda: nn.Linear(4, 1), (4,), "AddBackward0", ((1,), (1,)), ((1,),)),
    "Linear without bias": (
        lambda: nn.Linear(4, 1, bias=False),
        (2, 4),
        "MmBackward0",
        ((2, 4), (4, 1)),
        ((2, 1),),
    ),
    "Conv1d": (
        lambda: nn.Conv1d(2, 3, 3),
        (1, 2, 6),
        "ConvolutionBackward0",
        ((1, 2, 6), (3, 2, 3), (3,)),
        ((1, 3, 4),),
    ),
    "Conv2d": (
        lambda: nn.Conv2d(2, 3, 3),
        IMAGE,
        "ConvolutionBackward0",
        (IMAGE, (3, 2, 3, 3), (3,)),
        ((1, 3, 4, 4),),
    ),
    "Conv2d without bias": (
        lambda: nn.Conv2d(2, 3, 3, bias=False),
        IMAGE,
        "ConvolutionBackward0",
        (IMAGE, (3, 2, 3, 3), None),
        ((1, 3, 4, 4),),
    ),
    "Conv2d reflect": (
        lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
        IMAGE,
        "ConvolutionBackward0",
        ((1, 2, 8, 8), (3, 2, 3, 3), (3,)),
        ((1, 3, 6, 6),),
    ),
    "Conv2d unbatched": (
        lambda: nn.Conv2d(2, 3, 3),
        IMAGE[1:],
        "SqueezeBackward1",
        ((1, 3, 4, 4),),
        ((3, 4, 4),),
    ),
    "Conv3d": (
        lambda: nn.Conv3d(2, 3, 3),
        (1, 2, 6, 6, 6),
        "ConvolutionBackward0",
        ((1, 2, 6, 6, 6), (3, 2, 3, 3, 3), (3,)),
        ((1, 3, 4, 4, 4),),
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(2, 3, 3),
        IMAGE,
        "ConvolutionBackward0",
        (IMAGE, (2, 3, 3, 3), (3,)),
        ((1, 3, 8, 8),),
    ),
    "MaxPool2d": (
        lambda: nn.MaxPool2d(2),
        (1, 2, 4, 4),
        "MaxPool2DWithIndicesBackward0",
        ((1, 2, 4, 4),),
        ((1, 2, 2, 2),),
    ),
    "AvgPool2d": (
        lambda: nn.AvgPool2d(2),
        (1, 2, 4, 4),
        "AvgPool2DBackward0",
        ((1, 2, 4, 4),),
        ((1, 2, 2, 2),),
    ),
    "AdaptiveAvgPool2d(1)": (
        lambda: nn.AdaptiveAvgPool2d(1),
        (1, 4, 5, 5),
        "MeanBackward1",
        ((1, 4, 5, 5),),
        ((1, 4, 1, 1),),
    ),
    "AdaptiveAvgPool2d(2)": (
        lambda: nn.AdaptiveAvgPool2d(2),
        (1, 4, 5, 5),
        "AdaptiveAvgPool2DBackward0",
        ((1, 4, 5, 5),),
        ((1, 4, 2, 2),),
    ),
    "Dropout": (lambda: nn.Dropout(), (2, 4), "MulBackward0", ((2, 4), None), ((2, 4),)),
    "Flatten": (lambda: nn.Flatten(), (2, 3, 4), "ViewBackward0", ((2, 3, 4),), ((2, 12),)),
    "PixelShuffle": (
        lambda: nn.PixelShuffle(2),
        (1, 4, 2, 2),
        "PixelShuffleBackward0",
        ((1, 4, 2, 2),),
        ((1, 1, 4, 4),),
    ),
    "ZeroPad2d": (
        lambda: nn.ZeroPad2d(1),
        (1, 1, 2, 2),
        "ConstantPadNdBackward0",
        ((1, 1, 2, 2),),
        ((1, 1, 4, 4),),
    ),
    "Unfold": (
        lambda: nn.Unfold(2),
        (1, 1, 3, 3),
        "Im2ColBackward0",
        ((1, 1, 3, 3),),
        ((1, 4, 4),),
    ),
    "Fold": (
        lambda: nn.Fold((3, 3), 2),
        (1, 4, 4),
        "Col2ImBackward0",
        ((1, 4, 4),),
        ((1, 1, 3, 3),),
    ),
    "MSELoss": (lambda: nn.MSELoss(), SCORES, "MseLossBackward0", (SCORES, None), ((),)),
    "L1Loss": (lambda: nn.L1Loss(), SCORES, "MeanBackward0", (SCORES,), ((),)),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(),
        SCORES,
        "NllLossBackward0",
        (SCORES,),
        ((),),
    ),
    "NLLLoss": (lambda: nn.NLLLoss(), SCORES, "NllLossBackward0", (SCORES,), ((),)),
} | {
    f"{name} activation": (make, SCORES, f"{name}Backward0", (SCORES,), (SCORES,))
    for name, make in {
        "Relu": lambda: nn.ReLU(),
        "LeakyRelu": lambda: nn.LeakyReLU(),
        "Sigmoid": lambda: nn.Sigmoid(),
        "Tanh": lambda: nn.Tanh(),
        "Softmax": lambda: nn.Softmax(1),
        "LogSoftmax": lambda: nn.LogSoftmax(1),
        "Gelu": lambda: nn.GELU(),
        "Elu": lambda: nn.ELU(),
        "Celu": lambda: nn.CELU(),
        "Silu": lambda: nn.SiLU(),
        "Mish": lambda: nn.Mish(),
        "Softplus": lambda: nn.Softplus(),
        "Hardtanh": lambda: nn.ReLU6(),
        "Hardswish": lambda: nn.Hardswish(),
    }.items()
}
LEGACY["Relu in place"] = (
    lambda: nn.ReLU(inplace=True),
    SCORES,
    "ReluBackward0",
    (SCORES,),
    (SCORES,),
)


def shapes(tensors):
    return tuple(None if tensor is None else tuple(tensor.shape) for tensor in tensors)


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_hook_sees_pytorchs_node(name):
    make, shape, node, grad_input, grad_output = LEGACY[name]
    module, seen = make(), []
    module.register_backward_hook(lambda m, gi, go: seen.append((shapes(gi), shapes(go))))
    inputs = [convcore.ones(*shape, requires_grad=True) * 2]
    if isinstance(module, (nn.NLLLoss, nn.CrossEntropyLoss)):
        inputs.append(convcore.tensor([0, 2]))
    elif "Loss" in name:
        inputs.append(convcore.zeros(*shape))
    with warnings.catch_warnings():  # what the hook sees is not the module's gradient everywhere
        warnings.simplefilter("ignore", FutureWarning)
        output = module(*inputs)
    assert output.grad_fn.name() == node
    output.sum().backward()
    assert seen == [(grad_input, grad_output)]


def test_legacy_hook_of_a_convolution_of_a_plain_input_sees_no_input_gradient():
    layer, seen = nn.Conv2d(2, 3, 3), []
    layer.register_backward_hook(lambda m, gi, go: seen.append(shapes(gi)))
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        output = layer(convcore.ones(*IMAGE))
    output.sum().backward()
    assert seen == [(None, (3, 2, 3, 3), (3,))]


# Default values of parameters are in test_init.py


def test_layers_without_elements_warn_and_work():
    with pytest.warns(UserWarning, match="zero-element"):
        layer = nn.Conv2d(0, 4, 3)
    assert layer.weight.shape == (4, 0, 3, 3) and layer.bias.shape == (4,)
    layer.bias.data.fill_(7)
    with pytest.warns(UserWarning, match="zero-element"):
        layer.reset_parameters()
    assert layer.bias.tolist() == [0, 0, 0, 0]  # not what was in the memory
    with pytest.warns(UserWarning, match="zero-element"):
        assert nn.Linear(3, 0)(convcore.ones(2, 3)).shape == (2, 0)


@pytest.mark.parametrize(
    ("rank", "shape"), [(1, (2, 3, 4, 5)), (1, (3,)), (2, (2, 3)), (3, (2, 3))]
)
def test_circular_padding_of_other_ranks_is_refused(lib, rank, shape):
    with pytest.raises(ValueError, match=rf"expected {rank + 1}D or {rank + 2}D input \(got"):
        getattr(lib.nn, f"CircularPad{rank}d")(1)(lib.ones(shape))
