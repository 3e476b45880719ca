"""Products of tensors: values, gradients and nodes, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import assert_same_gradients, drawer, seen_by_a_hook
from derivatives import leaf
from draws import lay_out, numbers
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

import convcore
from convcore.autograd.gradcheck import gradcheck, gradgradcheck

SOME = examples(80)
FLOATS = ("float32", "float64", "complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
LAYOUTS = ("contiguous", "permuted", "strided", "broadcast")


def laid_out(arrays: list[np.ndarray], layouts: Any, seed: int) -> list[np.ndarray]:
    """Return the arrays in other memory, none read-only and none with a negative stride."""
    rng = np.random.default_rng(seed)
    return [
        np.array(lay_out(array, layout, rng), order="K") if array.ndim else array
        for array, layout in zip(arrays, layouts, strict=True)
    ]


# Values and gradients


@st.composite
def factors(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw the shapes of two factors of matmul."""
    m, k, n = (draw(st.sampled_from((1, 2, 3, 5, 0))) for _ in range(3))
    lead = draw(st.lists(st.integers(1, 3), max_size=2))
    a = tuple(draw(st.sampled_from((size, 1))) for size in lead)
    b = tuple(draw(st.sampled_from((size, 1))) for size in lead)
    kind = draw(st.sampled_from(("matrices", "matrices", "vector first", "vector last", "vectors")))
    left = (k,) if kind in ("vector first", "vectors") else (*a[draw(st.integers(0, 2)) :], m, k)
    right = (k,) if kind in ("vector last", "vectors") else (*b[draw(st.integers(0, 2)) :], k, n)
    return left, right


@SOME
@given(
    shapes=factors(),
    dtype=st.sampled_from(FLOATS),
    layouts=st.tuples(st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS)),
    draw=st.integers(0, 2**32 - 1),
)
def test_matmul_has_pytorchs_values_and_gradients(shapes, dtype, layouts, draw, seed, torch):
    numbers_of = drawer(seed, draw, dtype)
    arrays = laid_out([numbers_of(shape) for shape in shapes], layouts, draw)
    assert_same_gradients(torch, lambda m, a, b: m.matmul(a, b), arrays, numbers_of)


@examples(40)
@given(shapes=factors(), dtype=st.sampled_from(INTEGERS), draw=st.integers(0, 2**32 - 1))
def test_matmul_of_integers_wraps_as_pytorchs(shapes, dtype, draw, seed, torch):
    rng = np.random.default_rng([seed, draw])
    limits = np.iinfo(dtype)
    a, b = (rng.integers(limits.min, limits.max, s, dtype, endpoint=True) for s in shapes)
    result = convcore.from_numpy(a) @ convcore.from_numpy(b)
    expected = (torch.from_numpy(a) @ torch.from_numpy(b)).numpy()
    assert result.numpy().dtype == dtype
    np.testing.assert_array_equal(result.numpy(), expected)


OPERATIONS = {
    "mm": (lambda m, a, b: m.mm(a, b), (3, 4), (4, 2)),
    "bmm": (lambda m, a, b: a.bmm(b), (5, 3, 4), (5, 4, 2)),
    "mv": (lambda m, a, v: a.mv(v), (3, 4), (4,)),
    "dot": (lambda m, u, v: u.dot(v), (4,), (4,)),
    "outer": (lambda m, u, v: u.outer(v), (3,), (4,)),
    "ger": (lambda m, u, v: m.ger(u, v), (3,), (4,)),
    "operator": (lambda m, a, b: a @ b, (2, 3), (3, 2)),
    "addmm": (lambda m, c, a, b: m.addmm(c, a, b), (2,), (3, 4), (4, 2)),
    "addmm scaled": (lambda m, c, a, b: c.addmm(a, b, beta=2, alpha=-3), (3, 1), (3, 4), (4, 2)),
    "addmm, beta 0": (lambda m, c, a, b: m.addmm(c, a, b, beta=0), (), (3, 4), (4, 2)),
    "baddbmm": (lambda m, c, a, b: m.baddbmm(c, a, b, alpha=2), (2,), (5, 3, 4), (5, 4, 2)),
    "linear": (lambda m, x, w, b: m.nn.functional.linear(x, w, b), (5, 4), (3, 4), (3,)),
    "linear of a vector": (lambda m, x, w, b: m.nn.functional.linear(x, w, b), (4,), (3, 4), (3,)),
    "linear of a stack": (
        lambda m, x, w, b: m.nn.functional.linear(x, w, b),
        (2, 5, 4),
        (3, 4),
        (3,),
    ),
    "linear without bias": (lambda m, x, w: m.nn.functional.linear(x, w), (5, 4), (3, 4)),
    "linear without bias, of a stack": (
        lambda m, x, w: m.nn.functional.linear(x, w),
        (2, 5, 4),
        (3, 4),
    ),
    "linear of a weight vector": (lambda m, x, w: m.nn.functional.linear(x, w), (5, 4), (4,)),
    "linear of nothing": (lambda m, x, w, b: m.nn.functional.linear(x, w, b), (0, 4), (3, 4), (3,)),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_products_have_pytorchs_values_and_gradients(name, dtype, seed, torch):
    function, *shapes = OPERATIONS[name]
    numbers_of = drawer(seed, len(name), dtype)
    arrays = [numbers_of(shape) for shape in shapes]
    assert_same_gradients(torch, function, arrays, numbers_of)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["bmm", "mv", "dot", "addmm scaled", "baddbmm", "linear"])
