"""Batch, group and instance norm beside PyTorch's; error bounds, threads, modules."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from against_torch import agree, differentiated, same, same_error
from elements import SEEDS
from hypothesis import given
from hypothesis import strategies as st
from norms import DTYPES, FORMATS, TOLERANCE, laid_out, numbers
from properties import examples

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.engine.layers.norm import norm
from convcore.nn import functional as F

SHAPES = st.sampled_from(
    [(4, 6), (3, 6, 5), (2, 6, 3, 4), (5, 6, 1, 1), (1, 6, 7, 9), (2, 6, 2, 3, 2), (3, 6, 17, 16)]
)


def with_running(lib, function, channels, dtype, seed):
    """Return ``function(running_mean, running_var)``'s result, and the two as they are after it."""
    rng = np.random.default_rng(seed)
    mean = lib.from_numpy(np.asarray(rng.normal(size=channels), dtype))
    var = lib.from_numpy(np.asarray(rng.uniform(0.5, 2, channels), dtype))
    return function(mean, var), mean, var


# Values, gradients, and gradients of those


@examples(40)
@given(DTYPES, SHAPES, FORMATS, st.booleans(), st.booleans(), st.booleans(), SEEDS)
def test_batch_norm_agrees_with_pytorch(torch, dtype, shape, form, training, affine, runs, seed):
    rng = np.random.default_rng(seed)
    x, w, b = numbers(rng, dtype, shape, shape[1], shape[1])

    def function(lib, x, *affine):
        def of(*running):
            if training and not runs:
                running = (None, None)
            return lib.nn.functional.batch_norm(
                x, *running, *affine, training=training, momentum=0.3, eps=1e-3
            )

        return with_running(lib, of, shape[1], dtype, seed)

    args = (w, b) if affine else ()
    agree(torch, function, laid_out(x, form), *args, nodes=1, rtol=TOLERANCE[dtype], seed=seed)


