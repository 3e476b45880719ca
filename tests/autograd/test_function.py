"""Functions of the user's own.  Tests with `lib` run on PyTorch too."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import convcore


def leaf(lib, *values):
    return lib.tensor(values, requires_grad=True)


def function(lib, forward, backward=None, setup_context=None, name="Mine"):
    """Return a Function of the given static methods."""
    methods = {"forward": staticmethod(forward)}
    if backward is not None:
        methods["backward"] = staticmethod(backward)
    if setup_context is not None:
        methods["setup_context"] = staticmethod(setup_context)
    return type(name, (lib.autograd.Function,), methods)


def square(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    return function(lib, forward, backward, name="Square")


# The plain case


def test_function_computes_and_differentiates(lib):
    x = leaf(lib, 3.0)
    y = square(lib).apply(x)
    assert y.tolist() == [9.0]
    assert y.requires_grad
    assert not y.is_leaf
    y.backward()
    assert x.grad.tolist() == [6.0]


def test_function_node_is_named_after_it(lib):
    y = square(lib).apply(leaf(lib, 3.0))
    assert type(y.grad_fn).__name__ == "SquareBackward"
    assert y.grad_fn.name() == "SquareBackward"
    assert repr(y) == "tensor([9.], grad_fn=<SquareBackward>)"


def test_function_records_nothing_where_nothing_requires_grad(lib):
    y = square(lib).apply(lib.ones(1))
    assert not y.requires_grad
    assert y.grad_fn is None


def test_function_records_nothing_under_no_grad(lib):
    x = leaf(lib, 3.0)
    needs = []

    def forward(ctx, x):
        needs.append(ctx.needs_input_grad)
        ctx.save_for_backward(x)
        return x * x

    with lib.no_grad():
        y = function(lib, forward).apply(x)
    assert not y.requires_grad
    assert needs == [(True,)]


def test_function_forward_runs_without_grad(lib):
    modes = []

    def forward(ctx, x):
        modes.append((lib.is_grad_enabled(), (x * 2).requires_grad, x.requires_grad))
        return x * 2

    function(lib, forward, lambda ctx, grad: grad).apply(leaf(lib, 1.0))
    assert modes == [(False, False, True)]


@pytest.mark.parametrize("create_graph", [False, True])
def test_function_backward_runs_in_the_mode_of_the_pass(lib, create_graph):
    modes = []

    def backward(ctx, grad):
        modes.append(lib.is_grad_enabled())
        return grad * 2

    x = leaf(lib, 1.0)
    y = function(lib, lambda ctx, x: x * 2, backward).apply(x)
    lib.autograd.grad(y, x, create_graph=create_graph)
    assert modes == [create_graph]


def test_function_cannot_be_instantiated(lib):
    with pytest.raises(RuntimeError, match="should not be instantiated"), warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            square(lib)()
        except DeprecationWarning as warning:  # PyTorch warns of it
            raise RuntimeError(str(warning)) from None


def test_function_needs_forward_and_backward(lib):
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        type("Empty", (lib.autograd.Function,), {}).apply(leaf(lib, 1.0))
    y = function(lib, lambda ctx, x: x * 2).apply(leaf(lib, 1.0))
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        y.backward()


# Arguments and results


def test_function_takes_anything_among_its_arguments(lib):
    seen = []

    def forward(ctx, x, factor, options, nothing):
        ctx.factor = factor
        seen.append((factor, options, nothing, ctx.needs_input_grad))
        return x * factor

    def backward(ctx, grad):
        return grad * ctx.factor, None, None, None

    x = leaf(lib, 1.0)
    y = function(lib, forward, backward).apply(x, 3, {"a": [1]}, None)
    assert len(y.grad_fn.next_functions) == 1  # only tensors have edges
    y.backward()
    assert seen == [(3, {"a": [1]}, None, (True, False, False, False))]
    assert x.grad.tolist() == [3.0]


def test_function_gets_needs_input_grad(lib):
    seen = []

    def forward(ctx, a, b, c):
        seen.append(ctx.needs_input_grad)
        return a * b * c

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad, grad, grad

    apply = function(lib, forward, backward).apply
    apply(leaf(lib, 1.0), lib.ones(1), leaf(lib, 2.0)).backward()
    assert seen == [(True, False, True)] * 2


def test_function_node_hooks_see_gradients_of_tensors_only(lib):
    def forward(ctx, factor, x, nothing, w):
        return factor * x * w

    def backward(ctx, grad):
        return None, grad * 2, None, grad * 3

    x, w = leaf(lib, 1.0), leaf(lib, 1.0)
    y = function(lib, forward, backward).apply(2, x, None, w)
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
    y.backward()
    assert [t.tolist() for t in (x.grad, w.grad)] == [[20.0], [3.0]]


def test_function_gets_needs_input_grad_of_this_pass():
    """PyTorch gives what holds for all leaves."""
    lib = convcore

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        return grad, None, grad

    seen = []
    x, w = leaf(lib, 1.0) * 1, leaf(lib, 2.0) * 1
    y = function(lib, lambda ctx, x, number, w: x * w, backward).apply(x, 5, w)
    lib.autograd.grad(y, w)
    assert seen == [(False, False, True)]


def test_function_returns_several_outputs(lib):
    def forward(ctx, x):
        return x * 2, "text", x * 3

    def backward(ctx, a, text, b):
        seen.append((a.tolist(), b.tolist()))
        return a * 2 + b * 3

    seen = []
    x = leaf(lib, 1.0)
    a, text, b = function(lib, forward, backward).apply(x)
    assert text == "text"
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 2)
    (a * b).backward()
    assert seen == [([3.0], [2.0])]
    assert x.grad.tolist() == [12.0]


def test_function_gets_zeros_where_no_gradient_arrived(lib):
    def backward(ctx, a, b):
        seen.append(None if b is None else b.tolist())
        return a * 2

    seen = []
    apply = function(lib, lambda ctx, x: (x * 2, x.sum() * 3), backward).apply
    apply(leaf(lib, 1.0, 2.0))[0].sum().backward()
    assert seen == [0.0]


def test_function_gets_none_if_it_says_so(lib):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, a, b):
        seen.append((a is None, b is None))
        return (a if b is None else b) * 2

    seen = []
    apply = function(lib, forward, backward).apply
    for number in (0, 1):
        apply(leaf(lib, 1.0))[number].backward()
    assert seen == [(False, True), (True, False)]


def test_function_may_return_a_list_of_gradients_or_none(lib):
    x = leaf(lib, 1.0)
    function(lib, lambda ctx, x: x * 2, lambda ctx, grad: None).apply(x).backward()
    assert x.grad is None


def test_function_may_return_more_nones(lib):
    x = leaf(lib, 1.0)
    function(lib, lambda ctx, x: x * 2, lambda ctx, grad: (grad * 2, None)).apply(x).backward()
    assert x.grad.tolist() == [2.0]


def test_function_must_return_as_many_gradients_as_arguments(lib):
    y = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: (grad, grad)).apply(leaf(lib, 1.0))
    with pytest.raises(
        RuntimeError,
        match=r"function MineBackward returned an incorrect number of gradients \(expected 1, got ",
    ):
        y.backward()
    apply = function(lib, lambda ctx, x, w: x * w, lambda ctx, grad: grad).apply
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        apply(leaf(lib, 1.0), leaf(lib, 1.0)).backward()


def test_function_must_return_gradients_of_the_right_shape(lib):
    apply = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: lib.ones(3)).apply
    with pytest.raises(
        RuntimeError,
        match=r"Function MineBackward returned an invalid gradient at index 0 - got \[3\] but "
        r"expected shape compatible with \[2\]",
    ):
        apply(leaf(lib, 1.0, 2.0)).sum().backward()


def test_function_gradient_is_summed_to_its_input(lib):
    x = leaf(lib, 1.0, 2.0)
    backward = lambda ctx, grad: lib.ones(3, 2) * grad  # noqa: E731
    function(lib, lambda ctx, x: x * 2, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_function_gradient_is_cast_to_its_input(lib):
    x = leaf(lib, 1.0, 2.0)
    backward = lambda ctx, grad: grad.to(lib.float64) * 2  # noqa: E731
    y = x * 1
    y.register_hook(lambda grad: seen.append(grad.dtype))
    seen = []
    function(lib, lambda ctx, x: x * 2, backward).apply(y).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert seen == [lib.float32]


def test_function_must_return_tensors(lib):
    apply = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: 5).apply
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got int\)"):
        apply(leaf(lib, 1.0)).backward()


def test_exception_in_a_function_comes_out_unchanged(lib):
    def fails(*args):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(lib, fails).apply(leaf(lib, 1.0))
    assert lib.is_grad_enabled()
    y = function(lib, lambda ctx, x: x * 2, fails).apply(leaf(lib, 1.0))
    with pytest.raises(KeyError, match="mine"):
        y.backward()


# ctx


def test_function_saves_tensors_only(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x, 5)
        return x * 2

    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type"):
        function(lib, forward, lambda ctx, grad: grad).apply(leaf(lib, 1.0))


def test_function_saves_inputs_outputs_others_and_none(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y, x + 1, None)
        return y

    def backward(ctx, grad):
        x, y, other, nothing = ctx.saved_tensors
        seen.append((x.tolist(), y.tolist(), other.tolist(), nothing))
        return grad * 2

    seen = []
    function(lib, forward, backward).apply(leaf(lib, 1.0)).backward()
    assert seen == [([1.0], [2.0], [2.0], None)]


def test_function_second_backward_says_that_the_graph_is_freed(lib):
    y = square(lib).apply(leaf(lib, 1.0))
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_function_unpacks_what_its_backward_asks_for(lib):
    """Once, and not at all if it does not ask: then neither freed nor changed tensors matter."""
    unpacked = []

    def unpack(tensor):
        unpacked.append(tensor.tolist())
        return tensor

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 1.0)
    asking = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0])
    with lib.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = asking.apply(x)
    y.backward()
    assert unpacked == [[1.0]]
    z = x + 0
    y = function(lib, forward, lambda ctx, grad: grad * 2).apply(z)
    z.add_(1)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_function_keeps_a_gradient_that_it_returned(lib):
    """What backward returns is the user's: it is neither taken for `.grad` nor added to."""
    kept = lib.ones(1)
    mine = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: kept)
    x = leaf(lib, 1.0)
    mine.apply(x).backward()
    x.grad.mul_(5)
    y = x + 0
    (y * 3 + mine.apply(y)).backward()
    (mine.apply(y) + y * 3).backward()
    assert kept.tolist() == [1.0]
    assert x.grad.tolist() == [13.0]


