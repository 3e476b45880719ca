"""autograd.functional: Jacobians, Hessians and their products, beside PyTorch's."""

import numpy as np
import pytest
from against_torch import same, tensors

import convcore
from convcore.autograd import functional


def flat(results):
    """Return nested tuples as one list."""
    if isinstance(results, tuple):
        return [one for part in results for one in flat(part)]
    return [results]


def layout(results):
    """Return nested tuples with their leaves' shapes."""
    if isinstance(results, tuple):
        return tuple(map(layout, results))
    return tuple(results.shape)


def agree(torch, call, arrays, requires_grad=False):
    """Compare what ``call(lib, tensors)`` gives, and its gradients if it is recorded."""
    found = []
    for lib in (convcore, torch):
        given = tuple(tensors(lib, arrays, requires_grad))
        results = call(lib, given)
        outs = flat(results)
        grads = []
        if any(out.requires_grad for out in outs):
            total = sum((out * out).sum() for out in outs)
            grads = [g for g in lib.autograd.grad(total, given, allow_unused=True) if g is not None]
        found.append((layout(results), [out.requires_grad for out in outs], outs + grads))
    (ours, theirs) = found
    assert ours[:2] == theirs[:2]
    for a, b in zip(ours[2], theirs[2], strict=True):
        same(a, b, "result", 1e-10)


EXP = lambda x: x.exp()  # noqa: E731
ONE = lambda x: x.exp() * x.sum()  # noqa: E731
SCALAR = lambda x: (x**3).sum() * x.sum()  # noqa: E731
TWO = lambda x, y: (x * y.sum() ** 2, (y * y * y))  # noqa: E731
SCALAR_OF_TWO = lambda x, y: (x**2).sum() * (y**3).sum()  # noqa: E731
UNUSED = lambda x, y: (x**3).sum()  # noqa: E731
CONSTANT = lambda x: x.detach().sum()  # noqa: E731
LINEAR = lambda x: x.sum() * 3  # noqa: E731


