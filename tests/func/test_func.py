"""Function transforms: PyTorch's numbers and errors, and analytic derivatives."""

import copy
import importlib

import numpy as np
import pytest
from same_lines import check, check_error

import convcore
from convcore import func

# PyTorch's own.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")

X = np.random.default_rng(0).standard_normal((4, 3)).astype("f4")


def f(lib):
    return importlib.import_module(f"{lib.__name__}.func")


def waves(x):
    return (x.sin() * x).sum()


CASES = {
    "grad": lambda lib, x: f(lib).grad(waves)(x),
    "value": lambda lib, x: f(lib).grad_and_value(waves)(x),
    "two": lambda lib, x: f(lib).grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2),
    "tree": lambda lib, x: f(lib).grad(lambda p: (p["w"] * p["b"][0]).sum())(
        {"w": x, "b": [x * 3]}
    ),
    "aux": lambda lib, x: f(lib).grad(lambda x: ((x**2).sum(), x.max()), has_aux=True)(x),
    "nested": lambda lib, x: f(lib).grad(
        lambda a: f(lib).grad(lambda b: (b**3 * a).sum())(a).sum()
    )(x),
    "vmap": lambda lib, x: f(lib).vmap(lib.dot)(x, x + 1),
    "axes": lambda lib, x: f(lib).vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, x[0]),
    "results": lambda lib, x: f(lib).vmap(lambda a, b: (a * b, {"a": a.sum()}), out_dims=(1, 0))(
        x, x
    ),
    "both": lambda lib, x: lib.vmap(f(lib).vmap(lambda a, b: a * b))(x, x),
    "tree of axes": lambda lib, x: f(lib).vmap(
        lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},)
    )({"a": x, "b": x[0]}),
    "of samples": lambda lib, x: f(lib).vmap(f(lib).grad(lambda a: (a**3).sum()))(x),
    "independent": lambda lib, x: f(lib).grad(lambda a, b: a.sum(), argnums=(0, 1))(x, x),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_transforms_are_pytorchs(torch, case):
    check(torch, lambda lib: case(lib, lib.from_numpy(X.copy())))


def test_derivatives_are_those_of_analysis():
    x = convcore.tensor([0.5, -2.0], dtype=convcore.float64)
    assert func.grad(lambda x: (x**3).sum())(x).tolist() == [0.75, 12.0]
    assert func.vmap(lambda x: x * 2, in_dims=1, out_dims=1)(x.reshape(1, 2)).tolist() == [[1, -4]]


def test_results_belong_to_the_graph_outside_and_to_no_other(torch):
    def run(lib):
        x, w = (lib.from_numpy(X.copy()).requires_grad_() for _ in range(2))
        grad = f(lib).grad
        outer = grad(waves)(x)
        outer.sum().backward()
        closed = grad(lambda a: (a**2 * w).sum())(x.detach())
        closed.sum().backward()
        with lib.no_grad():
            quiet = grad(waves)(x)
        alone = grad(waves)(x.detach())
        flags = [one.requires_grad for one in (outer, closed, quiet, alone)]
        f(lib).vmap(lambda row: (row**2).sum())(x).sum().backward()
        return [x.grad, w.grad, quiet, flags]

    check(torch, run)


def test_modules_as_functions(torch):
    def run(lib):
        models = [
            lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).eval() for _ in range(3)
        ]
        params, buffers = f(lib).stack_module_state(models)
        base, x = copy.deepcopy(models[0]), lib.from_numpy(X)
        call = f(lib).functional_call
        whole = f(lib).vmap(lambda p, b: call(base, (p, b), (x,)))(params, buffers)
        layer = lib.nn.Linear(3, 1)
        p = {name: one.detach() for name, one in layer.named_parameters()}

        def loss(p, x):
            return call(layer, p, (x,)).pow(2).mean()

        def adapted(p):
            grads = f(lib).grad(loss)(p, x)
            return loss({name: p[name] - 0.1 * grads[name] for name in p}, x)

        samples = f(lib).vmap(f(lib).grad(loss), in_dims=(None, 0))(p, x)
        return [params, buffers, whole, f(lib).grad(adapted)(p), samples]

    check(torch, run)


def test_call_leaves_the_module_as_it_was():
    layer = convcore.nn.BatchNorm1d(3)
    given = {name: one.detach().clone() for name, one in layer.state_dict().items()}
    weight = layer.weight
    func.functional_call(layer, given, convcore.from_numpy(X))
    assert layer.weight is weight
    assert layer.running_mean.tolist() == [0, 0, 0]
    assert given["num_batches_tracked"].item() == 1
    with pytest.raises(RuntimeError, match="multiplied"):
        func.functional_call(convcore.nn.Linear(3, 1), {"weight": convcore.ones(1, 2)}, weight)


def tied(lib, names, tie=True, strict=False):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (lib.nn.Linear(3, 3, bias=False) for _ in range(2))
            self.b.weight = self.a.weight

        def forward(self, x, shift=0):
            return self.b(self.a(x)) + shift

    given = {name: lib.eye(3) * (number + 1.0) for number, name in enumerate(names)}
    net, x = Net(), lib.from_numpy(X)
    return f(lib).functional_call(net, given, (x,), {"shift": 1}, tie_weights=tie, strict=strict)


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("names", [(), ("a.weight",), ("b.weight",), ("a.weight", "b.weight")])
def test_tied_parameters_are_replaced_together(torch, tie, names):
    same = check_error if tie and len(names) == 2 else check  # two values for one parameter
    same(torch, lambda lib: tied(lib, names, tie))


def test_random_numbers_in_vmap():
    x = convcore.zeros(3, 2)
    same = func.vmap(lambda x: x + convcore.rand(2), randomness="same")(x)
    assert (same == same[0]).all()
    other = func.vmap(lambda x: x + convcore.rand(2), randomness="different")(x)
    assert not (other == other[0]).all()


ERRORS = {
    "scalar": lambda lib: f(lib).grad(lambda x: x)(lib.ones(2)),
    "tuple": lambda lib: f(lib).grad(lambda x: (x, x))(lib.ones(())),
    "argnums": lambda lib: f(lib).grad(waves, argnums=2)(lib.ones(2)),
    "number": lambda lib: f(lib).grad(waves)(3),
    "none": lambda lib: f(lib).stack_module_state([]),
    "sizes": lambda lib: f(lib).vmap(lambda x, y: x.sum())(lib.ones(2, 3), lib.ones(3)),
    "result": lambda lib: f(lib).vmap(lambda x: 3)(lib.ones(2, 3)),
    "axis": lambda lib: f(lib).vmap(lambda x: x, in_dims=5)(lib.ones(2, 3)),
    "no axis": lambda lib: f(lib).vmap(lambda x: x, in_dims=None)(lib.ones(2, 3)),
    "random": lambda lib: f(lib).vmap(lambda x: x + lib.rand(1))(lib.ones(2, 3)),
    "no tensor": lambda lib: f(lib).vmap(lambda x: x)(3),
    "no input": lambda lib: f(lib).vmap(lambda x: x)(),
    "randomness": lambda lib: f(lib).vmap(lambda x: x, randomness="x"),
    "twice": lambda lib: f(lib).functional_call(
        lib.nn.Linear(3, 2), ({"weight": lib.ones(2, 3)}, {"weight": 1}), lib.ones(3)
    ),
    "missing": lambda lib: tied(lib, (), strict=True),
    "unexpected": lambda lib: tied(lib, ("a.weight", "b.x"), strict=True),
    "path": lambda lib: tied(lib, ("x.y",)),
}


@pytest.mark.parametrize("function", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(torch, function):
    check_error(torch, function)
