"""Convolutions of tensors: values, gradients of any order, nodes and memory, beside PyTorch's."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from against_torch import same_error
from agreement import assert_same_gradients, seen_by_a_hook
from derivatives import leaf
from draws import is_channels_last, lay_out, numbers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore import engine
from convcore.autograd.gradcheck import gradcheck, gradgradcheck
from convcore.engine.geometry import Steps
from convcore.functions.windows import conv as maps

SOME = examples(80)


@dataclass(frozen=True)
class Case:
    """A convolution or a transposed one, and what lies where in memory."""

    transposed: bool
    n: int
    groups: int
    c_in: int
    c_out: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    steps: dict[str, Any]
    bias: bool
    unbatched: bool
    dtype: str
    layouts: tuple[str, str]
    draw: int

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        batch = () if self.unbatched else (self.n,)
        ins, outs = self.groups * self.c_in, self.groups * self.c_out
        weight = (ins, self.c_out) if self.transposed else (outs, self.c_in)
        shapes = [(*batch, ins, *self.sizes), (*weight, *self.kernel)]
        return [*shapes, (outs,)] if self.bias else shapes

    def function(self, library: Any, *tensors: Any) -> Any:
        name = f"conv{'_transpose' if self.transposed else ''}{len(self.sizes)}d"
        return getattr(library, name)(*tensors, **self.steps)


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...], transposed: bool = False) -> Case:
    axes = []
    for _ in range(draw(st.sampled_from((1, 2, 2, 3)))):
        dilation, kernel = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        stride, padding = draw(st.integers(1, 3)), draw(st.integers(0, 3))
        extent = dilation * (kernel - 1) + 1
        extra = draw(st.integers(0, max(stride, dilation) - 1)) if transposed else 0
        least = (2 * padding - extent - extra) // stride + 2 if transposed else extent - 2 * padding
        size = max(1, least) + draw(st.integers(0, 4))
        axes.append((size, kernel, stride, padding, dilation, extra))
    sizes, kernel, stride, padding, dilation, extra = zip(*axes, strict=True)
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    if transposed:
        steps["output_padding"] = extra
    elif draw(st.booleans()):
        steps |= {"stride": 1, "padding": draw(st.sampled_from(("same", 0, "valid")))}
        sizes = tuple(
            max(n, d * (k - 1) + 1) for n, k, d in zip(sizes, kernel, dilation, strict=True)
        )
    groups = draw(st.sampled_from((1, 1, 2, 3)))
    unbatched = draw(st.sampled_from((False, False, True)))
    layout = st.sampled_from(("contiguous", "channels_last", "permuted", "strided"))
    return Case(
        transposed=transposed,
        n=1 if unbatched else draw(st.sampled_from((1, 2, 3, 1, 2, 0))),
        groups=groups,
        c_in=draw(st.integers(1, 3)),
        c_out=draw(st.integers(1, 3)),
        sizes=sizes,
        kernel=kernel,
        steps={**steps, "groups": groups},
        bias=draw(st.booleans()),
        unbatched=unbatched,
        dtype=draw(st.sampled_from(dtypes)),
        layouts=(draw(layout), draw(layout)),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def assert_as_pytorch(case: Case, seed: int, torch: Any) -> None:
    """Compare values and two orders of gradients; of small integers, so that all are exact."""
    rng = np.random.default_rng([seed, case.draw])

    def draw(shape: Any) -> np.ndarray:
        return numbers(rng, shape, case.dtype, integers=True)

    arrays = [draw(shape) for shape in case.shapes]
    for place, layout in enumerate(case.layouts):
        # PyTorch takes no negative strides, and from_numpy no read-only arrays.
        moved = np.array(lay_out(arrays[place], layout, rng), order="K")
        arrays[place] = moved
    assert_same_gradients(torch, case.function, arrays, draw)


EXACT = ("float32", "float64", "complex64", "complex128")


@SOME
@given(case=cases(EXACT))
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_conv_has_pytorchs_values_and_gradients(case, seed, torch):
    assert_as_pytorch(case, seed, torch)


@SOME
@given(case=cases(EXACT, transposed=True))
def test_conv_transpose_has_pytorchs_values_and_gradients(case, seed, torch):
    assert_as_pytorch(case, seed, torch)


@examples(20)
@given(case=cases(("float16",)), transposed=cases(("float16",), transposed=True))
@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_float16_convolutions_are_float32s_rounded_once(case, transposed, seed):
    for one in (case, transposed):
        rng = np.random.default_rng([seed, one.draw])
        arrays = [rng.standard_normal(shape).astype("float16") for shape in one.shapes]
        halves = [leaf(array) for array in arrays]
        singles = [leaf(array.astype("float32")) for array in arrays]
        results = [one.function(convcore, *leaves) for leaves in (halves, singles)]
        grad = rng.standard_normal(results[0].shape).astype("float16")
        for y, leaves in zip(results, (halves, singles), strict=True):
            y.backward(convcore.from_numpy(grad.astype(leaves[0]._array.dtype)))
        assert results[0].dtype is convcore.float16
        pairs = [results, *([h.grad, s.grad] for h, s in zip(halves, singles, strict=True))]
        for half, single in pairs:
            np.testing.assert_array_equal(
                half.detach().numpy(), single.detach().numpy().astype("float16")
            )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_integer_convolutions_wrap_as_pytorchs(dtype, rng, torch):
    limits = np.iinfo(dtype)
    bound = min(limits.max, 10**6)
    shapes = (2, 4, 5, 6), (6, 2, 2, 3), (4, 3, 3, 2)
    x, w, wt = (rng.integers(max(limits.min, -bound), bound, s).astype(dtype) for s in shapes)
    b = np.arange(6).astype(dtype)

    def convolve(m):
        image, weight, transposed, bias = (m.from_numpy(array) for array in (x, w, wt, b))
        results = [m.conv2d(image, weight, bias, stride=2, groups=2)]
        if dtype == "int64":  # the only one that PyTorch transposes
            results.append(m.conv_transpose2d(image, transposed, stride=(2, 1), groups=2))
        return [result.numpy() for result in results]

    for result, expected in zip(convolve(convcore), convolve(torch), strict=True):
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)


def test_integers_that_float64_cannot_convolve_are_refused():
    x = convcore.full((1, 1, 3), 2**51)
    w = convcore.tensor([[[1, 1, -2]]])
    with pytest.raises(RuntimeError, match="beyond what float64 holds"):
        convcore.conv1d(x, w)
    w = convcore.tensor([[[1, 0, -1]]])
    assert convcore.conv1d(x, w).item() == 0


# Derivatives


STEPS = [
    {"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
    {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2},
    {"stride": 1, "padding": "same", "dilation": (2, 1), "groups": 1},
    {"stride": (3, 2), "padding": [(0, 1), (2, 0)], "dilation": 1, "groups": 2},
]
X, KERNEL = (2, 4, 5, 4), (2, 3)


def operands(rng: np.random.Generator, dtype: str, steps: dict[str, Any]) -> list[Any]:
    """Return leaves x, w, bias and y of a convolution."""
    w = (4, X[1] // steps["groups"], *KERNEL)
    y = engine.conv_forward(np.zeros(X), np.zeros(w), **steps).shape
    return [leaf(numbers(rng, shape, dtype)) for shape in (X, w, (4,), y)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_bilinear_maps_have_right_first_and_second_derivatives(steps, dtype, rng):
    x, w, bias, y = operands(rng, dtype, steps)
    kernel = maps._Kernel(KERNEL, np.dtype(dtype))
    steps = Steps(**steps)
    calls = {
        "forward": (lambda x, w, b: maps._forward(x, w, b, steps), (x, w, bias)),
        "input_grad": (lambda y, w: maps._input_grad(y, w, X[2:], steps), (y, w)),
        "weight_grad": (lambda x, y: maps._weight_grad(x, y, kernel, steps), (x, y)),
        "bias_grad": (lambda y: maps._bias_grad(y, kernel.dtype), (y,)),
    }
    for function, leaves in calls.values():
        assert gradcheck(function, leaves, fast_mode=True)
        assert gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("output_padding", [0, (1, 0), (1, 2)])
def test_conv_transpose_has_right_first_and_second_derivatives(output_padding, dtype, rng):
    """The last output padding is longer than the stride."""
    x, w, bias = (leaf(numbers(rng, s, dtype)) for s in ((2, 4, 3, 4), (4, 3, 2, 3), (6,)))

    def function(x, w, bias):
        return convcore.conv_transpose2d(x, w, bias, (2, 1), 1, output_padding, 2, (1, 3))

    assert gradcheck(function, (x, w, bias), fast_mode=True)
    assert gradgradcheck(function, (x, w, bias), fast_mode=True)


def test_third_derivatives_are_pytorchs(rng, torch):
    shapes = (2, 4, 5, 6), (6, 2, 3, 2)
    arrays = [rng.standard_normal(shape) for shape in shapes]

    def third(m):
        x, w = (m.from_numpy(array.copy()).requires_grad_() for array in arrays)
        y = m.conv2d(x, w, None, (2, 1), (1, 2), 1, 2)
        total = (y * y * y).sum()
        for _ in range(3):
            grads = m.autograd.grad(total, (x, w), create_graph=True)
            total = sum((g * g).sum() for g in grads)
        return [g.detach().numpy() for g in grads]

    for result, expected in zip(third(convcore), third(torch), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_backward_computes_only_what_is_needed(rng, monkeypatch):
    called = []
    for name in ("conv_input_grad", "conv_weight_grad", "conv_bias_grad"):
        original = getattr(engine, name)

        def watched(*args, _original=original, _name=name, **kwargs):
            called.append(_name)
            return _original(*args, **kwargs)

        monkeypatch.setattr(engine, name, watched)
    arrays = [rng.standard_normal(s) for s in ((1, 2, 5, 5), (3, 2, 2, 2), (3,))]
    expected = ["conv_input_grad", "conv_weight_grad", "conv_bias_grad"]
    for wanted in range(8):
        leaves = [convcore.from_numpy(a) for a in arrays]
        for place, tensor in enumerate(leaves):
            tensor.requires_grad = bool(wanted >> place & 1)
        called.clear()
        y = convcore.conv2d(*leaves)
        if wanted:
            y.sum().backward()
        assert called == [name for place, name in enumerate(expected) if wanted >> place & 1]


def test_gradient_of_an_operand_that_changed_in_place_is_refused(rng):
    x, w = (leaf(rng.standard_normal(s)) for s in ((1, 2, 5, 5), (3, 2, 2, 2)))
    hidden = x * 1
    y = convcore.conv2d(hidden, w)
    hidden.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_infinities_and_nan_come_without_warnings():
    x = convcore.full((1, 2, 4, 4), float("inf"))
    for dtype in (convcore.float32, convcore.float16):
        w = leaf(np.ones((2, 2, 2, 2))).to(dtype)
        bias = convcore.full((2,), float("-inf"), dtype=dtype).requires_grad_()
        for function in (convcore.conv2d, convcore.conv_transpose2d):
            y = function(x.to(dtype), w, bias)
            y.backward(convcore.full_like(y, 60000.0))
            assert convcore.isnan(y).all()
        assert dtype is convcore.float32 or convcore.isinf(bias.grad).all()


# The graph


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "kind", ["all need grad", "input needs none", "no bias", "no bias, unbatched"]
)
def test_last_node_and_what_its_hook_sees_are_pytorchs(kind, transposed, rank, rng, torch):
    shapes = (1, 2, *(6,) * rank), (2, 3) if transposed else (3, 2), (3,)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    arrays[1] = rng.standard_normal((*shapes[1], *(3,) * rank))

    def row(m):
        x, w, b = (m.from_numpy(array).requires_grad_() for array in arrays)
        x = x.squeeze(0) if "unbatched" in kind else x.detach() if "none" in kind else x
        b = None if "no bias" in kind else b
        y = getattr(m, f"conv{'_transpose' if transposed else ''}{rank}d")(x, w, b)
        seen = seen_by_a_hook(y.grad_fn)
        y.sum().backward()
        return y.grad_fn.name(), seen

    assert row(convcore) == row(torch)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("which", ["none", "input", "weight", "both"])
def test_memory_format_is_that_of_input_or_weight(which, rank, rng):
    shapes = (2, 4, *(5,) * rank), (6, 4, *(3,) * rank)
    last = which in ("input", "both"), which in ("weight", "both")
    layouts = ["channels_last" if one else "contiguous" for one in last]
    x, w = (
        leaf(lay_out(rng.standard_normal(shape), layout, rng).copy(order="K"))
        for shape, layout in zip(shapes, layouts, strict=True)
    )
    y = getattr(convcore, f"conv{rank}d")(x, w)
    assert is_channels_last(y._array) == any(last)
    y.sum().backward()
    for tensor, its in ((x, last[0]), (w, last[1])):
        assert is_channels_last(tensor.grad._array) == its


# Threads

NET = """if True:
    import hashlib, json, os
    import numpy as np
    import convcore as cc

    rng = np.random.default_rng(7)

    def parameter(*shape):
        array = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        return cc.from_numpy(array.astype("float32")).requires_grad_()

    x = cc.from_numpy(rng.standard_normal((16, 3, 28, 24)).astype("float32")).requires_grad_()
    label = cc.from_numpy(rng.integers(0, 10, 16))
    parameters = [
        parameter(24, 3, 5, 5), parameter(24), parameter(32, 12, 3, 3), parameter(32),
        parameter(32, 16, 3, 3), parameter(16), parameter(10, 16 * 15 * 13), parameter(10),
    ]

    def loss():
        w1, b1, w2, b2, w3, b3, w4, b4 = parameters
        y = cc.relu(cc.conv2d(x, w1, b1, padding=2))
        y = cc.relu(cc.conv2d(y, w2, b2, stride=2, padding=1, groups=2))
        y = cc.tanh(cc.conv_transpose2d(cc.nn.functional.max_pool2d(y, 2, stride=1), w3, b3))
        y = cc.linear(y.reshape(16, -1), w4, b4)
        return cc.nn.functional.cross_entropy(y, label)

    def digest(array):
        return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()

    found = []
    for n in (1, 2, 3, 7):
        cc.set_num_threads(n)
        total = loss()
        grads = cc.autograd.grad(total, (x, *parameters))
        found.append([digest(total.detach().numpy()), *(digest(g.numpy()) for g in grads)])
    tasks = "/proc/self/task"
    print(json.dumps({
        "digests": found,
        "architecture": cc.engine.runtime.threads.blas().architecture,
        "threads": len(os.listdir(tasks)) if os.path.isdir(tasks) else None,
    }))