def test_function_that_saves_nothing_runs_twice(lib):
    x = leaf(lib, 1.0)
    y = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: grad * 2).apply(x)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_function_attributes_are_seen_on_the_node(lib):
    def forward(ctx, x):
        ctx.note = [1]
        return x * 2

    def backward(ctx, grad):
        assert ctx.note == [1, 2]
        return grad * 2

    y = function(lib, forward, backward).apply(leaf(lib, 1.0))
    y.grad_fn.note.append(2)
    y.backward()
    with pytest.raises(AttributeError):
        y.grad_fn.another  # noqa: B018


def test_function_saved_tensors_are_seen_on_the_node(lib):
    y = square(lib).apply(leaf(lib, 3.0))
    assert y.grad_fn.saved_tensors[0].tolist() == [3.0]


def test_function_hooks_work_like_those_of_other_nodes(lib):
    x = leaf(lib, 3.0)
    y = square(lib).apply(x)
    log = []
    y.register_hook(lambda grad: log.append("tensor"))
    y.grad_fn.register_prehook(lambda grads: log.append("before"))
    y.grad_fn.register_hook(lambda gi, go: (log.append("after"), (gi[0] * 10,))[1])
    y.backward()
    assert log == ["tensor", "before", "after"]
    assert x.grad.tolist() == [60.0]


