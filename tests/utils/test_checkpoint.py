"""Activation checkpointing: gradients, random numbers, calls and errors; and autograd.graph."""

import importlib
import weakref
from functools import partial

import numpy as np
import pytest
from against_torch import same
from same_lines import check_error

import convcore
from convcore.autograd import graph
from convcore.utils.checkpoint import checkpoint

X = np.random.default_rng(0).standard_normal((4, 3)).astype("f4")


def k(lib):
    return importlib.import_module(f"{lib.__name__}.utils.checkpoint")


def leaf(lib):
    return lib.from_numpy(X.copy()).requires_grad_()


def check(torch, function):
    results = []
    for lib in (convcore, torch):
        lib.manual_seed(3)
        results.append(function(lib))
    for ours, theirs in zip(*results, strict=True):
        same(ours, theirs, "result", 1e-5)


@pytest.mark.parametrize("reentrant", [True, False])
def test_network_with_dropout_has_the_gradients_of_pytorchs(torch, reentrant):
    def run(lib):
        n = lib.nn
        net = n.Sequential(n.Linear(3, 5), n.Dropout(0.5), n.Tanh(), n.Linear(5, 2))
        x, calls = leaf(lib), []

        def part(x):
            calls.append(1)
            return net(x)

        y = k(lib).checkpoint(part, x, use_reentrant=reentrant)
        y.pow(2).sum().backward()
        return [y, x.grad, *[p.grad for p in net.parameters()], len(calls), lib.rand(2)]

    check(torch, run)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_are_those_without_checkpoints(reentrant):
    x, y = leaf(convcore), leaf(convcore)

    def part(x):
        return (x * x).sin(), x.exp()

    a, b = checkpoint(
        lambda x: checkpoint(part, x, use_reentrant=reentrant), x, use_reentrant=reentrant
    )
    (a * b).sum().backward()
    a, b = part(y)
    (a * b).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


@pytest.mark.parametrize("reentrant", [True, False])
def test_segments_of_a_sequence(torch, reentrant):
    def run(lib):
        net, x = lib.nn.Sequential(*[lib.nn.Linear(3, 3) for _ in range(5)]), leaf(lib)
        k(lib).checkpoint_sequential(net, 2, x, use_reentrant=reentrant).sum().backward()
        return [x.grad, *[p.grad for p in net.parameters()]]

    check(torch, run)


def test_nothing_is_kept_until_backward():
    kept = []

    def part(x):
        y = x.exp()
        kept.append(weakref.ref(y))
        return y.sin()

    y = checkpoint(part, leaf(convcore), use_reentrant=False)
    assert kept[0]() is None
    y.sum().backward()
    assert len(kept) == 2


def test_graph_can_be_kept_and_differentiated_again(torch):
    def run(lib):
        x, calls = leaf(lib), []

        def part(x):
            calls.append(1)
            return (x**3).sin()

        y = k(lib).checkpoint(part, x, use_reentrant=False).sum()
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
        count = len(calls)
        (grad,) = lib.autograd.grad(y, x, create_graph=True)
        grad.sum().backward()
        return [x.grad, grad, count]

    check(torch, run)


@pytest.mark.parametrize("early", [True, False])
def test_recomputation_stops_when_it_has_all(torch, early):
    def run(lib):
        calls = []

        def part(x):
            y = x.sin()
            calls.append("first")
            z = y * 2
            calls.append("second")
            return z

        k(lib).checkpoint(part, leaf(lib), use_reentrant=False, early_stop=early).sum().backward()
        with k(lib).set_checkpoint_early_stop(False):
            k(lib).checkpoint(part, leaf(lib), use_reentrant=False).sum().backward()
        return calls

    check(torch, run)


def test_contexts_surround_both_calls():
    seen = []

    class Noted:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *error):
            seen.append(f"end of {self.name}")

    def contexts():
        return Noted("first"), Noted("second")

    y = checkpoint(convcore.sin, leaf(convcore), use_reentrant=False, context_fn=contexts)
    y.sum().backward()
    assert seen == ["first", "end of first", "second", "end of second"]


def other_number(lib):
    calls = []

    def part(x):
        calls.append(1)
        return x.sin().cos() if len(calls) == 1 else x.sin()

    k(lib).checkpoint(part, leaf(lib), use_reentrant=False).sum().backward()


def other_shape(lib):
    calls = []

    def part(x):
        calls.append(1)
        return x.sin() if len(calls) == 1 else x[:1].sin()

    k(lib).checkpoint(part, leaf(lib), use_reentrant=False).sum().backward()


def grad_of_reentrant(lib):
    x = leaf(lib)
    lib.autograd.grad(k(lib).checkpoint(lib.sin, x, use_reentrant=True).sum(), x)


ERRORS = {
    "number": other_number,
    "shape": other_shape,
    "grad": grad_of_reentrant,
    "keyword": lambda lib: k(lib).checkpoint(lib.sin, leaf(lib), use_reentrant=True, foo=1),
    "check": lambda lib: k(lib).checkpoint(
        lib.sin, leaf(lib), use_reentrant=False, determinism_check="x"
    ),
    "debug": lambda lib: k(lib).checkpoint(lib.sin, leaf(lib), use_reentrant=True, debug=True),
    "edge": lambda lib: lib.autograd.graph.get_gradient_edge(lib.ones(1)),
}


