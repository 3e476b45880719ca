"""What operations save: versions, freeing, and hooks.  Tests with `lib` run on PyTorch too."""

import gc
import importlib
import re
import threading
import weakref

import numpy as np
import pytest

import convcore
from convcore.autograd import graph
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record


def leaf(lib, *values):
    return lib.tensor(values, requires_grad=True)


def saved_hooks(lib, pack, unpack):
    graph = importlib.import_module(f"{lib.__name__}.autograd.graph")
    return graph.saved_tensors_hooks(pack, unpack)


def same(value):
    return value


# Versions


def test_version_counts_changes_in_place(lib):
    x = lib.ones(2)
    view, detached, data = x.view(2, 1), x.detach(), x.data
    assert x._version == 0
    x.add_(1)
    view.mul_(2)
    detached.mul_(2)
    assert [t._version for t in (x, view, detached)] == [3, 3, 3]
    data.mul_(2)
    assert (x._version, data._version) == (3, 1)
    assert x.tolist() == [16.0, 16.0]


def test_changed_output_stops_backward(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x.exp()
    with lib.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    assert (
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [2]], which is output 0 of Exp, is at version 1; expected "
        "version 0 instead."
    ) in str(error.value)


def test_changed_leaf_stops_backward(lib):
    x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    y = x * w
    with lib.no_grad():
        w.mul_(2)
    with pytest.raises(
        RuntimeError,
        match=re.escape("[torch.FloatTensor [2]] is at version 1; expected version 0 instead"),
    ):
        y.sum().backward()


def test_changed_input_is_named_after_what_made_it(lib):
    x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0) * 1
    y = x * w
    w.exp_()
    with pytest.raises(RuntimeError, match="which is output 0 of Exp, is at version 1; expected"):
        y.sum().backward()


def test_changed_output_has_its_number():
    """PyTorch numbers the outputs that another node saved 0, all of them."""

    class Two(convcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, grad, other):
            return grad * 2 + other * 3

    one, other = Two.apply(leaf(convcore, 1.0))
    y = one * other
    with convcore.no_grad():
        other.add_(1)
    with pytest.raises(RuntimeError, match="which is output 1 of Two, is at version 1; expected"):
        y.sum().backward()


def test_changed_output_of_a_function_is_named_after_it(lib):
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    y = Twice.apply(leaf(lib, 1.0))
    y.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Twice, is at version 1; expected"):
        y.sum().backward()


