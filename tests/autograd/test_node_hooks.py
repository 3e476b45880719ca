"""Hooks on nodes.  What they see is the same in PyTorch: each test with `lib` runs on both."""

import gc
import threading
import weakref

import pytest

import convcore


def leaf(lib, *values):
    return lib.tensor(values, requires_grad=True)


def plain(grads):
    return tuple(None if grad is None else grad.tolist() for grad in grads)


def accumulator(x):
    return (x * 1).grad_fn.next_functions[0][0]


# Post-hooks


def test_post_hook_sees_what_came_and_what_goes(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * w
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append((plain(gi), plain(go))))
    (y * 5).sum().backward()
    assert seen == [(([15.0], [10.0]), ([5.0],))]


def test_post_hook_sees_none_for_what_needs_no_gradient(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    z = x * lib.ones(1)
    seen = []
    for node in (y.grad_fn, z.grad_fn):
        node.register_hook(lambda gi, go: seen.append((plain(gi), plain(go))))
    y.backward()
    z.backward()
    assert seen == [(([3.0], None), ([1.0],)), (([1.0], None), ([1.0],))]


def test_post_hooks_are_chained_and_replace_what_goes(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    seen = []
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.grad_fn.register_hook(lambda gi, go: seen.append(plain(gi)))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, gi[1]))
    y.backward()
    assert seen == [([30.0], None)]
    assert x.grad.tolist() == [31.0]