@pytest.mark.parametrize("training", [False, True])
def test_gradient_of_a_norm_in_a_graph_can_be_detached_in_place(lib, training):
    x = lib.ones(2, 3, 4, 4, requires_grad=True)
    y = lib.nn.functional.batch_norm(x, lib.zeros(3), lib.ones(3), training=training)
    (grad,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    assert grad.detach_() is grad and grad.is_leaf and not grad._is_view()


@examples(40)
@given(DTYPES, SHAPES, FORMATS, st.sampled_from([1, 2, 3, 6]), st.booleans(), SEEDS)
def test_group_norm_agrees_with_pytorch(torch, dtype, shape, form, groups, affine, seed):
    if np.prod(shape[2:], dtype=int) * 6 // groups < 2:
        groups = 1
    rng = np.random.default_rng(seed)
    x, w, b = numbers(rng, dtype, shape, 6, 6)

    def function(lib, x, *affine):
        return lib.nn.functional.group_norm(x, groups, *affine, eps=1e-3)

    args = (w, b) if affine else ()
    agree(torch, function, laid_out(x, form), *args, nodes=1, rtol=TOLERANCE[dtype], seed=seed)


@examples(30)
@given(DTYPES, SHAPES, FORMATS, st.booleans(), st.booleans(), st.booleans(), SEEDS)
def test_instance_norm_agrees_with_pytorch(torch, dtype, shape, form, own, affine, runs, seed):
    if np.prod(shape[2:], dtype=int) == 1:
        shape = (*shape[:2], 4, 3)
    rng = np.random.default_rng(seed)
    x, w, b = numbers(rng, dtype, shape, shape[1], shape[1])

    def function(lib, x, *affine):
        def of(*running):
            if own and not runs:
                running = (None, None)
            return lib.nn.functional.instance_norm(
                x, *running, *affine, use_input_stats=own, momentum=0.3, eps=1e-3
            )

        return with_running(lib, of, shape[1], dtype, seed)

    args = (w, b) if affine else ()
    agree(torch, function, laid_out(x, form), *args, rtol=TOLERANCE[dtype], seed=seed)


@examples(40)
@given(
    DTYPES,
    SHAPES,
    FORMATS,
    st.sampled_from(["relu", "relu6", None]),
    st.booleans(),
    st.booleans(),
    SEEDS,
)
def test_fused_batch_norm_is_the_three_functions(
    dtype, shape, form, activation, more, training, seed
):
    rng = np.random.default_rng(seed)
    x, w, b, r = numbers(rng, dtype, shape, shape[1], shape[1], shape)
    arrays = (laid_out(2 * x, form), 3 * w, b, r) if more else (laid_out(2 * x, form), 3 * w, b)

    def fused(lib, x, w, b, residual=None):
        return with_running(
            lib,
            lambda *running: F.batch_norm_activation(
                x, *running, w, b, training, residual=residual, activation=activation
            ),
            shape[1],
            dtype,
            seed,
        )

    def plain(lib, x, w, b, residual=None):
        y, *running = with_running(
            lib, lambda *running: F.batch_norm(x, *running, w, b, training), shape[1], dtype, seed
        )
        y = y if residual is None else y + residual
        return (getattr(F, activation)(y) if activation else y, *running)

    ours = differentiated(convcore, fused, arrays, seed)
    theirs = differentiated(convcore, plain, arrays, seed)
    assert ours.keys() == theirs.keys()
    for what, expected in theirs.items():
        if expected is not None:
            same(ours[what], expected, what, TOLERANCE[dtype])


def test_fused_and_plain_batch_norm_have_gradients_that_gradcheck_finds(rng):
    x, w, b, r = (
        convcore.from_numpy(array).requires_grad_()
        for array in numbers(rng, "float64", (3, 2, 2, 2), 2, 2, (3, 2, 2, 2))
    )
    assert gradcheck(lambda *a: F.batch_norm(a[0], None, None, *a[1:], training=True), (x, w, b))
    assert gradgradcheck(
        lambda *a: F.batch_norm(a[0], None, None, *a[1:], training=True), (x, w, b)
    )

    def fused(x, w, b, r):
        return F.batch_norm_activation(x, None, None, w, b, True, residual=r)

    assert gradcheck(fused, (x, w, b, r))
    assert gradcheck(lambda x, w, b: F.group_norm(x, 1, w, b), (x, w, b))


def test_half_precision_is_computed_in_single(torch, rng):
    x = rng.normal(size=(3, 4, 5, 5)).astype("f2")
    y = F.batch_norm(convcore.from_numpy(x), None, None, training=True)
    expected = F.batch_norm(convcore.from_numpy(x.astype("f4")), None, None, training=True)
    np.testing.assert_array_equal(y.numpy(), expected.numpy().astype("f2"))


def test_half_precision_leaves_gradients_of_float32_weights_in_float32(rng):
    def gradients(dtype, **options):
        tensors = [
            convcore.from_numpy(a).to(t).requires_grad_()
            for a, t in zip(arrays, dtype, strict=True)
        ]
        y = F.batch_norm(tensors[0], None, None, *tensors[1:], training=True)
        return convcore.autograd.grad(y.double().pow(3).sum(), tensors, **options)

    x = rng.normal(size=(9, 4, 5)).astype("f2")
    arrays = x, *numbers(rng, "f4", 4, 4)
    half = convcore.float16, convcore.float32, convcore.float32
    exact = gradients([convcore.float64] * 3)
    scale = float(exact[0].abs().max())
    fused, composed = gradients(half), gradients(half, create_graph=True)
    assert all(g.grad_fn is not None for g in composed)
    for grads in (fused, composed):
        assert tuple(g.dtype for g in grads) == half
        np.testing.assert_allclose(grads[0].detach(), exact[0], 0, 2e-2 * scale)
    for first, second in zip(fused[1:], composed[1:], strict=True):
        np.testing.assert_allclose(first, second.detach(), 2e-6)  # float16 has 3 digits


def test_statistics_that_cannot_be_written_leave_the_others_unchanged(rng):
    x = convcore.from_numpy(rng.normal(size=(3, 6)))
    mean, var = convcore.zeros(6), convcore.ones(1).expand(6)
    with pytest.raises(RuntimeError, match=r"more than one element .* single memory location"):
        F.batch_norm(x, mean, var, training=True)
    assert mean.tolist() == [0] * 6
    assert var.tolist() == [1] * 6


# Accuracy


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
@pytest.mark.parametrize(("dtype", "mean"), [("float32", 1e4), ("float64", 1e8)])
def test_a_large_mean_costs_no_digits(rng, dtype, mean, form):
    x = laid_out((rng.normal(size=(8, 20, 30, 30)) + mean).astype(dtype), form)
    x[0, 3, 0, 0] = -mean  # the shift is then far from all the others
    _, (means, variances) = norm.forward(x, None, None, 1e-5)
    wide = x.astype(np.longdouble)
    exact = wide.mean((0, 2, 3))
    spread = ((wide - exact[:, None, None]) ** 2).mean((0, 2, 3))
    count = x.size / 20
    np.testing.assert_allclose(means, exact.astype(float), rtol=1e-14)
    np.testing.assert_allclose(variances, spread.astype(float), rtol=count * 2.0**-53 * 256)


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
def test_a_result_is_as_good_as_its_dtype(rng, form):
    x = laid_out((rng.normal(size=(4, 33, 20, 20)) + 50).astype("f4"), form)
    w, b = numbers(rng, "f4", 33, 33)
    y, _ = norm.forward(x, w, b, 1e-5)
    exact, _ = norm.forward(x.astype("f8"), w.astype("f8"), b.astype("f8"), 1e-5)
    scale = np.abs(exact).max()
    assert np.abs(y - exact).max() <= 4 * np.finfo("f4").eps * scale


def test_what_is_not_finite_stays_in_its_channel(rng):
    x = rng.normal(size=(3, 40, 9, 9)).astype("f4")
    clean, _ = norm.forward(x, None, None, 1e-5)
    x[1, 5, 2, 2], x[0, 7, 0, 0], x[2, 9, 3, 3] = np.nan, np.inf, -np.inf
    for form in ("contiguous", "channels_last"):
        with np.errstate(all="ignore"):
            y, _ = norm.forward(laid_out(x, form), None, None, 1e-5)
        bad = [5, 7, 9]
        assert np.isnan(y[:, bad]).any(axis=(0, 2, 3)).all()
        np.testing.assert_allclose(
            np.delete(y, bad, 1), np.delete(clean, bad, 1), rtol=1e-5, atol=1e-5
        )


def test_equal_elements_have_a_variance_of_zero():
    x = np.full((2, 3, 50, 50), 0.1, "f4")
    for form in ("contiguous", "channels_last"):
        y, (mean, variance) = norm.forward(laid_out(x, form), None, None, 1e-5)
        assert not variance.any() and not y.any()
        np.testing.assert_array_equal(mean, np.float64(np.float32(0.1)))


# Threads and memory


@pytest.mark.parametrize("form", ["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", [(6, 48, 30, 31), (4, 5, 90, 91)])
def test_bits_do_not_depend_on_threads(rng, threads, shape, form):
    x, r, g = (laid_out(a, form) for a in numbers(rng, "f4", shape, shape, shape))
    w, b = numbers(rng, "f4", shape[1], shape[1])
    bits = set()
    for count in (1, 2, 3, 7):
        threads(count)
        found = []
        for groups in (None, 1, shape[1]):
            y, statistics = norm.forward(x, w, b, 1e-5, groups, None, r, "relu")
            grads = norm.backward(
                g, x, w, b, 1e-5, statistics, False, groups, "relu", y, needs_input=True
            )
            found += [y, statistics, *grads]
        bits.add(b"".join(array.tobytes() for array in found))
    assert len(bits) == 1


def test_results_keep_the_format_and_lie_in_the_pool(rng):
    x = convcore.from_numpy(rng.normal(size=(4, 32, 30, 30)).astype("f4"))
    for form in (convcore.contiguous_format, convcore.channels_last):
        like = x.contiguous(memory_format=form).detach().requires_grad_()
        before = convcore.memory_stats()["allocation.allocated"]
        y = convcore.nn.BatchNorm2d(32)(like)
        assert y.is_contiguous(memory_format=form)
        assert convcore.memory_stats()["allocation.allocated"] > before
        y.backward(convcore.ones_like(y))
        assert like.grad.is_contiguous(memory_format=form)


# Errors


@pytest.mark.parametrize(
    "function",
    [
        lambda F, x, v, m: F.batch_norm(x, None, None),
        lambda F, x, v, m: F.batch_norm(x[:1, :, :1, :1], None, None, training=True),
        lambda F, x, v, m: F.batch_norm(x, v, None, training=True),
        lambda F, x, v, m: F.batch_norm(x, v[:5], v, training=True),
        lambda F, x, v, m: F.batch_norm(x, v, v[:5], training=True),
        lambda F, x, v, m: F.batch_norm(x, v, v, v[:5]),
        lambda F, x, v, m: F.batch_norm(x, v, v, v, v[:5]),
        lambda F, x, v, m: F.batch_norm(x, v, v, v.double(), v.double()),
        lambda F, x, v, m: F.group_norm(x.double(), 3, v, v),
        lambda F, x, v, m: F.batch_norm(x.long(), v, v),
        lambda F, x, v, m: F.batch_norm(x, v, v, training=True, eps=0),
        lambda F, x, v, m: F.batch_norm(x, v, v, eps=-1.0),
        lambda F, x, v, m: F.group_norm(x, 4),
        lambda F, x, v, m: F.group_norm(x, 3, v[:3], v),
        lambda F, x, v, m: F.group_norm(x, 3, v[None], v),
        lambda F, x, v, m: F.group_norm(x[0, 0, 0], 1),
        lambda F, x, v, m: F.group_norm(x[:1, :, 0, 0], 6),
        lambda F, x, v, m: F.instance_norm(x[:, :, :1, :1]),
        lambda F, x, v, m: F.instance_norm(x, use_input_stats=False),
        lambda F, x, v, m: F.instance_norm(x, v),
        lambda F, x, v, m: m.BatchNorm1d(6)(x),
        lambda F, x, v, m: m.BatchNorm2d(6)(x[0]),
        lambda F, x, v, m: m.BatchNorm3d(6)(x),
        lambda F, x, v, m: m.BatchNorm2d(5)(x),
        lambda F, x, v, m: m.GroupNorm(4, 6),
        lambda F, x, v, m: m.InstanceNorm2d(5, affine=True)(x),
        lambda F, x, v, m: m.InstanceNorm2d(6)(x[0, 0]),
        lambda F, x, v, m: m.InstanceNorm1d(6)(x),
    ],
)
def test_errors_are_pytorchs(torch, function, rng):
    x, v = numbers(rng, "float32", (4, 6, 5, 5), 6)
    same_error(
        torch, lambda lib, x, v: function(lib.nn.functional, x, v.detach(), lib.nn), x, np.abs(v)
    )


def test_fused_errors_name_the_argument(rng):
    x = convcore.ones(2, 3, 4, 4)
    with pytest.raises(ValueError, match="activation must be None, 'relu' or 'relu6', got 'gelu'"):
        F.batch_norm_activation(x, None, None, training=True, activation="gelu")
    with pytest.raises(RuntimeError, match="residual must have the input's shape and dtype"):
        F.batch_norm_activation(x, None, None, training=True, residual=x[:1])


NUMBERS = {
    "batch_norm": lambda x, **given: F.batch_norm(x, None, None, training=True, **given),
    "group_norm": lambda x, **given: F.group_norm(x, 3, **given),
    "instance_norm": F.instance_norm,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", ["x", [1]])
def test_arguments_of_another_kind_are_named(name, value):
    x, kind = convcore.ones(2, 3, 4, 4), type(value).__name__
    numbers = ["eps", "momentum"] if name in ("batch_norm", "instance_norm") else ["eps"]
    for wanted, arguments in (("Number", numbers), ("Tensor", ["weight", "bias"])):
        for argument in arguments:
            message = f"{name}.*'{argument}' must be {wanted}, not {kind}"
            with pytest.raises(TypeError, match=message):
                NUMBERS[name](x, **{argument: value})
    if "momentum" in numbers:
        with pytest.raises(TypeError, match=f"'running_mean' must be Tensor, not {kind}"):
            getattr(F, name)(x, value, value)


def test_running_statistics_are_no_integers():
    x, mean = convcore.ones(2, 3, 4), convcore.zeros(3, dtype=convcore.int64)
    with pytest.raises(RuntimeError, match=r"running_mean must be of a floating.*Long"):
        F.batch_norm(x, mean, convcore.ones(3), training=True)


def test_no_channels_are_normalised_to_none():
    assert F.instance_norm(convcore.ones(2, 0, 3)).shape == (2, 0, 3)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_batch_that_is_refused_is_not_counted(momentum):
    layer = convcore.nn.BatchNorm1d(3, momentum=momentum)
    layer(convcore.randn(4, 3))
    before = [value.clone() for value in layer.state_dict().values()]
    for refused in (convcore.ones(4, 2), convcore.ones(1, 3), convcore.ones(4, 3).double()):
        with pytest.raises((ValueError, RuntimeError)):
            layer(refused)
    after = layer.state_dict().values()
    assert all(convcore.equal(a, b) for a, b in zip(before, after, strict=True))


# Modules

MODULES = [
    lambda nn: nn.BatchNorm2d(6),
    lambda nn: nn.BatchNorm2d(6, eps=1e-3, momentum=None),
    lambda nn: nn.BatchNorm2d(6, momentum=0.3, affine=False),
    lambda nn: nn.BatchNorm2d(6, track_running_stats=False, bias=False),
    lambda nn: nn.GroupNorm(3, 6),
    lambda nn: nn.GroupNorm(2, 6, affine=False),
    lambda nn: nn.GroupNorm(2, 6, bias=False),
    lambda nn: nn.InstanceNorm2d(6),
    lambda nn: nn.InstanceNorm2d(6, affine=True, track_running_stats=True, momentum=0.4),
    lambda nn: nn.LayerNorm([5, 5], eps=1e-3),
    lambda nn: nn.LayerNorm(5, elementwise_affine=False),
    lambda nn: nn.LayerNorm(5, bias=False),
]


@pytest.mark.parametrize("make", MODULES)
def test_modules_train_and_evaluate_as_pytorchs(torch, make, rng):
    arrays = [rng.normal(1, 2, (4, 6, 5, 5)).astype("f8") for _ in range(4)]
    found = []
    for lib in (convcore, torch):
        module = make(lib.nn).double()
        outs = []
        for array in arrays[:3]:
            x = lib.from_numpy(array).requires_grad_()
            y = module(x)
            (y * y * y).sum().backward()
            outs += [y.detach().numpy(), x.grad.numpy()]
        module.eval()
        outs.append(module(lib.from_numpy(arrays[3])).detach().numpy())
        outs += [p.grad.numpy() for p in module.parameters()]
        found.append((repr(module), {k: v.numpy() for k, v in module.state_dict().items()}, outs))
    (ours, our_state, our_outs), (theirs, their_state, their_outs) = found
    assert ours == theirs
    assert list(our_state) == list(their_state)
    for name, value in their_state.items():
        assert our_state[name].dtype == value.dtype
        np.testing.assert_allclose(our_state[name], value, rtol=1e-9, atol=1e-12)
    for value, expected in zip(our_outs, their_outs, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_instance_norm_takes_one_image(torch, rank, rng):
    x = rng.normal(size=(4, *(3, 4, 5)[:rank]))
    name = f"InstanceNorm{rank}d"
    ours = getattr(convcore.nn, name)(4)(convcore.from_numpy(x))
    theirs = getattr(torch.nn, name)(4)(torch.from_numpy(x))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


def test_instance_norm_warns_of_a_number_that_is_not_used(torch):
    for lib in (convcore, torch):
        with pytest.warns(UserWarning, match="does not match num_features. You can silence"):
            lib.nn.InstanceNorm2d(5)(lib.ones(2, 6, 3, 3))


def test_batch_norm_loads_states_that_did_not_count_batches():
    layer = convcore.nn.BatchNorm2d(3)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(state)


def test_an_empty_batch_changes_no_running_statistics():
    layer = convcore.nn.BatchNorm2d(3)
    y = layer(convcore.ones(0, 3, 4, 4, requires_grad=True))
    y.sum().backward()
    assert y.shape == (0, 3, 4, 4)
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.running_var.tolist() == [1, 1, 1]
    assert layer.weight.grad.tolist() == [0, 0, 0]


def test_empty_batches_go_through_with_parameters_of_any_dtype(lib):
    for layer, sizes in ((lib.nn.GroupNorm(1, 2), (3,)), (lib.nn.BatchNorm2d(2), (3, 3))):
        for dtype in (lib.float32, lib.float64):
            if dtype is lib.float64 and isinstance(layer, lib.nn.GroupNorm):
                continue
            layer.zero_grad()
            x = lib.zeros(0, 2, *sizes, dtype=dtype, requires_grad=True)
            y = layer(x)
            y.sum().backward()
            assert (y.dtype, x.grad.shape) == (dtype, x.shape)
            assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("memory_format", [convcore.contiguous_format, convcore.channels_last])
@pytest.mark.parametrize("shape", [(0, 4, 3, 3), (2, 4, 0, 3)])
def test_norms_of_nothing_have_gradients_of_both_orders(shape, memory_format):
    x = convcore.ones(*shape).contiguous(memory_format=memory_format).requires_grad_()
    w = convcore.ones(4, requires_grad=True)
    calls = [lambda: F.group_norm(x, 2, w)]
    if shape[0] == 0:
        calls.append(lambda: F.instance_norm(x, weight=w))
        calls.append(lambda: F.batch_norm(x, None, None, w, training=True))
    for call in calls:
        y = call()
        grads = convcore.autograd.grad((y * y).sum(), (x, w), create_graph=True)
        assert [tuple(grad.shape) for grad in grads] == [shape, (4,)]
        assert grads[1].tolist() == [0, 0, 0, 0]
        (grads[0].sum() + grads[1].sum()).backward()
        assert x.grad.shape == shape
        x.grad = None


@pytest.mark.parametrize("training", [False, True])
def test_no_channels(training):
    x = convcore.ones(3, 0, 1, 1, requires_grad=True)
    y = F.batch_norm(x, convcore.zeros(0), convcore.ones(0), training=training)
    assert y.shape == x.shape
    y.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("shape", [(3, 200, 5, 4), (3, 6, 40, 30)], ids=["channels", "pixels"])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm", "group_norm"])
def test_gradients_are_the_same_in_both_formats_of_many_channels_and_images(name, shape, rng):
    # Means and sizes differ from channel to channel and from image to image.
    array = rng.standard_normal(shape) * (1 + np.arange(shape[1]).reshape(1, -1, 1, 1))
    array = array + np.arange(3.0).reshape(3, 1, 1, 1) * 7 + np.arange(shape[1]).reshape(-1, 1, 1)
    weight, bias, given = (rng.standard_normal(size) for size in (shape[1], shape[1], shape))
    found = []
    for memory_format in (convcore.contiguous_format, convcore.channels_last):
        x, w, b = (convcore.from_numpy(a).requires_grad_() for a in (array, weight, bias))
        y = x.contiguous(memory_format=memory_format)
        if name == "group_norm":
            y = F.group_norm(y, 2, w, b)
        elif name == "instance_norm":
            y = F.instance_norm(y, weight=w, bias=b)
        else:
            y = F.batch_norm(y, None, None, w, b, training=True)
        y.backward(convcore.from_numpy(given).contiguous(memory_format=memory_format))
        found.append([y.detach().numpy(), x.grad.numpy(), w.grad.numpy(), b.grad.numpy()])
    for plain, moved in zip(*found, strict=True):
        np.testing.assert_allclose(moved, plain, 1e-9, 1e-9)