@pytest.mark.parametrize("function", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(torch, function):
    told = []
    for lib in (convcore, torch):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            function(lib)
        told.append((caught.type.__name__, str(caught.value).split("\n\n")[0].rstrip(".\n")))
    assert told[0][0] == told[1][0]
    assert told[0][1].split("\n")[0] == told[1][1].split("\n")[0]


def test_default_warns(torch):
    for lib in (convcore, torch):
        with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
            k(lib).checkpoint(lib.sin, leaf(lib))
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
            k(lib).checkpoint(lib.sin, lib.ones(2), use_reentrant=True)


def test_edges_stand_for_tensors(torch):
    def run(lib):
        g, x = lib.autograd.graph, leaf(lib)
        y = x.sin()
        edge, z = g.get_gradient_edge(y), (y * 2).sum()
        (first,) = lib.autograd.grad(z, [edge], retain_graph=True)
        (second,) = lib.autograd.grad(edge, x, lib.ones(4, 3), retain_graph=True)
        z.backward(inputs=[g.get_gradient_edge(x)])
        return [first, second, x.grad, edge.output_nr]

    check(torch, run)
    x = leaf(convcore)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    inner = graph.GradientEdge((x * 2 + 1).grad_fn.next_functions[0][0], 0)
    with pytest.raises(RuntimeError, match="output 0 of MulBackward0 is not known: give its"):
        convcore.autograd.grad(inner, x)
    assert convcore.autograd.grad(inner, x, convcore.ones(4, 3))[0].equal(x * 0 + 2)


def by_hand(lib, y):
    node = y.grad_fn or y.view_as(y).grad_fn.next_functions[0][0]
    return lib.autograd.graph.GradientEdge(node, y.output_nr)


WAYS = {"by hand": by_hand, "of a tensor": lambda lib, y: lib.autograd.graph.get_gradient_edge(y)}
ways = pytest.mark.parametrize("edge_of", WAYS.values(), ids=WAYS)

SCALARS = {
    "sum": lambda x: x.sum(),
    "one element": lambda x: x.sum().view(1, 1).double() * 2,
    "leaf": lambda x: x,
    "second of two": lambda x: x.sum().view(1, 1).expand(2, 1).unbind()[1],
}


@ways
@pytest.mark.parametrize("function", SCALARS.values(), ids=SCALARS)
def test_an_edge_of_one_element_has_the_gradient_one(torch, function, edge_of):
    def run(lib):
        x = lib.full((1, 1), 2.0, requires_grad=True)
        edge = edge_of(lib, function(x))
        out = [*lib.autograd.grad(edge, x, retain_graph=True)]
        lib.autograd.backward([edge, function(x)])
        return [*out, x.grad]

    check(torch, run)


EDGES = {
    "not a scalar": (lambda x: x * 2, None),
    "shape": (lambda x: x * 2, (2,)),
    "shape of a leaf": (lambda x: x, (2, 2)),
    "complex": (lambda x: x.sum() * 1j, None),
}


@ways
@pytest.mark.parametrize(("function", "shape"), EDGES.values(), ids=EDGES)
def test_gradients_that_do_not_fit_an_edge_are_refused(torch, function, shape, edge_of):
    def run(lib):
        x = lib.ones(3, requires_grad=True)
        edge = edge_of(lib, function(x))
        lib.autograd.grad(edge, x, None if shape is None else lib.ones(shape))

    check_error(torch, run)


def test_selective_checkpointing_says_what_to_do_instead():
    kind = convcore.utils.checkpoint.CheckpointPolicy
    assert kind.MUST_SAVE.value == 0 and kind.PREFER_RECOMPUTE.value == 3
    with pytest.raises(NotImplementedError, match="recomputes its whole function"):
        convcore.utils.checkpoint.create_selective_checkpoint_contexts(lambda *_: kind.MUST_SAVE)


@pytest.mark.parametrize("first", ["hooks", "ban"])
def test_hooks_can_be_forbidden(lib, first):
    g = lib.autograd.graph
    hooks = g.saved_tensors_hooks(lambda x: x, lambda x: x)
    ban = g.disable_saved_tensors_hooks("not here")
    outer, inner = (hooks, ban) if first == "hooks" else (ban, hooks)
    with outer, pytest.raises(RuntimeError, match="not here"), inner:
        pass
    with hooks:
        pass


def test_saved_tensors_may_change_where_that_is_allowed(torch):
    def run(lib):
        g, x = lib.autograd.graph, leaf(lib)
        with g.allow_mutation_on_saved_tensors():
            y = x.sin()
            z = y.exp().sum() + y.pow(2).sum()
            y.detach().mul_(3)
            z.backward()
        with g.save_on_cpu():
            (x * x).sum().backward()
        return [x.grad]

    check(torch, run)


def test_counted_change_is_noticed():
    x = leaf(convcore)
    y = x.exp()
    graph.increment_version([y])
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()


def _graded(lib, function):
    def slope(x):
        with lib.enable_grad():
            return lib.autograd.grad(function(x), x, create_graph=True)[0]

    return slope


def _checkpointed(lib, function):
    return lambda x: k(lib).checkpoint(function, x, use_reentrant=False)


NESTS = {
    "twice": lambda f, g, c: (f, c(c(f))),
    "slope": lambda f, g, c: (g(f), g(c(c(f)))),
    "slope inside": lambda f, g, c: (g(g(f)), g(c(g(f)))),
    "slopes inside": lambda f, g, c: (g(g(f)), c(g(g(c(f))))),
    "all": lambda f, g, c: (g(g(g(f))), g(c(g(g(c(f)))))),
}


@pytest.mark.parametrize("early_stop", [False, True])
@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
def test_backward_may_run_within_a_checkpoint(lib, nest, early_stop):
    def function(x):
        unused = x.sin().exp().sin()
        lib.autograd.grad(unused, x, create_graph=True)
        return x.sin().exp().sin()

    x = lib.tensor(0.7, requires_grad=True)
    with k(lib).set_checkpoint_early_stop(early_stop):
        plain, saved = nest(function, partial(_graded, lib), partial(_checkpointed, lib))
        assert lib.allclose(plain(x), saved(x))
