"""The graph: backward and grad, views and in-place operations, depth, lifetimes, threads.

Tests with `lib` run on PyTorch too.
"""

import gc
import math
import threading
import warnings
import weakref

import numpy as np
import pytest

import convcore
from convcore._errors import without_hint
from convcore.autograd.node import record


def leaf(lib, *values):
    return lib.tensor(values, requires_grad=True)


def lists(tensors):
    return [None if tensor is None else tensor.tolist() for tensor in tensors]


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# backward


def test_backward_adds_to_the_leaves(lib):
    x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    (x * w + x).sum().backward()
    assert lists([x.grad, w.grad]) == [[4.0, 5.0], [1.0, 2.0]]
    (x * 10).sum().backward()
    assert x.grad.tolist() == [14.0, 15.0]
    assert not x.grad.requires_grad


def test_backward_of_a_leaf_is_its_gradient(lib):
    x = leaf(lib, 1.0, 2.0)
    given = lib.tensor([3.0, 4.0])
    x.backward(given)
    assert x.grad.tolist() == [3.0, 4.0]
    assert x.grad.data_ptr() != given.data_ptr()


def test_backward_needs_a_gradient_of_what_is_no_scalar(lib):
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(RuntimeError) as error:
        (x * 2).backward()
    assert without_hint(error.value) == "grad can be implicitly created only for scalar outputs"


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_backward_takes_one_element_for_a_scalar(lib, shape):
    x = lib.ones(shape, requires_grad=True)
    (x * 2).backward()
    assert x.grad.tolist() == (lib.ones(shape) * 2).tolist()


def test_backward_needs_a_tensor_that_requires_grad(lib):
    with pytest.raises(RuntimeError) as error:
        lib.ones(1).backward()
    assert without_hint(
        error.value
    ) == "element 0 of tensors does not require grad and does not have a " + ("grad_fn")


def test_backward_checks_the_shape_of_a_gradient(lib):
    y = leaf(lib, 1.0, 2.0) * 2
    with pytest.raises(RuntimeError) as error:
        y.backward(lib.ones(3))
    assert without_hint(error.value) == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a "
        "shape of torch.Size([2])."
    )


def test_backward_casts_a_gradient_to_its_tensor(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad.dtype))
    y.backward(lib.ones(2, dtype=lib.float64))
    assert seen == [lib.float32]
    assert x.grad.tolist() == [2.0, 2.0]


def test_backward_refuses_a_complex_gradient_of_a_real_tensor(lib):
    y = leaf(lib, 1.0) * 2
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are"):
        y.backward(lib.ones(1, dtype=lib.complex64))


def test_backward_needs_a_gradient_of_a_complex_scalar(lib):
    z = lib.ones(1, dtype=lib.complex64, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="can be implicitly created only for real scalar outputs"
    ):
        (z * 2).backward()