def test_change_of_a_view_is_a_change_of_what_was_saved(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 1
    z = y * y
    y.view(2, 1).mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_change_of_the_base_is_a_change_of_a_saved_view(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 1
    view = y.view(2, 1)
    z = view * view
    y.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_change_of_what_was_not_saved_does_not_matter(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    z = y + 1
    z.mul_(3)
    y.mul_(5)
    (z + y).sum().backward()
    assert x.grad.tolist() == [16.0, 16.0]


def test_change_before_the_save_does_not_matter(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 1
    y.mul_(3)
    (y * y).sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


def test_inplace_operation_may_save_what_it_overwrites(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * 1
    y.mul_(w)
    y.sum().backward()
    assert x.grad.tolist() == [3.0]
    assert w.grad.tolist() == [2.0]


def test_inplace_operation_may_not_overwrite_its_other_operand(lib):
    y = leaf(lib, 2.0) * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# Freeing


def test_second_backward_says_that_the_graph_is_freed(lib):
    x = leaf(lib, 1.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert str(error.value).startswith(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed)."
    )
    assert "Specify retain_graph=True" in str(error.value)


def test_second_backward_fails_where_only_a_number_was_saved(lib):
    y = leaf(lib, 1.0) * 2
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_second_backward_works_where_nothing_was_saved(lib):
    x = leaf(lib, 1.0)
    y = x + 2
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0]


def test_retained_graph_can_be_run_again(lib):
    x = leaf(lib, 3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [18.0]
    with pytest.raises(RuntimeError, match="Trying to backward"):
        y.backward()


def test_second_use_of_a_freed_part_says_so(lib):
    x = leaf(lib, 3.0)
    y = x * x
    (y * 2).backward()
    with pytest.raises(RuntimeError, match="Trying to backward"):
        (y * 3).backward()


def test_backward_frees_what_was_saved_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        x, w = leaf(convcore, 1.0), leaf(convcore, 2.0)
        inner = x * 2
        alive = weakref.ref(inner)
        y = inner * w
        del inner
        assert alive() is not None
        y.backward()
        assert alive() is None
    finally:
        gc.enable()


def test_saved_output_holds_its_node_in_no_cycle():
    gc.collect()
    gc.disable()
    try:
        x = leaf(convcore, 1.0)
        y = convcore.ones(1)
        record("SquareBackward0", (x,), y, lambda needs, grad, out: grad * out, (y,))
        alive = weakref.ref(y), weakref.ref(y.grad_fn)
        z = y * y
        del y
        assert alive[1]() is not None
        del z
        assert [reference() for reference in alive] == [None, None]
    finally:
        gc.enable()


def test_saved_tensors_of_a_node_can_be_seen():
    x, w = leaf(convcore, 1.0), leaf(convcore, 2.0)
    y = x * w
    assert [y.grad_fn._saved_self.tolist(), y.grad_fn._saved_other.tolist()] == [[1.0], [2.0]]
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_self  # noqa: B018


def test_nodes_show_what_they_saved_by_name(lib):
    x = leaf(lib, 2.0)
    mean = (lib.cat([x, x]) * 3).exp().mean()
    exp = mean.grad_fn.next_functions[0][0]
    mul = exp.next_functions[0][0]
    assert not hasattr(exp, "saved_tensors")
    assert "_saved_result" in dir(exp)
    assert exp._saved_result.shape == (2,)
    assert "_saved_other" in dir(mul)
    with pytest.raises(AttributeError):
        exp._saved_nothing  # noqa: B018


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("weight", lambda lib, x: lib.nn.functional.conv2d(x, x, stride=2)),
        ("stride", lambda lib, x: lib.nn.functional.conv2d(x, x, stride=2)),
        ("mat2", lambda lib, x: x[0, 0] @ x[0, 0]),
        ("alpha", lambda lib, x: lib.addmm(x[0, 0], x[0, 0], x[0, 0], alpha=2)),
        ("target", lambda lib, x: lib.nn.functional.mse_loss(x, x * 2)),
    ],
)
def test_nodes_show_pytorchs_names(torch, name, make):
    values = []
    for lib in (convcore, torch):
        x = lib.ones(1, 1, 2, 2, requires_grad=True)
        value = getattr(make(lib, x).grad_fn, f"_saved_{name}")
        if name == "stride":
            value = value if isinstance(value, tuple) else (value,) * 2
        values.append(value.tolist() if hasattr(value, "tolist") else value)
    assert values[0] == values[1]


def test_a_saved_tensor_may_not_be_detached_in_place(lib):
    y = leaf(lib, 2.0) * 1
    z = y * y
    y.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached"):
        z.backward()
    (leaf(lib, 3.0) * y).backward()  # detached before it is saved


# saved_tensors_hooks


def test_saved_hooks_see_each_save(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    log = []

    def pack(tensor):
        log.append(("pack", tensor.item(), tensor.requires_grad))
        return tensor.item()

    def unpack(value):
        log.append(("unpack", value))
        return lib.tensor([value])

    with saved_hooks(lib, pack, unpack):
        y = x * w
        z = x * x
    assert sorted(entry[:2] for entry in log) == [("pack", v) for v in (2.0, 2.0, 2.0, 3.0)]
    del log[:]
    y.backward()
    z.backward()
    assert sorted(log) == sorted([("unpack", v) for v in (2.0, 3.0, 2.0, 2.0)])
    assert x.grad.tolist() == [7.0]
    assert w.grad.tolist() == [2.0]


def test_saved_hooks_never_see_numbers(lib):
    x = leaf(lib, 2.0)
    log = []
    with saved_hooks(lib, log.append, same):
        y = x * 3 + 4
    y.backward()
    assert log == []
    assert x.grad.tolist() == [3.0]


def test_saved_hooks_that_are_innermost_win(lib):
    x = leaf(lib, 2.0)
    log = []

    def pack(name):
        return lambda tensor: (log.append(name), tensor)[1]

    with saved_hooks(lib, pack("outer"), same):
        with saved_hooks(lib, pack("inner"), same):
            a = x * x
        b = x * x
    c = x * x
    assert log == ["inner"] * 2 + ["outer"] * 2
    (a + b + c).backward()
    assert x.grad.tolist() == [12.0]


def test_saved_hooks_hold_for_backward_of_graphs_made_inside_only(lib):
    x = leaf(lib, 2.0)
    y = x * x
    log = []
    with saved_hooks(lib, lambda t: log.append("pack"), same):
        y.backward()
    assert log == []
    assert x.grad.tolist() == [4.0]


def test_saved_hooks_keep_their_unpack_after_the_block(lib):
    x = leaf(lib, 2.0)
    with saved_hooks(lib, lambda t: t * 10, same):
        y = x * x
    with saved_hooks(lib, same, lambda t: 1 / 0):
        y.backward()
    assert x.grad.tolist() == [40.0]


def test_pack_hook_may_not_change_its_input(lib):
    x = leaf(lib, 2.0) * 1
    with saved_hooks(lib, lambda t: t.mul_(2), same), pytest.raises(RuntimeError) as error:
        x * x
    assert str(error.value).startswith("A saved tensor pack hook is modifying its input in place.")


def test_unpack_hook_returns_a_tensor(lib):
    x = leaf(lib, 2.0)
    with saved_hooks(lib, same, lambda t: 5):
        y = x * x
    with pytest.raises(TypeError) as error:
        y.backward()
    assert str(error.value).startswith(
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type"
    )


def test_exceptions_of_saved_hooks_come_out_unchanged(lib):
    x = leaf(lib, 2.0)
    with saved_hooks(lib, lambda t: {}["pack"], same), pytest.raises(KeyError, match="pack"):
        x * x
    with saved_hooks(lib, same, lambda t: {}["unpack"]):
        y = x * x
    with pytest.raises(KeyError, match="unpack"):
        y.backward()
    y = x * x  # the hooks are gone although the block was left by an exception
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_saved_outputs_go_through_the_hooks_too(lib):
    x = leaf(lib, 0.0)
    with saved_hooks(lib, lambda t: t.detach() * 10, same):
        y = x.exp()
    y.backward()
    assert x.grad.tolist() == [10.0]


def test_saved_hooks_let_double_backward_through(lib):
    x = leaf(lib, 2.0)
    with saved_hooks(lib, lambda t: t.detach().tolist(), lib.tensor):
        y = x * x * x
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x, create_graph=True)
    (third,) = lib.autograd.grad(second, x)
    assert [t.tolist() for t in (first, second, third)] == [[12.0], [12.0], [6.0]]


def test_saved_hooks_let_double_backward_through_an_output(lib):
    x = leaf(lib, 0.0)
    with saved_hooks(lib, lambda t: t.detach().clone(), same):
        y = x.exp()
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    assert [t.tolist() for t in (first, second)] == [[1.0], [1.0]]


def test_saved_hooks_of_inplace_operations_see_the_old_value(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    with saved_hooks(lib, same, same):
        y = x * 1
        y.mul_(w)
    y.backward()
    assert x.grad.tolist() == [3.0]
    assert w.grad.tolist() == [2.0]


def test_saved_hooks_may_write_to_disk(tmp_path):
    x = convcore.from_numpy(np.arange(6.0).reshape(2, 3)).requires_grad_()
    paths = []

    def pack(tensor):
        path = tmp_path / f"{len(paths)}.npy"
        np.save(path, tensor.numpy(force=True))
        paths.append(path)
        return path

    with saved_hooks(convcore, pack, lambda path: convcore.from_numpy(np.load(path))):
        y = (x * x * x).sum()
    assert len(paths) == 4
    y.backward()
    assert x.grad.tolist() == [[0.0, 3.0, 12.0], [27.0, 48.0, 75.0]]


def test_saved_hooks_see_what_functions_save(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    x = leaf(lib, 2.0)
    with saved_hooks(lib, lambda t: t * 10, same):
        y = Square.apply(x)
    y.backward()
    assert x.grad.tolist() == [40.0]


def test_saved_hooks_belong_to_their_thread(lib):
    x = leaf(lib, 2.0)
    log = []

    def other():
        log.append((x * x).item())

    with saved_hooks(lib, lambda t: log.append("pack"), same):
        worker = threading.Thread(target=other)
        worker.start()
        worker.join()
    assert log == [4.0]


def test_saved_leaf_leads_to_the_leaf_although_it_was_packed():
    """Second gradients of a leaf that a Function saved, but did not get as an input."""
    w = leaf(convcore, 3.0)

    class Scale(convcore.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(w)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf(convcore, 2.0)
    with saved_hooks(convcore, lambda t: t.detach().clone(), same):
        y = Scale.apply(x)
    (first,) = convcore.autograd.grad(y, x, create_graph=True)
    gc.collect()
    first.backward()
    assert w.grad.tolist() == [1.0]


def test_one_saved_tensor_has_hooks_of_its_own(torch):
    def run(lib):
        x, seen = leaf(lib, 3.0), []
        y = x.pow(2)
        raw = y.grad_fn._raw_saved_self
        raw.register_hooks(lambda t: seen.append("pack") or 2 * t, lambda t: seen.append(t) or t)
        out = [type(raw).__name__, y.grad_fn._saved_self.tolist()]
        y.backward()
        z = x.exp()
        z.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
        z.backward()
        return [*out, len(seen), seen[0], round(x.grad.item(), 3)]

    assert run(convcore) == run(torch)


RAW = {
    "twice": lambda raw, y: (raw.register_hooks(same, same), raw.register_hooks(same, same)),
    "freed": lambda raw, y: (y.backward(), raw.register_hooks(same, same)),
    "in place": lambda raw, y: raw.register_hooks(lambda t: t.mul_(2), same),
}


@pytest.mark.parametrize("use", RAW.values(), ids=RAW)
def test_hooks_of_one_saved_tensor_are_refused(lib, use):
    y = leaf(lib, 3.0).pow(2)
    with pytest.raises(RuntimeError, match=r"already been set|been freed|modif"):
        use(y.grad_fn._raw_saved_self, y)


def test_what_is_no_saved_tensor_has_no_hooks(lib):
    y = leaf(lib, 3.0) * lib.ones(1)  # of ones no gradient is wanted, and self is not saved
    with pytest.raises(RuntimeError, match="saved tensor with value None is forbidden"):
        y.grad_fn._raw_saved_self.register_hooks(same, same)


def test_mutation_is_allowed_once(lib):
    allowed = lib.autograd.graph.allow_mutation_on_saved_tensors
    for _ in range(2):
        with allowed(), pytest.raises(RuntimeError, match="contexts cannot be nested"), allowed():
            pass


def test_zeros_of_an_edge_are_refused(lib):
    x, y = (lib.ones(2, requires_grad=True).clone() for _ in range(2))
    inputs = x, lib.autograd.graph.get_gradient_edge(y)
    out = x.clone().sum()
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when"):
        lib.autograd.grad(out, inputs, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.reshape(-1)[:1],
        lambda t: convcore.cat([t, t]),
        lambda t: t.double() if t.is_floating_point() else t.float(),
    ],
)
@pytest.mark.parametrize("pool", [False, True])
def test_what_an_unpack_hook_returns_is_like_the_saved_tensor(change, pool):
    x = convcore.rand(2, 3, 4, 4, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, change):
        y = convcore.nn.functional.max_pool2d(x, 2) if pool else x * x
    with pytest.raises(RuntimeError, match="unpack_hook must return the shape and dtype of the"):
        y.sum().backward()


@pytest.mark.parametrize("value", [0, 3, 4, 100, 254, 255])
@pytest.mark.parametrize("padding", [0, 1])
def test_kernels_write_nothing_outside_whatever_an_unpack_hook_returns(value, padding):
    x = convcore.rand(2, 3, 4, 4, requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: convcore.full_like(t, value)):
        y = convcore.nn.functional.max_pool2d(x, 2, 1, padding)
    y.sum().backward()
    assert x.grad.sum() <= y.numel() and x.grad.min() >= 0


def _unbalanced(call, n_calls):
    """Run a pass in whose unpack hook a context is entered or left too often."""

    def unpack(t):
        for _ in range(n_calls):
            call(context)
        return t

    context = graph.saved_tensors_hooks(lambda t: t, unpack)
    x = convcore.rand(3, requires_grad=True)
    with context:
        x.sin().sum().backward()
    return x


@pytest.mark.parametrize("n_calls", [1, 2])
def test_hooks_that_are_left_within_a_pass_give_one_error(n_calls):
    with pytest.raises(RuntimeError, match="the context was not entered, or it has ended"):
        _unbalanced(lambda context: context.__exit__(), n_calls)
    _check_that_no_hooks_are_left()


@pytest.mark.parametrize("n_calls", [1, 2])
def test_hooks_that_are_entered_within_a_pass_end_with_it(n_calls):
    assert _unbalanced(lambda context: context.__enter__(), n_calls).grad is not None
    _check_that_no_hooks_are_left()


def _check_that_no_hooks_are_left():
    assert mode.saved_hooks == ()
    x = convcore.rand(3, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == (2 * x).tolist()
