"""Hooks on tensors.  What they see is the same in PyTorch: each test with `lib` runs on both."""

import copy
import gc
import importlib
import pickle
import re
import threading
import warnings
import weakref

import numpy as np
import pytest

import convcore
from convcore.autograd.node import record


def leaf(lib, *values):
    return lib.tensor(values, requires_grad=True)


def ones(lib, tensor):
    return lib.ones(tensor.shape)


def taking(log, name=None, answer=None):
    """Return a hook that writes the gradient, or the name, into a log."""

    def hook(grad):
        if name is not None:
            log.append(name)
        else:
            log.append(None if grad is None else grad.tolist())
        return answer

    return hook


# register_hook: what is called, when, with what


def test_hook_sees_the_sum_over_all_uses(lib):
    x = leaf(lib, 1.0, 2.0)
    seen = []
    x.register_hook(taking(seen))
    y = x * 3 + x * x
    y.backward(lib.ones(2))
    assert seen == [[5.0, 7.0]]
    assert x.grad.tolist() == [5.0, 7.0]


def test_hook_is_called_once_where_a_tensor_meets_itself(lib):
    x = leaf(lib, 3.0)
    y = x * 1
    seen = []
    y.register_hook(taking(seen))
    ((y + y) * (y * y)).sum().backward()
    assert seen == [[54.0]]


def test_hook_sees_this_pass_without_the_old_grad(lib):
    x = leaf(lib, 1.0)
    seen = []
    x.register_hook(taking(seen))
    for factor in (2, 3):
        (x * factor).sum().backward()
    assert seen == [[2.0], [3.0]]
    assert x.grad.tolist() == [5.0]


def test_hook_needs_a_tensor_that_requires_grad(lib):
    with pytest.raises(RuntimeError) as error:
        lib.ones(2).register_hook(print)
    assert str(error.value) == ("cannot register a hook on a tensor that doesn't require gradient")


@pytest.mark.parametrize("is_leaf", [True, False])
def test_hooks_are_chained_in_the_order_of_registration(lib, is_leaf):
    x = leaf(lib, 1.0)
    y = x if is_leaf else x * 1
    seen = []

    def double(grad):
        seen.append(("double", grad.item()))
        return grad * 2

    def keep(grad):
        seen.append(("keep", grad.item()))

    def add_one(grad):
        seen.append(("add_one", grad.item()))
        return grad + 1

    for hook in (double, keep, add_one):
        y.register_hook(hook)
    (y * 5).sum().backward()
    assert seen == [("double", 5.0), ("keep", 10.0), ("add_one", 10.0)]
    assert x.grad.tolist() == [11.0]


def test_hook_of_no_leaf_changes_what_flows_on(lib):
    x = leaf(lib, 1.0)
    y = x * 3
    y.register_hook(lambda grad: grad * 100)
    y.sum().backward()
    assert x.grad.tolist() == [300.0]


@pytest.mark.parametrize("is_leaf", [True, False])
def test_hook_may_return_nothing_but_a_tensor(lib, is_leaf):
    x = leaf(lib, 1.0)
    y = x if is_leaf else x * 1
    y.register_hook(lambda grad: 5)
    with pytest.raises(TypeError) as error:
        (y * 2).sum().backward()
    assert str(error.value) == "expected Variable, but hook returned 'int'"


@pytest.mark.parametrize("shape", [(1,), (2, 2), (), (3,)])
def test_hook_may_not_change_the_size(lib, shape):
    x = leaf(lib, 1.0, 2.0)

    def resize(grad):
        return lib.ones(shape)

    x.register_hook(resize)
    with pytest.raises(RuntimeError) as error:
        (x * 2).backward(lib.ones(2))
    assert str(error.value) == "hook 'resize' has changed the size of value"