def test_post_hook_may_stop_a_gradient(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    y.grad_fn.register_hook(lambda gi, go: (None, None))
    y.backward()
    assert x.grad is None


def test_post_hook_returns_as_many_as_it_got(lib):
    y = leaf(lib, 2.0) * 3

    def short(gi, go):
        return (gi[0],)

    y.grad_fn.register_hook(short)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert str(error.value) == (
        "hook 'short' has returned an incorrect number of values (got 1, but expected 2)"
    )


def test_post_hook_returns_a_tuple(lib):
    y = leaf(lib, 2.0) * 3
    y.grad_fn.register_hook(lambda gi, go: gi[0])
    with pytest.raises(TypeError) as error:
        y.backward()
    assert str(error.value) == "expected tuple, but hook returned 'Tensor'"


def test_post_hook_may_not_change_the_size(lib):
    y = leaf(lib, 2.0) * 3
    y.grad_fn.register_hook(lambda gi, go: (lib.ones(4), None))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        y.backward()


def test_post_hook_may_not_replace_none(lib):
    y = leaf(lib, 2.0) * 3
    y.grad_fn.register_hook(lambda gi, go: (gi[0], lib.ones(1)))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        y.backward()


# Pre-hooks


def test_pre_hooks_are_chained_and_replace_what_comes(lib):
    x = leaf(lib, 2.0)
    y = x * 3
    seen = []

    def tenfold(grads):
        return (grads[0] * 10,)

    y.grad_fn.register_prehook(tenfold)
    y.grad_fn.register_prehook(lambda grads: seen.append(plain(grads)))
    y.backward()
    assert seen == [([10.0],)]
    assert x.grad.tolist() == [30.0]


def test_pre_hook_returns_as_many_as_it_got(lib):
    y = leaf(lib, 2.0) * 3

    def long(grads):
        return (grads[0], grads[0])

    y.grad_fn.register_prehook(long)
    with pytest.raises(RuntimeError) as error:
        y.backward()
    assert str(error.value) == (
        "hook 'long' has returned an incorrect number of values (got 2, but expected 1)"
    )


def test_pre_hook_sees_every_output(lib):
    x = leaf(lib, 1.0, 2.0)
    _, b = (x * 1).chunk(2)
    seen = []
    b.grad_fn.register_prehook(lambda grads: seen.append(plain(grads)))
    b.sum().backward()
    assert seen == [(None, [1.0])]


def test_removed_node_hooks_do_not_run(lib):
    y = leaf(lib, 2.0) * 3
    log = []
    before = y.grad_fn.register_prehook(lambda grads: log.append("before"))
    after = y.grad_fn.register_hook(lambda gi, go: log.append("after"))
    y.backward(retain_graph=True)
    before.remove()
    y.backward(retain_graph=True)
    after.remove()
    y.backward()
    assert log == ["before", "after", "after"]


# Order


def test_order_at_a_node_is_that_of_the_kinds(lib):
    """Whatever the order of registration."""
    x = leaf(lib, 1.0)
    y = x * 2
    log = []
    y.grad_fn.register_hook(lambda gi, go: log.append("after"))
    y.grad_fn.register_prehook(lambda grads: log.append(f"before {grads[0].item()}"))
    y.retain_grad()

    def double(grad):
        log.append(f"tensor {grad.item()}")
        return grad * 2

    y.register_hook(double)
    y.backward()
    assert log == ["tensor 1.0", "before 2.0", "after"]
    assert y.grad.tolist() == [2.0]


def test_order_at_a_leaf_is_that_of_the_kinds(lib):
    x = leaf(lib, 1.0)
    node = accumulator(x)
    log = []
    node.register_hook(lambda gi, go: log.append(("after", plain(gi), plain(go))))
    x.register_post_accumulate_grad_hook(lambda x: log.append(("accumulated", x.grad.tolist())))
    node.register_prehook(lambda grads: log.append(("before", plain(grads), x.grad)))
    x.register_hook(lambda grad: log.append(("tensor", grad.tolist())))
    (x * 3).backward()
    assert log == [
        ("tensor", [3.0]),
        ("before", ([3.0],), None),
        ("accumulated", [3.0]),
        ("after", (), ([3.0],)),
    ]


def test_pre_hook_of_a_leaf_changes_what_is_accumulated(lib):
    x = leaf(lib, 1.0)
    node = accumulator(x)
    node.register_prehook(lambda grads: (grads[0] * 10,))
    (x * 3).backward()
    assert x.grad.tolist() == [30.0]


def test_leaf_node_hooks_do_not_run_under_grad(lib):
    x = leaf(lib, 1.0)
    node = accumulator(x)
    log = []
    node.register_prehook(lambda grads: log.append("before"))
    node.register_hook(lambda gi, go: log.append("after"))
    assert lib.autograd.grad(x * 3, x)[0].tolist() == [3.0]
    assert log == []


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_leaves_of_one_node_go_in_the_order_of_its_edges(lib, order):
    class Sum(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            return a + b + c

        @staticmethod
        def backward(ctx, grad):
            return grad, grad, grad

    leaves = [leaf(lib, float(n)) for n in range(3)]
    log = []
    for n, x in enumerate(leaves):
        x.register_hook(lambda grad, n=n: log.append(n))
    Sum.apply(*[leaves[n] for n in order]).backward()
    assert log == list(order)


def test_newest_node_goes_first_and_leaves_before_all(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    log = []
    a = x * 2
    b = w * 3
    c = a * b
    d = c + a
    for name, tensor in dict(x=x, w=w, a=a, b=b, c=c, d=d).items():
        tensor.register_hook(lambda grad, name=name: log.append(name))
    d.backward()
    assert log == ["d", "c", "b", "w", "a", "x"]


def test_order_of_a_random_graph_is_pytorchs(rng, torch):
    """Sums and products of what was there before; a hook on each writes the log."""
    choices = [(int(rng.integers(3 + n)), int(rng.integers(3 + n))) for n in range(60)]
    products = rng.random(60) < 0.5
    logs = []
    for lib in (convcore, torch):
        log = []
        tensors = [leaf(lib, 1.0) for _ in range(3)]
        for (i, j), product in zip(choices, products, strict=True):
            a, b = tensors[i], tensors[j]
            tensors.append(a * b * 0.5 if product else a + b * 0.1)
        for n, tensor in enumerate(tensors):
            tensor.register_hook(lambda grad, n=n, log=log: log.append((n, grad.item())))
        total = tensors[-1]
        for tensor in tensors[-8:-1]:
            total = total + tensor
        total.backward()
        logs.append(log)
    assert [n for n, _ in logs[0]] == [n for n, _ in logs[1]]
    assert [g for _, g in logs[0]] == pytest.approx([g for _, g in logs[1]], rel=1e-4)


# Registration while the node runs


def test_hook_registered_while_its_node_runs_does_run():
    log = []
    lib = convcore

    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            nodes[0].register_hook(lambda gi, go: log.append((plain(gi), plain(go))))
            return grad * 2

    x = leaf(lib, 1.0)
    y = Double.apply(x)
    nodes = [y.grad_fn]
    y.backward()
    assert log == [(([2.0],), (None,))]


def test_node_hook_that_removes_another_one(lib):
    y = leaf(lib, 2.0) * 3
    log = []
    y.grad_fn.register_hook(lambda gi, go: (log.append("first"), later.remove())[1])
    later = y.grad_fn.register_hook(lambda gi, go: log.append("later"))
    y.backward(retain_graph=True)
    y.backward()
    assert log == ["first", "later", "first"]


def test_exception_in_a_node_hook_comes_out_unchanged(lib):
    def fails(*grads):
        raise KeyError("mine")

    for register in ("register_hook", "register_prehook"):
        y = leaf(lib, 2.0) * 3
        getattr(y.grad_fn, register)(fails)
        with pytest.raises(KeyError, match="mine"):
            y.backward()


# What a node tells


def test_node_has_a_name_and_next_functions(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * w
    z = y + 1
    assert z.grad_fn.name() == type(z.grad_fn).__name__ == "AddBackward0"
    assert y.grad_fn.name() == "MulBackward0"
    assert z.grad_fn.next_functions == ((y.grad_fn, 0), (None, 0))
    (node, number), (other, _) = y.grad_fn.next_functions
    assert node.variable is x
    assert other.variable is w
    assert number == 0
    assert type(node).__name__ == "AccumulateGrad"
    assert node.name() == "torch::autograd::AccumulateGrad"
    assert node.next_functions == ()
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")


def test_next_functions_say_which_output(lib):
    x = leaf(lib, 1.0, 2.0)
    a, b = (x * 1).chunk(2)
    assert (a * b).grad_fn.next_functions == ((a.grad_fn, 0), (b.grad_fn, 1))
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)


def test_leaf_has_one_accumulate_grad_while_it_is_in_use(lib):
    x = leaf(lib, 1.0)
    y, z = x * 2, x * 3
    assert y.grad_fn.next_functions[0][0] is z.grad_fn.next_functions[0][0]


def test_metadata_is_the_users(lib):
    y = leaf(lib, 1.0) * 2
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["note"] = 3
    assert y.grad_fn.metadata == {"note": 3}


def test_node_can_be_called(lib):
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    y = x * w
    assert plain(y.grad_fn(lib.ones(1) * 5)) == ([15.0], [10.0])
    z = x.exp()
    assert z.grad_fn(lib.ones(1)).tolist() == z.tolist()


@pytest.mark.parametrize("kind", ["register_hook", "register_prehook"])
def test_node_hooks_keep_nothing_alive_without_the_collector(kind):
    class Marker:
        pass

    gc.collect()
    gc.disable()
    try:
        marker = Marker()
        alive = weakref.ref(marker)
        y = leaf(convcore, 2.0) * 3
        getattr(y.grad_fn, kind)(lambda *grads, marker=marker: None)
        y.backward()
        del y, marker
        assert alive() is None
    finally:
        gc.enable()


def test_node_hooks_run_in_the_thread_of_backward():
    y = leaf(convcore, 2.0) * 3
    threads = []
    y.grad_fn.register_hook(lambda gi, go: threads.append(threading.current_thread()))
    worker = threading.Thread(target=y.backward)
    worker.start()
    worker.join()
    assert threads == [worker]