def test_function_setup_context(lib):
    def forward(x, factor):
        return x * factor, x + 1

    def setup_context(ctx, inputs, output):
        x, ctx.factor = inputs
        seen.append((x.tolist(), [o.tolist() for o in output]))
        ctx.save_for_backward(output[0])
        ctx.mark_non_differentiable(output[1])

    def backward(ctx, grad, _):
        seen.append(ctx.saved_tensors[0].tolist())
        return grad * ctx.factor, None

    seen = []
    x = leaf(lib, 2.0)
    y, other = function(lib, forward, backward, setup_context).apply(x, 3)
    assert not other.requires_grad
    y.backward()
    assert seen == [([2.0], [[6.0], [3.0]]), [6.0]]
    assert x.grad.tolist() == [3.0]


# Marks


def test_function_mark_non_differentiable(lib):
    def forward(ctx, x):
        positive = (x > 0) * 1.0
        ctx.mark_non_differentiable(positive)
        return x * 2, positive

    def backward(ctx, grad, other):
        seen.append(other.tolist())
        return grad * 2

    seen = []
    x = leaf(lib, 1.0, -1.0)
    y, positive = function(lib, forward, backward).apply(x)
    assert not positive.requires_grad
    assert positive.grad_fn is None
    y.sum().backward()
    assert seen == [[0.0, 0.0]]