def test_backward_of_several_tensors(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    lib.autograd.backward([y, y * 3, x], [lib.tensor([1.0]), None, lib.tensor([100.0])])
    assert x.grad.tolist() == [108.0]


@pytest.mark.parametrize("as_list", [False, True])
def test_backward_with_inputs_reaches_those_only(lib, as_list):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * w
    z = y * w
    z.backward(inputs=[x] if as_list else x, retain_graph=True)
    assert lists([x.grad, w.grad]) == [[9.0], None]
    z.backward(inputs=[w, y])
    assert lists([x.grad, w.grad, y.grad]) == [[9.0], [12.0], [3.0]]


def test_backward_with_inputs_accumulates_at_what_is_no_leaf(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    z = y * y
    for _ in range(2):
        z.backward(inputs=[y], retain_graph=True)
    assert y.grad.tolist() == [24.0]
    assert x.grad is None


def test_backward_with_inputs_needs_some_that_require_grad(lib):
    y = leaf(lib, 1.0) * 2
    with pytest.raises(RuntimeError, match="cannot be empty"):
        y.backward(inputs=[])
    with pytest.raises(RuntimeError, match="Tensor that has requires_grad=False"):
        y.backward(inputs=[lib.ones(1)])


def test_grad_of_a_tensor_meeting_itself(lib):
    x = leaf(lib, 3.0)
    (x + x).backward()
    (x * x).backward()
    (x - x).backward()
    (x / x).backward()
    assert x.grad.tolist() == [8.0]


def test_grad_can_be_assigned(lib):
    x = leaf(lib, 1.0, 2.0)
    x.grad = lib.ones(2)
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    assert x.grad is None
    x.grad = lib.ones(2)
    del x.grad
    assert x.grad is None


def test_grad_must_fit_its_tensor(lib):
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"assign a gradient of size '\[3\]' to a tensor of si"):
        x.grad = lib.ones(3)
    with pytest.raises(RuntimeError, match="assign a gradient with dtype"):
        x.grad = lib.ones(2, dtype=lib.float64)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got gr"):
        x.grad = 5
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


# grad


def test_grad_returns_gradients_and_leaves_grad_alone(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * w
    found = lib.autograd.grad(y * y, (w, y, x))
    assert isinstance(found, tuple)
    assert lists(found) == [[24.0], [12.0], [36.0]]
    assert lists([x.grad, w.grad]) == [None, None]


def test_grad_of_the_output_itself_is_the_given_gradient(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    assert lists(lib.autograd.grad(y, y, lib.tensor([7.0]), retain_graph=True)) == [[7.0]]
    assert lists(lib.autograd.grad(y, [y, x], lib.tensor([7.0]))) == [[7.0], [21.0]]
    assert lists(lib.autograd.grad(x, x, lib.tensor([7.0]))) == [[7.0]]


def test_grad_may_name_a_tensor_twice(lib):
    x = leaf(lib, 2.0)
    assert lists(lib.autograd.grad(x * 3, [x, x])) == [[3.0], [3.0]]


def test_grad_of_several_outputs_is_that_of_their_sum(lib):
    x = leaf(lib, 2.0)
    outputs = [x * 3, x * x]
    found = lib.autograd.grad(outputs, x, [lib.tensor([10.0]), None])
    assert lists(found) == [[34.0]]


def test_grad_refuses_what_is_unused(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    with pytest.raises(
        RuntimeError,
        match="The differentiated Tensor at index 1 appears to not have been used in the graph",
    ):
        lib.autograd.grad(x * 3, [x, w])
    assert lists(lib.autograd.grad(x * 3, [w, x], allow_unused=True)) == [None, [3.0]]
    found = lib.autograd.grad(x * 3, [w, x], materialize_grads=True)
    assert lists(found) == [[0.0], [3.0]]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when mat"):
        lib.autograd.grad(x * 3, [w], allow_unused=False, materialize_grads=True)


def test_grad_refuses_what_does_not_require_grad(lib):
    x = leaf(lib, 2.0)
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require g"):
        lib.autograd.grad(x * 3, lib.ones(1))
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        lib.autograd.grad(lib.ones(1), x)


def test_grad_with_respect_to_what_came_before_an_inplace_operation(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    before = y.clone()
    y.mul_(5)
    found = lib.autograd.grad(y, [y, before], allow_unused=True)
    assert lists(found) == [[1.0], None]


def test_grad_does_not_run_what_it_does_not_need(lib):
    log = []

    class Loud(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append("ran")
            return grad * 2

    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = Loud.apply(x) * w
    lib.autograd.grad(y, w)
    assert log == []


def test_grad_takes_both_sides_of_a_path(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    z = y * x
    assert lists(lib.autograd.grad(z * z, [x, y, z])) == [[288.0], [48.0], [24.0]]


# Higher gradients


def test_gradients_of_any_order(lib):
    x = lib.tensor([1.5], dtype=lib.float64, requires_grad=True)
    y = x * x * x * x * x
    expected = 1.5**5
    for order in range(5):
        assert y.item() == pytest.approx(expected)
        (y,) = lib.autograd.grad(y, x, create_graph=True)
        expected *= (5 - order) / 1.5
    assert y.item() == pytest.approx(120.0)


def test_gradients_of_a_quotient_of_any_order(lib):
    x = lib.tensor([2.0], dtype=lib.float64, requires_grad=True)
    y = 1 / x
    for order in range(1, 6):
        (y,) = lib.autograd.grad(y, x, create_graph=True)
        assert y.item() == pytest.approx((-1) ** order * math.factorial(order) / 2 ** (order + 1))


@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_backward_with_create_graph_accumulates_differentiably(lib):
    x = leaf(lib, 3.0)
    (x * x).backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    (x * x * x).backward(create_graph=True)
    assert x.grad.tolist() == [33.0]
    assert first.tolist() == [6.0]  # was not written to
    (second,) = lib.autograd.grad(x.grad, x)
    assert second.tolist() == [20.0]
    x.grad = None


def test_gradient_with_respect_to_a_given_gradient(lib):
    x, given = leaf(lib, 2.0), leaf(lib, 5.0)
    (first,) = lib.autograd.grad(x * x, x, given, create_graph=True)
    assert lists(lib.autograd.grad(first, [x, given])) == [[10.0], [4.0]]


def test_hooks_run_again_where_gradients_are_differentiated(lib):
    x = leaf(lib, 2.0)
    log = []
    y = x * x
    y.register_hook(lambda grad: log.append(grad.item()))
    (first,) = lib.autograd.grad(y * y, x, create_graph=True)
    assert log == [8.0]
    first.backward()
    assert log == [8.0, 8.0]
    assert x.grad.tolist() == [48.0]


# Reentrant passes, exceptions


def test_backward_inside_a_hook(lib):
    x, other = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * 3
    log = []

    def inner(grad):
        log.append("in")
        with lib.enable_grad():
            (other * other).backward()
        log.append("out")

    y.register_hook(inner)
    y.register_hook(lambda grad: log.append("next"))
    (y * 2).backward()
    assert log == ["in", "out", "next"]
    assert lists([x.grad, other.grad]) == [[6.0], [6.0]]


def test_backward_inside_a_function(lib):
    class Checkpoint(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            with lib.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x * x).backward(grad)
            return x.grad

    x = leaf(lib, 2.0)
    y = x
    for _ in range(3):
        y = Checkpoint.apply(y)
    y.backward()
    assert x.grad.tolist() == [27 * 2.0**26]


def test_exception_leaves_the_thread_as_it_was():
    x = leaf(convcore, 2.0)
    y = x * x
    handle = y.register_hook(lambda grad: 1 / 0)
    for enabled in (True, False):
        with convcore.set_grad_enabled(enabled), pytest.raises(ZeroDivisionError):
            y.backward(retain_graph=True)
        with convcore.set_grad_enabled(enabled):
            assert convcore.is_grad_enabled() is enabled
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [4.0]


# requires_grad


def test_requires_grad_is_for_floats_and_complex_numbers(lib):
    for build in (
        lambda: lib.ones(2, dtype=lib.int64, requires_grad=True),
        lambda: lib.ones(2, dtype=lib.int64).requires_grad_(),
        lambda: setattr(lib.ones(2, dtype=lib.bool), "requires_grad", True),
    ):
        with pytest.raises(
            RuntimeError, match=r"nly Tensors of floating point .*dtype can require gradients"
        ):
            build()


def test_requires_grad_is_changed_on_leaves_only(lib):
    x = lib.ones(2)
    x.requires_grad = True
    assert x.requires_grad_() is x
    y = x * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf vari"):
        y.requires_grad = False
    y.requires_grad_(True)
    x.requires_grad_(False)
    assert not x.requires_grad


def test_detached_tensor_shares_memory_and_no_history(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    z = y.detach()
    assert z.is_leaf
    assert not z.requires_grad
    z.mul_(3)
    assert y.tolist() == [6.0]
    w = y * 1
    assert w.detach_() is w
    assert w.is_leaf
    assert not w.requires_grad


# In-place operations and views


def test_leaf_that_requires_grad_is_not_changed_in_place(lib):
    x = leaf(lib, 1.0, 2.0)
    for change in (lambda: x.mul_(2), lambda: x.zero_(), lambda: x.__setitem__(0, 5.0)):
        with pytest.raises(
            RuntimeError, match=r"leaf Variable that requires grad .*used in an in-place operation"
        ):
            change()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        x.view(2).mul_(2)
    with lib.no_grad():
        x.mul_(2)
        x.view(2).mul_(2)
    assert x.tolist() == [4.0, 8.0]
    assert x.requires_grad


@pytest.mark.parametrize("views", [1, 2])
def test_views_of_a_view_that_became_a_leaf_are_not_changed_in_place(lib, views):
    root = lib.arange(6.0)
    x = root[1:].requires_grad_()
    y = x
    for _ in range(views):
        y = y[:-1]
    for change in (lambda: y.add_(1), lambda: y.zero_(), lambda: y.__setitem__(0, 5.0)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            change()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    root[1:].mul_(2)
    with lib.no_grad():
        y.mul_(2)
    assert root.tolist() == [
        0.0,
        *(4.0 * i for i in range(1, 6 - views)),
        *(2.0 * i for i in range(6 - views, 6)),
    ]


def test_inplace_operation_continues_the_history(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    y.mul_(3)
    y += x
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_inplace_operation_gives_a_constant_a_history(lib):
    x = leaf(lib, 1.0, 2.0)
    y = lib.ones(2)
    y.mul_(x)
    assert y.requires_grad
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_inplace_operation_on_a_part_reaches_the_whole(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    y = x * 2
    y[1:].mul_(10)
    y[0] = 5.0
    assert y.tolist() == [5.0, 40.0, 60.0]
    (y * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 40.0, 60.0]


def test_inplace_operation_on_the_whole_reaches_its_parts(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    y = x * 2
    part = y[1:]
    y.mul_(10)
    assert part.tolist() == [40.0, 60.0]
    part.sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 20.0]


def test_inplace_operation_on_one_view_reaches_the_others(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    y = x * 2
    left, right, all_of_it = y[:2], y[1:], y.view(3, 1)
    left.mul_(10)
    right.mul_(x[:2])
    (left.sum() + (right * 7).sum() + all_of_it.sum() * 100).backward()
    reference = leaf(lib, 1.0, 2.0, 3.0)
    a, b, c = (reference * 2).unbind()
    a = a * 10
    b = b * 10 * reference[0]
    c = c * reference[1]
    ((a + b) + 7 * (b + c) + 100 * (a + b + c)).backward()
    assert x.grad.tolist() == reference.grad.tolist()


def test_written_gradient_reaches_what_was_written(lib):
    x, values = leaf(lib, 1.0, 2.0, 3.0), leaf(lib, 5.0, 6.0)
    y = x * 2
    y[:2] = values
    (y * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert lists([x.grad, values.grad]) == [[0.0, 0.0, 200.0], [1.0, 10.0]]


def test_views_made_without_grad_are_not_changed_with_it(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    with lib.no_grad():
        view = y.view(2, 1)
    with pytest.raises(
        RuntimeError, match="view was created in no_grad mode and is being modified"
    ):
        view.mul_(2)


@pytest.mark.parametrize("layout", ["C", "F", "channels_last"])
@pytest.mark.parametrize("given", ["C", "F", "expanded"])
def test_write_into_a_view_has_the_right_gradient_in_any_layout(layout, given, lib):
    """A view of the base need not be a view of the base's gradient."""
    if layout == "channels_last":
        base = lib.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=lib.channels_last)
        rows = lambda t: t.permute(0, 2, 3, 1).view(12, 2)  # noqa: E731
    else:
        base = lib.arange(24.0).view(1, 2, 3, 4) if layout == "C" else lib.arange(24.0)
        base = base if layout == "C" else base.view(4, 3, 2, 1).permute(3, 2, 1, 0)
        rows = lambda t: t.view(12, 2) if layout == "C" else t.permute(3, 2, 1, 0).view(12, 2)  # noqa: E731
    x = base.clone().requires_grad_()
    y = x * 1
    rows(y)[3:5].mul_(10)
    gradient = lib.arange(24.0).view(1, 2, 3, 4) + 1
    if given == "F":
        gradient = gradient.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    elif given == "expanded":
        gradient = lib.ones(1, 1, 1, 1).expand(1, 2, 3, 4)
    y.backward(gradient)
    factor = base * 0 + 1
    rows(factor)[3:5].mul_(10)
    assert x.grad.tolist() == (gradient * factor).tolist()


# Complex


def test_gradients_of_complex_tensors_are_conjugated_as_pytorchs(torch):
    values = [1 + 2j, 3 - 1j]
    found = []
    for lib in (convcore, torch):
        z = lib.tensor(values, requires_grad=True)
        w = lib.tensor([2 - 1j, 0.5j], requires_grad=True)
        (z * w / (z + 3) * z.conj()).backward(lib.tensor([1 + 1j, 2 - 3j]))
        found.append([*z.grad.tolist(), *w.grad.tolist()])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


# Depth: nothing is recursive

STACK = 256 * 1024


def in_small_stack(function):
    """Run a function in a thread with a small stack; return or raise what it did."""
    result = []

    def run():
        try:
            result.append((function(), None))
        except BaseException as error:
            result.append((None, error))

    before = threading.stack_size(STACK)
    try:
        worker = threading.Thread(target=run)
        worker.start()
    finally:
        threading.stack_size(before)
    worker.join()
    value, error = result[0]
    if error is not None:
        raise error
    return value


def chain(step, length):
    x = leaf(convcore, 1.0)
    y = x * 1
    for _ in range(length):
        y = step(y)
    y.backward()
    return x.grad.item()


CHAINS = {
    "operations": (lambda y: y + 1, 150_000, 1.0),
    "operations that save": (lambda y: y * 1.0, 50_000, 1.0),
    "views": (lambda y: y.view(1), 15_000, 1.0),
    "operations in place": (lambda y: y.mul_(1.0), 50_000, 1.0),
    "operations in place on views": (lambda y: y.view(1).mul_(1.0), 400, 1.0),
}


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("stack", ["small", "own"])
def test_long_chain_is_built_run_and_destroyed(kind, stack):
    step, length, expected = CHAINS[kind]
    if stack == "own":
        length //= 5
        assert chain(step, length) == expected
    else:
        assert in_small_stack(lambda: chain(step, length)) == expected


def test_long_chain_of_writes_into_one_base():
    x = leaf(convcore, 1.0, 2.0)

    def run():
        y = x * 1
        for n in range(5_000):
            y[n % 2 :][:1].mul_(1.0)
        y.sum().backward()
        return x.grad.tolist()

    assert in_small_stack(run) == [1.0, 1.0]


def test_long_chain_that_never_ran_is_destroyed():
    def build():
        x = leaf(convcore, 1.0)
        y = x
        for _ in range(100_000):
            y = y + x
        z = y.detach().item()
        del y
        return z

    assert in_small_stack(build) == 100_001.0


def test_long_chain_of_functions():
    class Next(convcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    assert in_small_stack(lambda: chain(Next.apply, 20_000)) == 1.0


def test_long_chain_of_gradients():
    def run():
        x = leaf(convcore, 1.0)
        y = x
        for _ in range(5_000):
            y = y * x
        (first,) = convcore.autograd.grad(y, x, create_graph=True)
        (second,) = convcore.autograd.grad(first, x)
        return first.item(), second.item()

    assert in_small_stack(run) == pytest.approx((5_001.0, 5_001.0 * 5_000), rel=1e-3)


def test_wide_graph(lib):
    x = leaf(lib, 1.0)
    calls = []
    x.register_hook(lambda grad: calls.append(grad.item()))
    parts = [x * 2 for _ in range(10_000)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    total.backward()
    assert calls == [20_000.0]


def test_one_node_with_many_edges():
    x = leaf(convcore, 1.0)
    out = convcore.ones(1)
    record("ManyBackward0", (x,) * 10_000, out, lambda needs, grad: (grad,) * 10_000)
    out.backward()
    assert x.grad.tolist() == [10_000.0]


# Lifetimes


@pytest.mark.parametrize("ran", ["never", "backward", "grad", "create_graph"])
def test_graph_is_freed_without_the_collector(no_collector, ran):
    x = leaf(convcore, 1.0, 2.0)
    y = x * x
    z = y + x * y
    alive = [weakref.ref(part) for part in (x, y, z, y.grad_fn, z.grad_fn)]
    given = convcore.ones(2)
    if ran == "backward":
        z.backward(given)
    elif ran == "grad":
        convcore.autograd.grad(z, x, given)
    elif ran == "create_graph":
        (first,) = convcore.autograd.grad(z, x, given, create_graph=True)
        convcore.autograd.grad(first, x, given)
        del first
    del x, y, z
    assert [reference() for reference in alive] == [None] * len(alive)


@pytest.mark.parametrize("ran", [False, True])
def test_inplace_operations_on_views_leak_nothing(no_collector, ran):
    x = leaf(convcore, 1.0, 2.0)
    y = x * 2
    view = y.view(2, 1)
    other = y.view(1, 2)
    view.mul_(3)
    view.mul_(x.detach().view(2, 1))
    z = other * other
    y.add_(1)
    nodes = (view.grad_fn, y.grad_fn)
    alive = [weakref.ref(part) for part in (x, y, view, other, z, *nodes)]
    del nodes
    if ran:
        other.backward(convcore.ones(1, 2))
    del x, y, view, other, z
    assert [reference() for reference in alive] == [None] * len(alive)


def test_pass_that_failed_leaks_nothing(no_collector):
    x = leaf(convcore, 1.0)
    y = x * x
    y.register_hook(lambda grad: 1 / 0)
    alive = [weakref.ref(part) for part in (x, y, y.grad_fn)]
    with pytest.raises(ZeroDivisionError) as error:
        y.backward()
    del x, y, error
    gc.collect()  # the traceback held frames
    assert [reference() for reference in alive] == [None] * 3


def test_leaf_lives_as_long_as_its_graph(no_collector):
    x = leaf(convcore, 1.0)
    y = x * 2
    alive = weakref.ref(x)
    node = y.grad_fn.next_functions[0][0]
    del x
    y.backward()
    assert node.variable.grad.tolist() == [2.0]
    del y, node
    assert alive() is None


# Threads


def run_all(functions):
    """Run functions at once; raise what one of them raised."""
    errors = []
    start = threading.Barrier(len(functions))

    def run(function):
        start.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=run, args=(function,)) for function in functions]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


def test_threads_run_graphs_of_their_own():
    grads = {}

    def work(number):
        x = leaf(convcore, float(number))
        for _ in range(200):
            x.grad = None
            y = x
            for _ in range(5):
                y = y * x
            y.backward()
        grads[number] = x.grad.item()

    run_all([lambda n=n: work(n) for n in (1, 2, 3)])
    assert grads == {n: 6.0 * n**5 for n in (1, 2, 3)}


def test_threads_share_a_leaf():
    x = convcore.ones(5_000, requires_grad=True)

    def work():
        for _ in range(100):
            (x * 2).backward(convcore.ones(5_000))

    run_all([work] * 4)
    assert set(x.grad.tolist()) == {800.0}


def test_threads_share_a_graph():
    x = leaf(convcore, 3.0)
    y = x * x

    def work():
        for _ in range(100):
            y.backward(retain_graph=True)

    run_all([work] * 2)
    assert x.grad.tolist() == [1200.0]


# Random graphs


def random_program(rng, n_steps=30):
    """Return a list of steps that a tensor library of PyTorch's names can follow."""
    kinds = ["add", "mul", "div", "sub", "scale", "view", "part", "column", "transpose", "expand"]
    kinds += ["mul_", "add_", "scale_", "write", "hook", "retain", "hook_scale", "clone"]
    return [
        (kinds[rng.integers(len(kinds))], *rng.integers(0, 1 << 30, 3).tolist())
        for _ in range(n_steps)
    ]


def follow(lib, steps, values):
    """Run the steps; return what the hooks saw, the gradients and the final values."""
    leaves = [lib.tensor(value, dtype=lib.float64, requires_grad=True) for value in values]
    tensors = [x * 1 for x in leaves]
    log, retained = [], []
    for step, (kind, i, j, k) in enumerate(steps):
        a = tensors[i % len(tensors)]
        same = [t for t in tensors if t.shape == a.shape]
        b = same[j % len(same)]
        new = None
        if kind == "add":
            new = a + b * 0.5
        elif kind == "mul":
            new = a * b if k % 5 == 0 else a.clone() * b.clone()
        elif kind == "div":
            b = b.clone()
            new = a / (b * b + 1)
        elif kind == "sub":
            new = a - b
        elif kind == "scale":
            new = a * (k % 3 - 1.5)
        elif kind == "clone":
            new = a.clone()
        elif kind == "view":
            new = a.view(a.shape)
        elif kind == "part" and a.shape[0] > 1:
            new = a[k % 2 : a.shape[0] - (k // 2) % 2]
        elif kind == "column" and a.shape[1] > 1:
            new = a[:, k % 2 : a.shape[1] - (k // 2) % 2]
        elif kind == "transpose" and a.shape[0] == a.shape[1]:
            new = a.transpose(0, 1)
        elif kind == "expand":
            new = a[:1].expand(a.shape) * 1
        elif kind == "mul_":
            a.mul_(b.clone())
        elif kind == "add_":
            a.add_(b.clone())
        elif kind == "scale_":
            a.mul_(0.75)
        elif kind == "write":
            a[:1] = b[:1].clone() * 0.5
        elif kind == "hook":  # on new tensors: PyTorch crashes on views whose base was changed
            new = a * 1
            new.register_hook(lambda grad, s=step: log.append((s, grad.tolist())))
        elif kind == "hook_scale":
            new = a * 1
            new.register_hook(lambda grad: grad * 1.25)
        elif kind == "retain":
            new = a * 1
            new.retain_grad()
            retained.append(new)
        if new is not None:
            tensors.append(new)
    total = sum((t * t).sum() * (n + 1) for n, t in enumerate(tensors[-6:]))
    total.backward(retain_graph=True)
    again = lib.autograd.grad(total, leaves, allow_unused=True)
    return (
        log,
        [None if x.grad is None else x.grad.tolist() for x in leaves],
        [None if g is None else g.tolist() for g in again],
        [t.grad.tolist() for t in retained if t.grad is not None],
        [t.detach().tolist() for t in tensors],
    )


@pytest.mark.parametrize("case", range(40))
def test_random_graph_is_pytorchs(case, seed, torch):
    """Views, in-place operations and hooks in any order: the same gradients, or the same error."""
    rng = np.random.default_rng([seed, case])
    steps = random_program(rng)
    values = [rng.uniform(0.5, 1.5, (3, 3)).tolist() for _ in range(2)]
    outcomes = []
    for lib in (convcore, torch):
        try:
            outcomes.append(follow(lib, steps, values))
        except RuntimeError as error:
            outcomes.append(str(error)[:40])
    ours, theirs = outcomes
    if isinstance(theirs, str) or isinstance(ours, str):
        assert ours == theirs, (ours, theirs)
        return
    assert [s for s, _ in ours[0]] == [s for s, _ in theirs[0]]
    for found, expected in zip(ours, theirs, strict=True):
        assert_close(found, expected)


def assert_close(found, expected):
    """Compare nested lists, of whatever lengths, whose leaves are numbers or None."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for part, other in zip(found, expected, strict=True):
            assert_close(part, other)
    elif expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_grad_fn_is_called_with_a_gradient_an_output(lib):
    y = leaf(lib, 1.0) * 2
    assert y.grad_fn(lib.ones(1))[0].tolist() == [2.0]
    for gradients in ((), (lib.ones(1), lib.ones(1))):
        with pytest.raises(TypeError, match="expected 1 arguments, got"):
            y.grad_fn(*gradients)


def test_gradients_that_grad_makes_of_nothing_can_be_differentiated(lib):
    x, unused = leaf(lib, 1.0), leaf(lib, 2.0)
    for create_graph in (True, False):
        found = lib.autograd.grad(
            x * x, (x, unused), materialize_grads=True, create_graph=create_graph
        )
        assert lists(found) == [[2.0], [0.0]]
        assert found[1].requires_grad is create_graph


def test_backward_of_a_graph_warns_of_its_cycle():  # PyTorch once a process
    x = leaf(convcore, 1.0)
    with pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        (x * x).backward(create_graph=True)
    x.grad = None


def test_post_hooks_of_an_accumulator_see_what_hooks_before_them_did(lib):
    x = leaf(lib, 1.0, 2.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda grads: (grads[0] / 4,))

    def add_a_half(tensor):
        tensor.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(add_a_half)
    seen = []
    node.register_hook(lambda _, grads: seen.append(grads[0].tolist()))
    x.sum().backward()
    assert seen == [[0.25, 0.25]]


def test_passes_nest_deeper_than_a_stack(lib):
    class Nested(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, grad):
            if ctx.x > 0:
                with lib.enable_grad():
                    Nested.apply(ctx.x).sum().backward()
            return grad

    x = leaf(lib, 300.0)
    Nested.apply(x).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_errors_in_nested_passes_arrive(lib):
    class Failing(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, grad):
            if ctx.x <= 0:
                raise KeyError("the innermost")
            with lib.enable_grad():
                Failing.apply(ctx.x).sum().backward()
            return grad

    with pytest.raises(KeyError, match="the innermost"):
        Failing.apply(leaf(lib, 100.0)).sum().backward()


@pytest.mark.parametrize(
    "call", [lambda x: convcore.trapezoid(x, x), lambda x: x.prod(), lambda x: x.prod(0)]
)
def test_infinities_of_both_signs_are_summed_without_numpys_warnings(call):
    x = convcore.tensor([[np.inf, 0.0, -np.inf], [2.0, np.nan, 3.0]], requires_grad=True)
    (slope,) = convcore.autograd.grad(call(x).sum(), x)
    assert slope.isnan().any()


def test_a_gradient_with_a_graph_is_written_into_new_memory(torch):
    told = []
    for lib in (convcore, torch):
        x = lib.ones(2, 3, requires_grad=True)
        with warnings.catch_warnings(action="ignore"):
            (x * x).sum().backward(create_graph=True)
        node = x.grad.grad_fn
        told.append((type(node).__name__, [fn and fn.name() for fn, _ in node.next_functions]))
    assert told[0] == told[1]