def test_hook_may_not_change_the_dtype(lib):
    x = leaf(lib, 1.0, 2.0)

    def cast(grad):
        return lib.ones(2, dtype=lib.float64)

    x.register_hook(cast)
    with pytest.raises(RuntimeError) as error:
        (x * 2).backward(lib.ones(2))
    assert str(error.value) == (
        "hook 'cast' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"
    )


def test_hook_that_edits_in_place_takes_effect_and_writes_to_the_given_gradient(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 3
    y.register_hook(lambda grad: (grad.mul_(10), None)[1])
    given = lib.ones(2)
    y.backward(given)
    assert x.grad.tolist() == [30.0, 30.0]
    assert given.tolist() == [10.0, 10.0]


def test_hook_may_not_edit_an_expanded_gradient_in_place(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 3
    y.register_hook(lambda grad: grad.mul_(10))
    message = (
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location"
    )
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


def test_hook_may_be_any_callable(lib):
    class Scale:
        def __call__(self, grad):
            return grad * 7

    x = leaf(lib, 1.0)
    x.register_hook(Scale())
    (x * 1).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_hook_without_a_name_is_named_in_errors_as_unknown(lib):
    class Resize:
        def __call__(self, grad):
            return lib.ones(3)

    x = leaf(lib, 1.0)
    x.register_hook(Resize())
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        (x * 1).sum().backward()


def test_hook_of_a_leaf_runs_under_grad(lib):
    x = leaf(lib, 1.0)
    seen = []
    x.register_hook(taking(seen))
    (found,) = lib.autograd.grad((x * 4).sum(), x)
    assert seen == [[4.0]]
    assert found.tolist() == [4.0]
    assert x.grad is None


def test_hook_changes_what_grad_returns(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    assert lib.autograd.grad((y * 3).sum(), y)[0].tolist() == [30.0]


def test_hooks_run_where_gradients_are_captured_and_not_beyond(lib):
    x, w = leaf(lib, 1.0), leaf(lib, 2.0)
    y = x * 2
    z = y * w
    log = []
    for name, tensor in (("x", x), ("w", w), ("y", y), ("z", z)):
        tensor.register_hook(taking(log, name))
    y.grad_fn.register_hook(lambda *grads: log.append("y's node"))
    lib.autograd.grad(z.sum(), y, retain_graph=True)
    assert log == ["z", "y"]
    log.clear()
    z.sum().backward(inputs=[y])  # runs the node, but nothing behind it
    assert log == ["z", "y", "y's node"]
    assert y.grad.tolist() == [2.0]
    assert x.grad is None
    assert w.grad is None


def test_hooks_of_other_outputs_of_a_captured_node_run(lib):
    x = leaf(lib, 1.0, 2.0)
    a, b = (x * 1).chunk(2)
    log = []
    a.register_hook(taking(log, "a"))
    b.register_hook(taking(log, "b"))
    lib.autograd.grad((a * b).sum(), a)
    assert log == ["a", "b"]


def test_hook_of_an_output_without_gradient_is_called_with_none(lib):
    x = leaf(lib, 1.0, 2.0)
    a, b = (x * 1).chunk(2)
    seen = []
    b.register_hook(taking(seen))
    a.sum().backward()
    assert seen == [None]
    assert x.grad.tolist() == [1.0, 0.0]


def test_hook_may_not_replace_none(lib):
    x = leaf(lib, 1.0, 2.0)
    a, b = (x * 1).chunk(2)
    b.register_hook(lambda grad: lib.ones(1))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        a.sum().backward()


def test_hooks_behind_a_function_without_gradient_are_called_with_none(lib):
    class Stop(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    x = leaf(lib, 1.0)
    y = x * 3
    seen = []
    y.register_hook(lambda grad: seen.append(("y", grad)))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: seen.append(("before", grads)))
    y.grad_fn.register_hook(lambda after, before: seen.append(("after", after, before)))
    x.register_hook(lambda grad: seen.append(("x", grad)))
    x.register_post_accumulate_grad_hook(lambda x: seen.append(("accumulated", x.grad)))
    Stop.apply(y).sum().backward()
    assert seen == [
        ("y", None),
        ("before", (None,)),
        ("after", (None, None), (None,)),
        ("x", None),
        ("accumulated", None),
    ]
    assert y.grad is None


# Registration and removal while hooks run


def test_hook_that_removes_itself_does_not_stop_the_others(lib):
    x = leaf(lib, 1.0)
    log = []
    handles = []

    def once(grad):
        log.append("once")
        handles[0].remove()

    handles.append(x.register_hook(once))
    x.register_hook(taking(log, "always"))
    for _ in range(2):
        (x * 2).sum().backward()
    assert log == ["once", "always", "always"]


def test_hook_removed_by_an_earlier_one_still_runs_this_time(lib):
    x = leaf(lib, 1.0)
    log = []
    x.register_hook(lambda grad: (log.append("first"), later.remove())[1])
    later = x.register_hook(taking(log, "later"))
    for _ in range(2):
        (x * 2).sum().backward()
    assert log == ["first", "later", "first"]


def test_hook_added_by_a_hook_starts_next_time(lib):
    x = leaf(lib, 1.0)
    log = []

    def adds(grad):
        log.append("adds")
        if len(log) == 1:
            x.register_hook(taking(log, "added"))

    x.register_hook(adds)
    (x * 2).sum().backward()
    assert log == ["adds"]
    (x * 2).sum().backward()
    assert log == ["adds", "adds", "added"]


def test_removed_hook_does_not_run(lib):
    x = leaf(lib, 1.0)
    log = []
    handle = x.register_hook(taking(log, "hook"))
    handle.remove()
    handle.remove()
    with x.register_hook(taking(log, "inside")):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert log == ["inside"]


def test_hook_registered_after_backward_never_runs(lib):
    x = leaf(lib, 1.0)
    log = []
    y = x * 2
    y.sum().backward()
    y.register_hook(taking(log, "late"))
    assert log == []


# In-place operations move the tensor, not the hook


def test_hook_stays_with_the_old_version_of_the_tensor(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    log = []
    y.register_hook(lambda grad: log.append(("old", grad.item())))
    y.mul_(5)
    y.register_hook(lambda grad: log.append(("new", grad.item())))
    (y * 3).sum().backward()
    assert log == [("new", 3.0), ("old", 15.0)]
    assert x.grad.tolist() == [30.0]


def test_hook_stays_with_the_old_version_of_a_view():
    x = leaf(convcore, 1.0, 2.0)
    y = x * 2
    first = y[:1]
    log = []
    first.register_hook(taking(log, "old"))
    y.mul_(5)
    first.register_hook(taking(log, "new"))
    first.sum().backward()
    assert log == ["new"]
    assert x.grad.tolist() == [10.0, 0.0]


# The mode in which hooks run


@pytest.mark.parametrize("create_graph", [False, True])
def test_hook_runs_without_grad_unless_a_graph_is_made(lib, create_graph):
    x = leaf(lib, 2.0)
    modes = []

    def hook(grad):
        modes.append((lib.is_grad_enabled(), (x * 2).requires_grad, grad.requires_grad))

    x.register_hook(hook)
    lib.autograd.grad((x * x).sum(), x, create_graph=create_graph)
    assert modes == [(create_graph,) * 3]
    assert lib.is_grad_enabled()


def test_hook_may_ask_for_grad(lib):
    x = leaf(lib, 2.0)
    found = []

    def hook(grad):
        with lib.enable_grad():
            z = leaf(lib, 5.0)
            found.append(lib.autograd.grad((z * z).sum(), z)[0].item())

    x.register_hook(hook)
    (x * 3).sum().backward()
    assert found == [10.0]
    assert x.grad.tolist() == [3.0]


def test_hook_is_part_of_the_graph_that_it_runs_in(lib):
    x = leaf(lib, 2.0)
    y = x * 1
    y.register_hook(lambda grad: grad * x)
    (first,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    assert first.tolist() == [8.0]  # 2 y x
    (second,) = lib.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0]  # 2 y of the hook's x, and 2 x of y, times x by the hook


def test_exception_in_a_hook_comes_out_unchanged(lib):
    class Mine(Exception):
        pass

    x = leaf(lib, 1.0)

    def fails(grad):
        raise Mine("three")

    x.register_hook(fails)
    with pytest.raises(Mine, match=r"^three$"):
        (x * 2).sum().backward()
    assert lib.is_grad_enabled()
    assert x.grad is None


# retain_grad and .grad


def test_retained_grad_is_that_of_a_tensor_that_is_no_leaf(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    assert x.grad.tolist() == [6.0]


def test_retained_grad_sees_all_tensor_hooks(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    y.retain_grad()
    y.register_hook(lambda grad: grad + 1)
    y.sum().backward()
    assert y.grad.tolist() == [11.0]


def test_retained_grad_does_not_see_node_pre_hooks(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.sum().backward()
    assert y.grad.tolist() == [1.0]
    assert x.grad.tolist() == [20.0]


def test_retain_grad_does_nothing_to_leaves(lib):
    x = leaf(lib, 1.0)
    x.retain_grad()
    assert not x.retains_grad
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_retained_grad_moves_to_the_new_version(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(10)
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0]
    assert x.grad.tolist() == [60.0]


def test_retained_grad_moves_to_the_new_version_of_a_view(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    first = y[:1]
    first.retain_grad()
    y.mul_(10)
    (first * 3).sum().backward()
    assert first.grad.tolist() == [3.0]
    assert x.grad.tolist() == [60.0, 0.0]


def test_retained_grad_accumulates(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.retain_grad()
    for factor in (3, 4):
        (y * factor).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [7.0]


def test_retain_grad_needs_a_tensor_that_requires_grad(lib):
    with pytest.raises(RuntimeError) as error:
        lib.ones(1).retain_grad()
    assert str(error.value) == "can't retain_grad on Tensor that has requires_grad=False"


def test_retained_grad_is_memory_of_its_own(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x + 1
    y.retain_grad()
    given = lib.ones(2)
    y.backward(given)
    pointers = {given.data_ptr(), y.grad.data_ptr(), x.grad.data_ptr()}
    assert len(pointers) == 3


def test_grad_of_a_tensor_that_is_no_leaf_warns(lib):
    y = leaf(lib, 1.0) * 2
    with pytest.warns(
        UserWarning, match=r"The \.grad attribute of a Tensor that is not a leaf Tensor is being"
    ):
        assert y.grad is None


def test_grad_of_leaves_and_retaining_tensors_does_not_warn(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.grad is None
        assert y.grad is None
        assert y.detach().grad is None


# register_post_accumulate_grad_hook


def test_post_accumulate_hook_runs_after_grad_is_set(lib):
    x = leaf(lib, 1.0)
    log = []
    x.register_hook(taking(log, "hook"))
    x.register_post_accumulate_grad_hook(lambda x: log.append(x.grad.tolist()))
    for factor in (2, 3):
        (x * factor).sum().backward()
    assert log == ["hook", [2.0], "hook", [5.0]]


def test_post_accumulate_hook_may_step_and_clear(lib):
    x = leaf(lib, 1.0)

    def step(x):
        with lib.no_grad():
            x.sub_(x.grad * 0.5)
        x.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.tolist() == [0.0]
    assert x.grad is None


def test_post_accumulate_hook_does_not_run_under_grad(lib):
    x = leaf(lib, 1.0)
    log = []
    x.register_post_accumulate_grad_hook(lambda x: log.append("ran"))
    lib.autograd.grad((x * 2).sum(), x)
    assert log == []


def test_post_accumulate_hook_can_be_removed(lib):
    x = leaf(lib, 1.0)
    log = []
    handle = x.register_post_accumulate_grad_hook(lambda x: log.append("ran"))
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert log == ["ran"]


def test_post_accumulate_hook_returns_none(lib):
    x = leaf(lib, 1.0)
    x.register_post_accumulate_grad_hook(lambda x: x.grad)
    with pytest.raises(RuntimeError) as error:
        (x * 2).sum().backward()
    assert str(error.value) == "Tensor post accumulate grad hooks should return None."


def test_post_accumulate_hook_is_for_leaves(lib):
    with pytest.raises(RuntimeError) as error:
        (leaf(lib, 1.0) * 2).register_post_accumulate_grad_hook(print)
    assert str(error.value) == (
        "post accumulate grad hooks cannot be registered on non-leaf tensors"
    )
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't"):
        lib.ones(1).register_post_accumulate_grad_hook(print)


# Copies


def test_deepcopy_of_a_leaf_drops_its_hooks(lib):
    x = leaf(lib, 1.0)
    log = []
    x.register_hook(taking(log, "hook"))
    x.register_post_accumulate_grad_hook(lambda x: log.append("accumulated"))
    (x * 3).sum().backward()
    log.clear()
    other = copy.deepcopy(x)
    assert other.grad.tolist() == [3.0]
    assert other.requires_grad
    (other * 2).sum().backward()
    assert log == []
    assert other.grad.tolist() == [5.0]
    assert x.grad.tolist() == [3.0]


def _three(grad):
    return grad * 3


def test_pickling_drops_hooks_and_says_so(lib):
    x = leaf(lib, 1.0)
    x.register_hook(_three)
    with pytest.warns(UserWarning, match=r"backward hook .*_three.* on tensor will not be serial"):
        data = pickle.dumps(x)
    other = pickle.loads(data)
    (other * 2).sum().backward()
    assert other.grad.tolist() == [2.0]


def test_pickling_drops_unserializable_hooks_in_silence(lib):
    hooks = importlib.import_module(f"{lib.__name__}.utils.hooks")
    x = leaf(lib, 1.0)
    x.register_hook(hooks.unserializable_hook(lambda grad: grad))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(x)).tolist() == [1.0]


def test_deepcopy_is_for_leaves(lib):
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf(lib, 1.0) * 2)


# Lifetimes


def test_hooks_of_a_leaf_live_with_the_leaf(lib):
    x = leaf(lib, 1.0)
    log = []
    x.register_hook(taking(log, "hook"))
    for _ in range(2):
        y = x * 2
        y.sum().backward()
        del y
        gc.collect()
    assert log == ["hook", "hook"]


def test_hooks_of_a_graph_live_with_the_graph(lib):
    x = leaf(lib, 1.0)
    log = []
    y = x * 2
    y.register_hook(taking(log, "hook"))
    z = y * 3
    del y
    gc.collect()
    z.sum().backward()
    assert log == ["hook"]


def test_hook_that_refers_to_its_own_graph_is_collected(lib):
    class Marker:
        pass

    marker = Marker()
    alive = weakref.ref(marker)
    y = leaf(lib, 1.0) * 2

    def hook(grad, node=y.grad_fn, marker=marker):
        pass

    y.register_hook(hook)
    del marker, y, hook
    gc.collect()
    assert alive() is None


def test_hook_that_refers_to_its_own_leaf_is_collected():
    x = leaf(convcore, 1.0)
    alive = weakref.ref(x)
    x.register_hook(lambda grad, x=x: None)
    del x
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("backward", [False, True])
def test_hooks_keep_nothing_alive_without_the_collector(backward):
    gc.collect()
    gc.disable()
    try:
        x = leaf(convcore, 1.0)
        y = x * x
        y.register_hook(lambda grad: grad * 2)
        y.retain_grad()
        x.register_hook(lambda grad: None)
        y.grad_fn.register_hook(lambda *grads: None)
        alive = [weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)]
        if backward:
            y.sum().backward()
        del x, y
        assert [reference() for reference in alive] == [None] * 3
    finally:
        gc.enable()


# A gradient belongs to nobody else


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward\\(\\) with create_graph=True")
def test_first_gradients_are_memory_of_their_own(lib, create_graph):
    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    given = lib.ones(2)
    (a + b).backward(given, create_graph=create_graph)
    assert len({t.data_ptr() for t in (given, a.grad, b.grad)}) == 3
    a.grad.detach().mul_(100)
    assert given.tolist() == b.grad.tolist() == [1.0, 1.0]
    a.grad = b.grad = None


def test_what_a_hook_keeps_is_not_written_to_later(lib):
    x = leaf(lib, 1.0, 2.0)
    kept = []
    y = x * 2
    z = y * 3 + y * 4
    y.register_hook(kept.append)
    x.register_hook(kept.append)
    z.backward(lib.ones(2))
    (x * 10).sum().backward()
    assert [grad.tolist() for grad in kept[:2]] == [[7.0, 7.0], [14.0, 14.0]]
    assert x.grad.tolist() == [24.0, 24.0]


def test_fresh_gradients_of_one_tensor_are_told_apart():
    """One new tensor as the gradient of three inputs, two of them the same."""
    x, y = leaf(convcore, 1.0), leaf(convcore, 1.0)
    xx, yy = x * 1, y * 1
    out = convcore.ones(1)

    def backward(needs, grad):
        new = grad * 2
        return new, new, new

    record("ThreeBackward0", (xx, xx, yy), out, backward)
    out.backward()
    assert x.grad.tolist() == [4.0]
    assert y.grad.tolist() == [2.0]


@pytest.mark.parametrize("place", range(3))
def test_fresh_gradient_of_three_inputs_is_nobodys_own(place):
    """What is added to the gradient of one does not reach the others'."""
    xs = [leaf(convcore, 1.0) for _ in range(3)]
    inputs = [x * 1 for x in xs]
    more = inputs[place] * 5
    out = convcore.ones(1)
    record("ThreeBackward0", tuple(inputs), out, lambda needs, grad: (grad * 2,) * 3)
    (out + more).backward()
    assert [x.grad.item() for x in xs] == [7.0 if n == place else 2.0 for n in range(3)]


def test_accumulated_grad_is_the_same_tensor(lib):
    x = leaf(lib, 1.0)
    (x * 2).sum().backward()
    kept = x.grad
    (x * 3).sum().backward()
    assert x.grad is kept or x.grad.data_ptr() == kept.data_ptr()
    assert kept.tolist() == [5.0]
    x.grad = lib.tensor([100.0])
    (x * 3).sum().backward()
    assert kept.tolist() == [5.0]
    assert x.grad.tolist() == [103.0]


def test_grad_of_one_memory_location_for_many_elements_is_refused(lib):
    x = leaf(lib, 1.0, 2.0)
    x.grad = lib.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        (x * 2).sum().backward()


def test_grad_has_the_memory_format_of_its_tensor(lib):
    x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last).requires_grad_()
    (x * lib.ones(2, 3, 4, 5)).sum().backward()
    assert x.grad.stride() == x.stride()
    x = lib.ones(4, 3).t().requires_grad_()
    x.sum().backward()
    assert x.grad.stride() == x.stride() == (1, 3)
    rows = np.zeros((3, 8), np.float32)[:, :4]
    x = lib.from_numpy(rows).requires_grad_()
    x.sum().backward()
    assert x.grad.stride() == (4, 1)


# register_multi_grad_hook


def graph_of(lib):
    return importlib.import_module(f"{lib.__name__}.autograd.graph")


def test_multi_grad_hook_is_called_once_with_all_gradients(lib):
    a, b, c = leaf(lib, 1.0), leaf(lib, 2.0), leaf(lib, 3.0)
    seen = []
    handle = graph_of(lib).register_multi_grad_hook(
        (a, b, c), lambda grads: seen.append([None if g is None else g.item() for g in grads])
    )
    (a * b * c).sum().backward()
    assert seen == [[6.0, 3.0, 2.0]]
    (a * b).sum().backward()
    assert seen[1:] == [[2.0, 1.0, None]]
    (a + b + c).sum().backward(inputs=[c])
    assert seen[2:] == [[None, None, 1.0]]
    handle.remove()
    (a * b * c).sum().backward()
    assert len(seen) == 3


def test_multi_grad_hook_is_called_when_the_last_gradient_is_there(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    z = y * 3
    log = []
    for name, tensor in (("x", x), ("y", y), ("z", z)):
        tensor.register_hook(taking(log, name))
    graph_of(lib).register_multi_grad_hook([z, y], lambda grads: log.append("all of z, y"))
    z.sum().backward()
    assert log == ["z", "y", "all of z, y", "x"]


def test_multi_grad_hook_counts_each_pass_anew(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    seen = []
    graph_of(lib).register_multi_grad_hook((a, b), lambda grads: seen.append(len(grads)))
    y = (a * b).sum()
    for _ in range(3):
        y.backward(retain_graph=True)
    assert seen == [2, 2, 2]


def test_multi_grad_hook_forgets_a_pass_that_failed(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    seen = []
    graph_of(lib).register_multi_grad_hook((a, b), lambda grads: seen.append(len(grads)))

    def fail(grad):
        raise ZeroDivisionError

    y = b * 1
    y.register_hook(fail)
    with pytest.raises(ZeroDivisionError):
        (y + a * 1).sum().backward()  # a's gradient is there before the error
    assert not seen
    (a * b).sum().backward()
    assert seen == [2]


def test_multi_grad_hook_counts_each_thread_apart(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    seen = []
    graph_of(lib).register_multi_grad_hook(
        (a, b), lambda grads: seen.append([None if g is None else g.item() for g in grads])
    )
    inside, done = threading.Event(), threading.Event()

    def stop(grad):
        inside.set()
        assert done.wait(10)

    def slow():  # waits between the gradients of a and of b
        y = b * 10
        y.register_hook(stop)
        (y + a * 1).sum().backward()

    worker = threading.Thread(target=slow)
    worker.start()
    assert inside.wait(10)
    (a * 3 + b * 4).sum().backward()
    assert seen == [[3.0, 4.0]]
    done.set()
    worker.join()
    assert seen == [[3.0, 4.0], [1.0, 10.0]]


def test_multi_grad_hook_of_any_is_called_at_the_first(lib):
    a, b = leaf(lib, 2.0), leaf(lib, 3.0)
    seen = []
    handle = graph_of(lib).register_multi_grad_hook(
        (a, b), lambda grad: seen.append(grad.item()), mode="any"
    )
    y = (a * b).sum()
    y.backward(retain_graph=True)
    assert seen == [3.0]
    y.backward()
    assert seen == [3.0, 3.0]
    with handle:
        pass
    (a * b).sum().backward()
    assert seen == [3.0, 3.0]


def test_multi_grad_hook_has_two_modes(lib):
    with pytest.raises(ValueError, match=re.escape("Expects mode to be one of ('all', 'any') but")):
        graph_of(lib).register_multi_grad_hook((leaf(lib, 1.0),), print, mode="some")


def test_multi_grad_hook_leaks_nothing():
    gc.collect()
    gc.disable()
    try:
        a, b = leaf(convcore, 1.0), leaf(convcore, 2.0)
        y = a * b
        alive = [weakref.ref(t) for t in (a, b, y)]
        graph_of(convcore).register_multi_grad_hook((a, b, y), lambda grads: None)
        y.sum().backward()
        del a, b, y
        assert [reference() for reference in alive] == [None] * 3
    finally:
        gc.enable()