def test_function_outputs_of_integers_have_no_gradient(lib):
    def forward(ctx, x):
        return x * 2, lib.tensor([1, 2])

    x = leaf(lib, 1.0)
    y, number = function(lib, forward, lambda ctx, grad, _: grad * 2).apply(x)
    assert y.requires_grad
    assert not number.requires_grad


def dirty(lib):
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    return function(lib, forward, lambda ctx, grad: grad * 3)


def test_function_mark_dirty_changes_in_place(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    version = y._version
    z = dirty(lib).apply(y)
    assert z is y
    assert y._version > version
    assert type(y.grad_fn).__name__ == "MineBackward"
    (y * 5).sum().backward()
    assert y.tolist() == [6.0, 12.0]
    assert x.grad.tolist() == [30.0, 30.0]


def test_function_mark_dirty_counts_as_a_change(lib):
    def forward(ctx, x):
        x.detach().numpy()[...] *= 3
        ctx.mark_dirty(x)
        return x

    y = leaf(lib, 1.0) * 1
    z = y * y
    function(lib, forward, lambda ctx, grad: grad * 3).apply(y)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_function_mark_dirty_of_a_view_changes_its_base(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    dirty(lib).apply(y[:1])
    (y * 5).sum().backward()
    assert y.tolist() == [6.0, 4.0]
    assert x.grad.tolist() == [30.0, 10.0]


def test_function_mark_dirty_stops_those_who_saved(lib):
    x = leaf(lib, 1.0)
    y = x * 1
    z = y * y
    dirty(lib).apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_function_may_not_change_a_leaf_in_place(lib):
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad .*in-place op"):
        dirty(lib).apply(leaf(lib, 1.0))


def test_function_must_return_what_is_dirty():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    with pytest.raises(RuntimeError, match=r"marked as dirty .* were not returned as output"):
        function(convcore, forward).apply(leaf(convcore, 1.0) * 1)


def test_function_warns_of_a_dirty_tensor_that_is_no_input():
    def forward(ctx, x):
        y = x * 3
        y.add_(1)
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        function(convcore, forward).apply(leaf(convcore, 1.0) * 1)


def test_function_changes_a_view_and_returns_two_outputs():
    def forward(ctx, x, factor):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x + 1

    def backward(ctx, grad, sum_grad):
        return 2 * (grad + sum_grad), None

    x = leaf(convcore, 1.0, 2.0, 3.0)
    base = x * 1
    changed, more = function(convcore, forward, backward).apply(base[:2], 0)
    (changed * more + 5 * base[:2]).sum().backward()  # y = 2 x: y (y + 1) + 5 y
    assert base.tolist() == [2, 4, 3]
    assert x.grad.tolist() == [2 * (2 * 2 + 1) + 10, 2 * (2 * 4 + 1) + 10, 0]


def test_function_may_save_what_it_changed(lib):
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]

    x = leaf(lib, 0.0)
    y = x * 1
    function(lib, forward, backward).apply(y).backward()
    assert x.grad.tolist() == [1.0]


def test_function_without_mark_dirty_gives_a_new_history(lib):
    """Changing an input in place without saying so leaves the input's history as it was."""

    def forward(ctx, x):
        x.mul_(3)
        return x.clone()

    x = leaf(lib, 1.0)
    y = x * 2
    node = y.grad_fn
    function(lib, forward, lambda ctx, grad: grad * 3).apply(y).backward()
    assert y.grad_fn is node
    assert x.grad.tolist() == [6.0]


# Outputs that are inputs, and views


def returned(lib):
    return function(lib, lambda ctx, x: x, lambda ctx, grad: grad * 10, name="Returned")


def test_function_may_return_its_input(lib):
    x = leaf(lib, 1.0)
    y = returned(lib).apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    assert x.is_leaf
    y.backward()
    assert x.grad.tolist() == [10.0]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_input_of_a_subclass_is_returned_as_one(lib, requires_grad):
    class Mine(lib.Tensor):
        pass

    for x, kind in (
        (lib.ones(2).as_subclass(Mine), Mine),
        (lib.nn.Parameter(lib.ones(2)), lib.Tensor),
    ):
        x.requires_grad_(requires_grad)
        y = returned(lib).apply(x)
        assert type(y) is kind and y is not x and y.data_ptr() == x.data_ptr()
        if requires_grad:
            y.sum().backward()
            assert x.grad.tolist() == [10, 10]


def test_function_may_return_its_input_without_grad(lib):
    x = lib.ones(1)
    y = returned(lib).apply(x)
    assert y.data_ptr() == x.data_ptr()
    assert not y.requires_grad


def test_function_may_return_an_input_as_non_differentiable(lib):
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x, x * 2

    x = leaf(lib, 1.0)
    same, y = function(lib, forward, lambda ctx, _, grad: grad * 2).apply(x)
    assert not same.requires_grad
    assert x.requires_grad
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_function_output_that_is_an_input_may_be_changed_in_place():
    x = leaf(convcore, 1.0)
    base = x * 1
    y = returned(convcore).apply(base)
    y.mul_(2)
    base.sum().backward()
    assert base.tolist() == [2.0]
    assert x.grad.tolist() == [20.0]


def test_function_output_that_is_an_input_is_no_more_after_the_input_changed(lib):
    base = leaf(lib, 1.0) * 1
    y = returned(lib).apply(base)
    base.mul_(2)
    with pytest.raises(
        RuntimeError, match="Output 0 of Returned is a view and its base or another"
    ):
        y * 3


def test_function_that_returns_a_view_differentiates(lib):
    apply = function(lib, lambda ctx, x: x.view(4), lambda ctx, grad: grad.view(2, 2) * 10).apply
    x = lib.ones(2, 2, requires_grad=True)
    apply(x).sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0]] * 2


