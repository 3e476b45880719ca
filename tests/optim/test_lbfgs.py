"""L-BFGS: PyTorch's iterates, a minimum that is known, its state, and what it refuses."""

from __future__ import annotations

import copy
import importlib
import math

import numpy as np
import pytest

import convcore
from convcore import optim
from convcore.optim._line_search import strong_wolfe


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum()


def losses(library, steps=4, **options):
    """All losses that the closure returned, and the optimizer."""
    x = library.tensor([-1.2, 1.0, 0.7], dtype=library.float64, requires_grad=True)
    optimizer = library.optim.LBFGS([x], **options)
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(x)
        loss.backward()
        seen.append(loss.item())
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return seen, optimizer, x


OPTIONS = {
    "short steps": {"lr": 0.01},
    "short history": {"lr": 0.003, "history_size": 3, "max_iter": 7},
    "Wolfe": {"line_search_fn": "strong_wolfe", "history_size": 5, "max_iter": 15},
    "Wolfe, short steps": {"line_search_fn": "strong_wolfe", "lr": 0.3, "max_iter": 15},
    "Wolfe, few evaluations": {"line_search_fn": "strong_wolfe", "max_eval": 4},
}
# PyTorch 2.13's number of evaluations, and the sum of logarithms of their losses.
EXPECTED = {
    "short steps": (80, 231.091108),
    "short history": (28, 96.0547886),
    "Wolfe": (58, -109.063038),
    "Wolfe, short steps": (67, 73.5291793),
    "Wolfe, few evaluations": (16, 26.3469097),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_iterates_have_pytorchs_losses(case):
    seen, _, _ = losses(convcore, **OPTIONS[case])
    assert len(seen) == EXPECTED[case][0]
    np.testing.assert_allclose(np.log(seen).sum(), EXPECTED[case][1], 1e-6)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_losses_are_pytorchs(torch, options):
    (ours, mine, _), (theirs, other, _) = (losses(lib, **options) for lib in (convcore, torch))
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    assert repr(mine) == repr(other)
    states = [optimizer.state_dict()["state"][0] for optimizer in (mine, other)]
    assert states[0].keys() == states[1].keys()
    for name in ("func_evals", "n_iter"):
        assert states[0][name] == states[1][name]


def probes(seed):
    """Return (loss, slope) of each probe: some steep descents, perhaps a plateau, then noise."""
    rng = np.random.default_rng(seed)
    n = seed % 5
    descents = [(-100.0 * (k + 1), -1 - rng.random()) for k in range(n)]
    plateau = [(-100.0 * n, -1 - rng.random())] if n and seed % 2 else []
    noise = [(-100.0 * n + rng.normal(), rng.normal()) for _ in range(40)]
    return descents + plateau + noise


@pytest.mark.parametrize("seeds", [range(100), range(100, 200)])
def test_line_search_probes_pytorchs_lengths(torch, seeds):
    search = importlib.import_module("torch.optim.lbfgs")._strong_wolfe
    for seed in seeds:
        searches = []
        for lib in (convcore, torch):
            one, drawn, lengths = lib.ones(1, dtype=lib.float64), iter(probes(seed)), []

            def probe(length, lengths=lengths, drawn=drawn, one=one):
                lengths.append(float(length))
                loss, slope = next(drawn)
                return loss, slope * one

            if lib is convcore:
                loss, _, length = strong_wolfe(probe, 1.0, one, (0.0, -one), -1.0, 25)
            else:
                loss, _, length, _ = search(
                    lambda x, length, d: probe(length), one, 1.0, one, 0.0, -one, -one[0]
                )
            searches.append([*lengths, float(loss), float(length)])
        np.testing.assert_allclose(*searches, rtol=1e-9, err_msg=str(seed))


def test_first_step_down_a_straight_line_is_the_longest(lib):
    x = lib.ones(1, requires_grad=True)
    optimizer = lib.optim.LBFGS([x], max_iter=2, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = -x.sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x.item() == 11  # ten times the first length


def test_a_step_without_a_gradient_stays(lib):
    x = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.LBFGS([x], tolerance_grad=-math.inf)

    def closure():
        loss = (x * 0).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 0 and x.tolist() == [1, 1]


def test_minimum_is_found():
    _, optimizer, x = losses(convcore, 10, line_search_fn="strong_wolfe", tolerance_grad=1e-9)
    np.testing.assert_allclose(x.detach().numpy(), [1, 1, 1], atol=1e-5)
    before = optimizer.state[x]["n_iter"]
    x.grad = None
    assert optimizer.step(lambda: convcore.tensor(0.0)).item() == 0  # flat: nothing to do
    assert optimizer.state[x]["n_iter"] == before


def test_quadratic_is_solved_in_as_many_iterations_as_axes(rng):
    basis = rng.standard_normal((4, 4))
    matrix, right = basis @ basis.T + np.eye(4), rng.standard_normal(4)
    x = convcore.zeros(4, dtype=convcore.float64, requires_grad=True)
    m, b = convcore.from_numpy(matrix), convcore.from_numpy(right)
    optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=50)

    def closure():
        optimizer.zero_grad()
        loss = (x @ (m @ x)) / 2 - b @ x
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(matrix, right), atol=1e-5)


def test_state_goes_on_where_it_was_saved():
    kept, options = [], {"lr": 0.01, "max_iter": 5}
    whole, _, _ = losses(convcore, 2, **options)
    _, first, x = losses(convcore, 1, **options)
    y = x.detach().clone().requires_grad_()
    second = optim.LBFGS([y], **options)
    second.load_state_dict(first.state_dict())

    def closure():
        second.zero_grad()
        loss = rosenbrock(y)
        loss.backward()
        kept.append(loss.item())
        return loss

    second.step(closure)
    np.testing.assert_allclose(kept, whole[len(whole) // 2 :], rtol=1e-12)


def test_complex_parameters_and_those_without_gradient():
    z = convcore.tensor([1 + 2j, -1j], requires_grad=True)
    unused = convcore.ones(2, requires_grad=True)
    optimizer = optim.LBFGS([z, unused], lr=0.5, max_iter=60)

    def closure():
        optimizer.zero_grad()
        loss = (z - (3 - 1j)).abs().square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(z.detach().numpy(), [3 - 1j] * 2, atol=1e-3)
    assert unused.tolist() == [1, 1]


def test_other_line_searches_are_refused():
    x = convcore.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([x], line_search_fn="armijo").step(lambda: (x * x).sum())


def test_copies_go_on():
    x = convcore.tensor([3.0], requires_grad=True)
    for optimizer in (optim.LBFGS([x]), copy.deepcopy(optim.LBFGS([x]))):
        (own,) = optimizer.param_groups[0]["params"]

        def loss(own=own, optimizer=optimizer):
            optimizer.zero_grad()
            found = (own * own).sum()
            found.backward()
            return found

        optimizer.step(loss)
        assert abs(own.item()) < 1e-3