def test_products_have_right_first_and_second_derivatives(name, dtype, rng):
    function, *shapes = OPERATIONS[name]
    leaves = [leaf(numbers(rng, shape, dtype)) for shape in shapes]
    assert gradcheck(lambda *tensors: function(convcore, *tensors), leaves, fast_mode=True)
    assert gradgradcheck(lambda *tensors: function(convcore, *tensors), leaves, fast_mode=True)


def test_addmm_looks_not_at_what_beta_0_leaves_out():
    nan = convcore.full((2,), float("nan"))
    assert convcore.addmm(nan, convcore.ones(2, 3), convcore.ones(3, 2), beta=0).tolist() == [
        [3.0, 3.0],
        [3.0, 3.0],
    ]


def test_products_in_place_are_pytorchs(rng, torch):
    arrays = [rng.standard_normal(s) for s in ((3, 2), (3, 4), (4, 2), (1, 3, 2))]

    def results(m):
        c, a, b, stack = (m.from_numpy(array.copy()) for array in arrays)
        c.addmm_(a, b, beta=0.5)
        stack.baddbmm_(a[None], b[None])
        return [x.numpy() for x in (c, stack)]

    for result, expected in zip(results(convcore), results(torch), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_operator_takes_arrays_and_leaves_others_alone():
    x = convcore.ones(2, 3)
    array = np.ones((3, 2), np.float32)
    assert (x @ array).tolist() == [[3.0, 3.0]] * 2
    assert (array @ x).tolist() == [[2.0] * 3] * 3
    for call in (lambda: x @ 3, lambda: 3 @ x, lambda: x @ [1, 2, 3], lambda: [1, 2] @ x):
        with pytest.raises(TypeError, match="unsupported operand type"):
            call()


# The graph

NODES = {
    "matrices": ("MmBackward0", lambda m, a, b: a @ b, (2, 3), (3, 4)),
    "matrix and vector": ("MvBackward0", lambda m, a, v: a @ v, (2, 3), (3,)),
    "vectors": ("DotBackward0", lambda m, u, v: u @ v, (3,), (3,)),
    "stacks": ("BmmBackward0", lambda m, a, b: a.bmm(b), (5, 2, 3), (5, 3, 4)),
    "sum": ("AddmmBackward0", lambda m, c, a, b: m.addmm(c, a, b), (4,), (2, 3), (3, 4)),
    "stacks and sum": (
        "BaddbmmBackward0",
        lambda m, c, a, b: m.baddbmm(c, a, b),
        (4,),
        (5, 2, 3),
        (5, 3, 4),
    ),
    "linear": (
        "AddmmBackward0",
        lambda m, x, w, b: m.nn.functional.linear(x, w, b),
        (2, 4),
        (1, 4),
        (1,),
    ),
    "linear without bias": (
        "MmBackward0",
        lambda m, x, w: m.nn.functional.linear(x, w),
        (2, 4),
        (1, 4),
    ),
}


def last_node(m: Any, function: Any, arrays: list[np.ndarray]) -> tuple:
    """Return the last node's name, its parents' names, and what a hook on it sees."""
    y = function(m, *(m.from_numpy(array.copy()).requires_grad_() for array in arrays))
    seen = seen_by_a_hook(y.grad_fn)
    y.sum().backward()
    return y.grad_fn.name(), [node.name() for node, _ in y.grad_fn.next_functions], seen


@pytest.mark.parametrize("name", NODES)
def test_last_node_and_what_its_hook_sees_are_pytorchs(name, rng, torch):
    expected, function, *shapes = NODES[name]
    arrays = [rng.standard_normal(shape) for shape in shapes]
    row = last_node(convcore, function, arrays)
    assert row == last_node(torch, function, arrays)
    assert row[0] == expected


def test_linear_of_a_matrix_has_the_transposed_weights_gradient(rng):
    arrays = [rng.standard_normal(shape) for shape in ((2, 4), (1, 4), (1,))]
    name, parents, seen = last_node(convcore, lambda m, *xs: m.nn.functional.linear(*xs), arrays)
    assert name == "AddmmBackward0"
    assert parents[2] == "TBackward0"
    assert seen == [(((1,), (2, 4), (4, 1)), ((2, 1),))]


@pytest.mark.parametrize("lead", [(3, 1), (2, 3)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("bias", [(5,), (1,), (), None])
def test_linear_of_rows_is_a_view_where_pytorchs_is(lead, turned, bias, rng, torch):
    x, w = rng.standard_normal((*lead, 4)), rng.standard_normal((5, 4))
    terms = () if bias is None else (rng.standard_normal(bias),)
    if turned:
        x = np.ascontiguousarray(np.broadcast_to(x[..., None], (*x.shape, 2)))[..., 0]
    ends = []
    for m in (convcore, torch):
        out = m.nn.functional.linear(*(m.from_numpy(a).requires_grad_() for a in (x, w, *terms)))
        ends.append((out._base is not None, "View" in out.grad_fn.name(), out.stride()))
    assert ends[0] == ends[1]


def test_linear_of_a_vector_is_a_sum_as_the_founding_programs_saw_it():
    x, w, b = (convcore.ones(shape, requires_grad=True) for shape in ((4,), (5, 4), (5,)))
    out = convcore.nn.functional.linear(x, w, b)
    assert out._base is None and out.grad_fn.name() == "AddBackward0"


def test_products_of_stacks_are_no_views_so_that_a_hook_stays_through_writing():
    x, w = convcore.ones(2, 3, 4), convcore.ones(4, requires_grad=True)
    for a, b in ((x, w), (w, convcore.ones(2, 4, 5))):
        y = a @ b
        assert y._base is None
        y.register_hook(lambda grad: grad * 0)
        w.grad = None
        y.atan_().sum().backward()
        assert w.grad.tolist() == [0] * 4


@pytest.mark.parametrize("bias", [True, False])
def test_weights_gradient_is_nobodys_but_the_weights(rng, bias):
    """It is taken over where it can be; what a hook or `grad` was given does not change with it."""
    weight = convcore.from_numpy(rng.standard_normal((3, 4))).requires_grad_()
    terms = (convcore.zeros(3, dtype=convcore.float64),) if bias else ()
    x = convcore.from_numpy(rng.standard_normal((2, 4)))
    expected = np.ones((3, 2)) @ x.numpy()

    def backward(times=1, **options):
        for _ in range(times):
            convcore.nn.functional.linear(x, weight, *terms).sum().backward(**options)

    backward(2)
    np.testing.assert_allclose(weight.grad.numpy(), 2 * expected)
    weight.grad = None
    columns, seen = weight.t(), []
    columns.register_hook(seen.append)
    (x @ columns).sum().backward(inputs=[weight])
    weight.grad.zero_()
    np.testing.assert_allclose(seen[0].numpy(), expected.T)
    weight.grad = None
    y = x @ weight.t()
    (y.sum() + 2 * (x @ weight.t()).sum()).backward()  # two gradients meet at the weight
    np.testing.assert_allclose(weight.grad.numpy(), 3 * expected)


def test_expanded_gradient_is_copied_for_a_leaf():
    """Elements that share memory are no gradient of a leaf's own."""
    x = convcore.zeros(1, 3, requires_grad=True)
    y = x.expand(1, 3) * 2
    y.sum().backward()
    x.grad[0, 0] = 7
    assert x.grad.tolist() == [[7, 2, 2]]
    z = convcore.zeros(4, requires_grad=True)
    z.sum().backward()
    z.grad[0] = 7
    assert z.grad.tolist() == [7, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_scaled_sums_of_half_precision_are_rounded_once(dtype, batch):
    pytest.importorskip("ml_dtypes")
    convcore.manual_seed(1)
    c, a, b = (convcore.randn(*batch, 6, 6).to(getattr(convcore, dtype)) for _ in "cab")
    function = convcore.baddbmm if batch else convcore.addmm
    out = function(c, a, b, beta=0.3, alpha=0.7)
    wide = function(c.float(), a.float(), b.float(), beta=0.3, alpha=0.7)
    assert out.equal(wide.to(c.dtype))