@pytest.mark.parametrize(("n_views", "why"), [(1, "a custom Function"), (2, "multiple views")])
def test_views_that_a_function_returns_and_their_base_may_not_be_changed(lib, n_views, why):
    class Flat(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return tuple(x.view(4) for _ in range(n_views))

        @staticmethod
        def backward(ctx, *grads):
            return sum(grads).view(2, 2)

    base = lib.ones(2, 2, requires_grad=True) * 1
    *_, y = Flat.apply(base)
    of_y = f"Output {n_views - 1} of Flat is a view and"
    with pytest.raises(RuntimeError, match=f"{of_y} is being modified inplace.*{why}"):
        y.mul_(2)
    base.mul_(2)
    with pytest.raises(RuntimeError, match=f"{of_y} its base or another view of.*{why}"):
        y * 3


# Higher gradients


def test_function_made_of_differentiable_operations_is_differentiable_again(lib):
    x = leaf(lib, 3.0)
    (first,) = lib.autograd.grad(square(lib).apply(x) * x, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x, create_graph=True)
    (third,) = lib.autograd.grad(second, x)
    assert [t.tolist() for t in (first, second, third)] == [[27.0], [18.0], [6.0]]


def test_function_saved_output_is_differentiable_again(lib):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(lib, 0.0)
    y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(x)
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert [first.item(), second.item()] == [1.0, 1.0]


def test_function_is_used_in_its_own_backward(lib):
    class Sine(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, turns):
            ctx.save_for_backward(x)
            ctx.turns = turns
            return lib.from_numpy(np.sin(x.detach().numpy() + turns * np.pi / 2))

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * Sine.apply(x, ctx.turns + 1), None

    x = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
    value = Sine.apply(x, 0)
    for turn in range(1, 5):
        (value,) = lib.autograd.grad(value, x, create_graph=True)
        assert value.item() == pytest.approx(np.sin(0.5 + turn * np.pi / 2))


def test_once_differentiable_refuses_to_be_differentiated_again(lib):
    once = lib.autograd.function.once_differentiable
    modes = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @once
    def backward(ctx, grad):
        modes.append(lib.is_grad_enabled())
        return 2 * ctx.saved_tensors[0] * grad

    x = leaf(lib, 3.0)
    apply = function(lib, forward, backward).apply
    apply(x).backward()
    assert x.grad.tolist() == [6.0]
    (first,) = lib.autograd.grad(apply(x) * x, x, create_graph=True)
    assert first.tolist() == [27.0]
    (constant,) = lib.autograd.grad(apply(x), x, create_graph=True)
    assert not constant.requires_grad
    with pytest.raises(
        RuntimeError, match="differentiate twice a function that was marked with @o"
    ):
        first.backward()
    assert modes == [False, False, False]


# Lifetimes


@pytest.mark.parametrize("kind", ["square", "returned", "dirty", "output"])
@pytest.mark.parametrize("backward", [False, True])
def test_function_keeps_nothing_alive_without_the_collector(kind, backward):
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    output = function(convcore, forward, lambda ctx, grad: grad * ctx.saved_tensors[1])
    cls = {
        "square": square(convcore),
        "returned": returned(convcore),
        "dirty": dirty(convcore),
        "output": output,
    }[kind]
    gc.collect()
    gc.disable()
    try:
        x = leaf(convcore, 1.0)
        y = x * 1
        z = cls.apply(y)
        alive = [weakref.ref(part) for part in (x, y, z, z.grad_fn, z.grad_fn.ctx)]
        if backward:
            z.backward()
        del x, y, z
        assert [reference() for reference in alive] == [None] * 5
    finally:
        gc.enable()


def test_function_may_return_one_tensor_twice(lib):
    def forward(ctx, x):
        y = x * 2
        return y, y

    x = leaf(lib, 1.0, 2.0)
    a, b = function(lib, forward, lambda ctx, first, last: first * 2 + last * 3).apply(x)
    assert a is b
    (a + b).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_setup_context_gets_the_defaults_of_forward(lib):
    def setup_context(ctx, inputs, output):
        _, ctx.factor, ctx.more = inputs

    def forward(x, factor=3, *, more=5):
        return x * factor

    def forward_by_position(x, factor=3, more=5):
        return x * factor

    cls = function(lib, forward_by_position, lambda ctx, g: (g * ctx.factor, None, None))
    cls.setup_context = staticmethod(setup_context)
    x = leaf(lib, 2.0)
    y = cls.apply(x)
    y.backward()
    assert (y.item(), x.grad.tolist()) == (6.0, [3.0])


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_of_outputs_without_any_are_zeros_or_none(lib, materialize):
    seen = []

    def forward(ctx, x):
        ctx._materialize_non_diff_grads = materialize
        y, z = x * 2, x * 3
        ctx.mark_non_differentiable(z)
        return y, z, 7

    def backward(ctx, y, z, number):
        seen.extend([None if grad is None else grad.tolist() for grad in (z, number)])
        return y * 2

    y, _, _ = function(lib, forward, backward).apply(leaf(lib, 1.0))
    y.backward()
    assert seen == [[0.0] if materialize else None, None]


def test_functions_are_not_called(lib):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = square(lib)()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        instance(leaf(lib, 1.0))


def test_saved_tensors_have_their_older_name_too(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                (x,) = ctx.saved_variables
            return 2 * x * grad

    x = lib.tensor(3.0, requires_grad=True)
    Square.apply(x).backward()
    assert x.grad == 6


def test_a_ctx_that_outlives_its_graph_has_no_tensors(lib):
    kept = []

    class Kept(lib.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            kept.append(ctx)
            return grad

    Kept.apply(lib.ones(1, requires_grad=True)).backward()
    with pytest.raises(RuntimeError, match="have already been freed"):
        kept[0].saved_tensors  # noqa: B018


def test_vjp_is_another_name_of_backward(lib):
    scale = function(lib, lambda ctx, x: x * 3)
    scale.vjp = staticmethod(lambda ctx, grad: grad * 3)
    x = leaf(lib, 1.0, 2.0)
    scale.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_function_has_one_of_the_two(lib):
    both = function(lib, lambda ctx, x: x * 3, lambda ctx, grad: grad)
    both.vjp = staticmethod(lambda ctx, grad: grad)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        both.apply(leaf(lib, 1.0)).backward()
    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        function(lib, lambda ctx, x: x * 3).apply(leaf(lib, 1.0)).backward()