"""


@pytest.mark.subprocess
@pytest.mark.skipif(
    not engine.runtime.threads.blas().limitable, reason="the threads of this BLAS cannot be limited"
)
@pytest.mark.parametrize("coretype", [None, "Haswell"])
def test_bits_of_a_small_net_do_not_depend_on_the_number_of_threads(coretype, run_child):
    found = json.loads(run_child(NET, coretype=coretype))
    if coretype is not None and sys.platform == "linux":
        assert found["architecture"] == coretype
    for number, digests in enumerate(zip(*found["digests"], strict=True)):
        assert len(set(digests)) == 1, f"result {number}"
    if engine.runtime.threads.openmp() and found["threads"] is not None:
        assert found["threads"] >= 7


def test_images_without_channels_give_the_bias():
    x = convcore.zeros(2, 0, 4, 5, requires_grad=True)
    w = convcore.zeros(3, 0, 2, 2, requires_grad=True)
    bias = convcore.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = convcore.nn.functional.conv2d(x, w, bias, stride=(1,), padding=1)
    assert y.shape == (2, 3, 5, 6)
    assert (y == bias.view(1, 3, 1, 1)).all()
    y.sum().backward()
    assert (x.grad.shape, w.grad.shape) == (x.shape, w.shape)
    assert bias.grad.tolist() == [60.0] * 3
    with pytest.raises(RuntimeError, match=r"expected input.* to have 0 channels, but got 1 chann"):
        convcore.nn.functional.conv2d(convcore.zeros(2, 1, 4, 5), w)


def test_a_bias_of_another_dtype_is_refused_beside_integers(lib):
    x = lib.ones(1, 1, 3, 3, dtype=lib.int64)
    with pytest.raises(RuntimeError, match=r"and bias type .* should be the same"):
        lib.nn.functional.conv2d(x, x, lib.ones(1, dtype=lib.float64))


def test_steps_of_one_number_in_a_tuple_count_for_all_axes(lib):
    x = lib.ones(1, 1, 7, 9)
    y = lib.nn.functional.conv2d(x, x[..., :3, :3], stride=(2,), padding=(1,), dilation=(2,))
    assert y.shape == (1, 1, 3, 4)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("name", ["conv", "conv_transpose"])
@pytest.mark.parametrize("wrong", ["channels", "sizes", "rank", "dtype"])
def test_gradients_unlike_the_output_are_runtime_errors(rank, name, wrong):
    x = convcore.ones(2, 2, *(5,) * rank, requires_grad=True)
    w = convcore.ones(*((4, 2) if name == "conv" else (2, 4)), *(3,) * rank, requires_grad=True)
    y = getattr(convcore.nn.functional, f"{name}{rank}d")(x, w)
    grad = convcore.ones_like(y)
    grad = {
        "channels": lambda: grad[:, 1:],
        "sizes": lambda: grad[..., 1:],
        "rank": lambda: grad[0],
        "dtype": lambda: grad.double(),
    }[wrong]()
    with pytest.raises(RuntimeError, match="backward of a convolution: "):
        y.grad_fn(grad)


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
def test_a_matrix_and_a_weight_of_no_channels_are_refused_in_pytorchs_words(torch, name):
    def function(lib, x):
        weight = lib.zeros((0, 2, 3, 3) if "transpose" in name else (2, 0, 3, 3))
        return getattr(lib.nn.functional, name)(x, weight)

    same_error(torch, function, np.ones((4, 2), "f"))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_weights_and_inputs_of_another_rank_are_refused(rank):
    convolve = getattr(maps, f"conv{rank}d")
    right = convcore.ones(1, 1, *[3] * rank)
    for wrong in (convcore.ones(1, *[3] * (rank - 1)), convcore.ones(1, 1, 1, *[3] * rank)):
        with pytest.raises(RuntimeError):
            convolve(right, wrong)
        with pytest.raises(RuntimeError):
            convolve(wrong, right)


def test_convolution_of_no_channels_in_groups_is_the_bias():
    x, w = convcore.ones(2, 0, 5, 4), convcore.ones(4, 0, 3, 3)
    y = maps.conv2d(x, w, convcore.arange(4.0), groups=2)
    assert tuple(y.shape) == (2, 4, 3, 2)
    assert (y == convcore.arange(4.0).reshape(1, 4, 1, 1)).all()


def test_second_derivatives_of_a_half_convolution_are_half(rng):
    x, w, b = (
        convcore.from_numpy(rng.standard_normal(shape).astype(np.float16)).requires_grad_()
        for shape in ((2, 3, 5, 5), (4, 3, 3, 3), (4,))
    )
    y = maps.conv2d(x, w, b)
    firsts = convcore.autograd.grad((y * y).sum(), (x, w, b), create_graph=True)
    assert {g.dtype for g in firsts} == {convcore.float16}
    total = sum((g * g).sum() for g in firsts)
    seconds = convcore.autograd.grad(total, (x, w, b))
    assert {g.dtype for g in seconds} == {convcore.float16}