@pytest.mark.parametrize("create_graph", [False, True])
def test_jacobian_agrees_with_pytorch(torch, rng, create_graph):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=2)
    jacobian = lambda lib, *args: lib.autograd.functional.jacobian(  # noqa: E731
        *args, create_graph=create_graph
    )
    for function in (ONE, SCALAR, LINEAR, CONSTANT):
        agree(torch, lambda lib, xs, f=function: jacobian(lib, f, xs[0]), (x,), create_graph)
    for function in (TWO, SCALAR_OF_TWO, UNUSED):
        agree(torch, lambda lib, xs, f=function: jacobian(lib, f, xs), (x, y), create_graph)
    agree(torch, lambda lib, xs: jacobian(lib, lambda x: (x, x * x), xs), (x,), create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
def test_hessian_agrees_with_pytorch(torch, rng, create_graph):
    x, y = rng.normal(size=(2, 2)), rng.normal(size=3)
    hessian = lambda lib, *args: lib.autograd.functional.hessian(  # noqa: E731
        *args, create_graph=create_graph
    )
    for function in (SCALAR, LINEAR):
        agree(torch, lambda lib, xs, f=function: hessian(lib, f, xs[0]), (x,), create_graph)
    for function in (SCALAR_OF_TWO, UNUSED):
        agree(torch, lambda lib, xs, f=function: hessian(lib, f, xs), (x, y), create_graph)
    agree(torch, lambda lib, xs: hessian(lib, SCALAR, xs), (x,), create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", ["vjp", "jvp"])
def test_products_with_jacobians_agree_with_pytorch(torch, rng, name, create_graph):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=2)
    v, w = rng.normal(size=(2, 3)), rng.normal(size=2)

    def product(lib, *args):
        return getattr(lib.autograd.functional, name)(*args, create_graph=create_graph)

    for function in (ONE, lambda x: x * 2):
        agree(torch, lambda lib, t, f=function: product(lib, f, t[0], t[1]), (x, v), create_graph)
    agree(torch, lambda lib, t: product(lib, TWO, t[:2], t[2:]), (x, y, v, w), create_graph)
    if name == "vjp":
        agree(torch, lambda lib, t: product(lib, UNUSED, t), (x, y), create_graph)
    else:
        agree(torch, lambda lib, t: product(lib, EXP, t[0]), (y[:1],), create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
def test_products_with_hessians_agree_with_pytorch(torch, rng, create_graph):
    x, y = rng.normal(size=(2, 3)), rng.normal(size=2)
    v, w = rng.normal(size=(2, 3)), rng.normal(size=2)

    def product(lib, *args):
        return lib.autograd.functional.hvp(*args, create_graph=create_graph)

    for function in (SCALAR, LINEAR):
        agree(torch, lambda lib, t, f=function: product(lib, f, t[0], t[1]), (x, v), create_graph)
    both = (x, y, v, w)
    for function in (SCALAR_OF_TWO, UNUSED):
        agree(torch, lambda lib, t, f=function: product(lib, f, t[:2], t[2:]), both, create_graph)
    agree(torch, lambda lib, t: product(lib, SCALAR, t[0]), (y[:1],), create_graph)


def test_derivatives_are_computed_under_no_grad_too(rng):
    x = convcore.from_numpy(rng.normal(size=3))
    with convcore.no_grad():
        np.testing.assert_allclose(functional.jacobian(lambda x: x * x, x), np.diag(2 * x.numpy()))
        np.testing.assert_allclose(functional.hessian(LINEAR, x), np.zeros((3, 3)))
    assert x.grad is None
    assert not x.requires_grad


def test_tensor_that_the_function_has_of_its_own_is_a_constant(rng):
    x = convcore.from_numpy(rng.normal(size=3)).requires_grad_()
    found = functional.jacobian(lambda own: own * x, x)
    np.testing.assert_allclose(found, np.diag(x.numpy(force=True)))


CALLS = {
    "inputs no tensor": lambda f, x: f.jacobian(SCALAR, [x]),
    "input no tensor": lambda f, x: f.vjp(SCALAR, (x, 1.0)),
    "outputs no tensors": lambda f, x: f.jacobian(lambda x: [x], x),
    "v missing": lambda f, x: f.vjp(ONE, x),
    "direction missing": lambda f, x: f.jvp(ONE, x),
    "v of another shape": lambda f, x: f.vjp(ONE, x, x[:1]),
    "v of another length": lambda f, x: f.vjp(ONE, x, (x, x)),
    "direction of another shape": lambda f, x: f.hvp(SCALAR_OF_TWO, (x, x), (x, x[:1])),
    "direction of another length": lambda f, x: f.hvp(SCALAR_OF_TWO, (x, x), (x,)),
    "many values": lambda f, x: f.hessian(ONE, x),
    "many outputs": lambda f, x: f.hvp(TWO, (x, x), (x, x)),
    "strict, constant": lambda f, x: f.vjp(CONSTANT, x, strict=True),
    "strict, input without part": lambda f, x: f.vjp(UNUSED, (x, x), strict=True),
    "strict, row without part": lambda f, x: f.jacobian(UNUSED, (x, x), strict=True),
    "strict, Jacobian without part": lambda f, x: f.jacobian(
        LINEAR, x, create_graph=True, strict=True
    ),
    "strict, Hessian of a line": lambda f, x: f.hessian(LINEAR, x, strict=True),
    "strict, product with it": lambda f, x: f.hvp(LINEAR, x, x, strict=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_mistakes_are_told_in_the_words_of_pytorch(torch, rng, name):
    array = rng.normal(size=3)
    texts = []
    for lib in (torch, convcore):
        with pytest.raises((TypeError, RuntimeError)) as raised:
            CALLS[name](lib.autograd.functional, lib.from_numpy(array))
        texts.append((raised.type, str(raised.value)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", CALLS)
def test_mistakes_are_refused(name):
    with pytest.raises((TypeError, RuntimeError)):
        CALLS[name](functional, convcore.tensor([1.0, 2.0, 3.0], dtype=convcore.float64))


def test_strict_accepts_a_derivative_that_depends_on_the_input():
    x = convcore.tensor([1.0, 2.0], dtype=convcore.float64)
    hessian = functional.hessian(lambda x: (x * x * x).sum(), x, strict=True)
    np.testing.assert_allclose(hessian.numpy(), [[6.0, 0.0], [0.0, 12.0]])


def test_hessian_of_a_line_is_zero():
    x = convcore.tensor([1.0, 2.0], dtype=convcore.float64)
    assert not functional.hessian(lambda x: x.sum(), x).any()


def test_forward_mode_is_refused():
    x = convcore.ones(2)
    with pytest.raises(NotImplementedError, match="reverse-mode"):
        functional.jacobian(SCALAR, x, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="reverse-mode"):
        functional.hessian(SCALAR, x, outer_jacobian_strategy="forward-mode")


def test_jacobian_and_hessian_of_a_number(lib):
    x = lib.tensor(3.0)
    assert lib.autograd.functional.jacobian(lambda x: x * x, x).item() == 6.0
    assert lib.autograd.functional.hessian(lambda x: x**3, x).item() == 18.0
