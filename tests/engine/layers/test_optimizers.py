"""Optimizer steps in place beside their formulas, for every flag, dtype and layout."""

import itertools

import numpy as np
import pytest
from draws import lay_out

from convcore.engine.layers.optimizers import optimizers
from convcore.engine.layers.optimizers.optimizers import (
    AMSGRAD,
    CENTERED,
    DECAYS,
    FIRST,
    MOMENTUM,
    NESTEROV,
    VELOCITY,
    Step,
)

SIGN, DECAY, LR = -1.0, 0.3, 0.1  # a sign of -1 maximises


def sgd(p, g, b, flags, settings):
    *_, momentum, share = settings
    if flags & VELOCITY:
        b = g if flags & FIRST else momentum * b + share * g
        g = g + momentum * b if flags & NESTEROV else b
    return p - LR * g, b


def adam(p, g, m, v, w, flags, settings):
    _, _, keep, rate, fresh_mean, old, fresh, root, eps = settings
    m = m + fresh_mean * (g - m)
    v = old * v + fresh * g * g
    w = np.maximum(w, v) if flags & AMSGRAD else w
    return keep * p - rate * m / (np.sqrt(w if flags & AMSGRAD else v) / root + eps), m, v, w


def rmsprop(p, g, v, m, b, flags, settings):
    _, _, _, momentum, alpha, fresh, eps = settings
    v = alpha * v + fresh * g * g
    spread = v
    if flags & CENTERED:
        m = m + fresh * (g - m)
        spread = v - m * m
    g = g / (np.sqrt(spread) + eps)
    if flags & MOMENTUM:
        b = g = momentum * b + g
    return p - LR * g, v, m, b


# rule: (formula, settings, flags, which flag each state needs)
RULES = {
    "sgd": (sgd, (SIGN, DECAY, LR, 0.9, 0.8), (VELOCITY, FIRST, NESTEROV), (VELOCITY,)),
    "adam": (
        adam, (SIGN, DECAY, 0.99, 0.01, 0.1, 0.999, 0.001, 0.5, 1e-8), (AMSGRAD,), (0, 0, AMSGRAD),
    ),
    "rmsprop": (
        rmsprop, (SIGN, DECAY, LR, 0.9, 0.99, 0.01, 1e-8), (CENTERED, MOMENTUM),
        (0, CENTERED, MOMENTUM),
    ),
}  # fmt: skip
CASES = [
    (rule, sum(flags))
    for rule, (_, _, known, _) in RULES.items()
    for flags in itertools.product(*((0, flag) for flag in (DECAYS, *known)))
]


def drawn(rng, rule, shape, dtype, layout="contiguous"):
    """Draw a parameter, its gradient and three states; variances exceed squares of means."""
    n_states = len(RULES[rule][3])
    arrays = [rng.standard_normal(shape) for _ in range(2)]
    arrays += [1 + rng.random(shape) for _ in range(n_states)]
    if rule == "rmsprop":
        arrays[3] = arrays[3] - 1
    made = [lay_out(a.astype(dtype), layout, np.random.default_rng(3)) for a in arrays]
    for array in made:
        array.flags.writeable = True
    return made


def check(rule, flags, arrays):
    """Take a step and compare what it changed to the formula in float64."""
    formula, settings, _, needs = RULES[rule]
    p, g, *states = (a.astype("f8") for a in arrays)
    direction = SIGN * g + DECAY * p if flags & DECAYS else SIGN * g
    exact = formula(p, direction, *states, flags, settings)
    used = [not flag or bool(flags & flag) for flag in needs]
    taken = [*arrays[:2], *(a for a, use in zip(arrays[2:], used, strict=True) if use)]
    gradient = arrays[1].copy()
    optimizers.take([Step(rule, taken, settings, flags)])
    tolerance = 100 * np.finfo(arrays[0].dtype).eps
    wanted = [exact[0], *(e for e, use in zip(exact[1:], used, strict=True) if use)]
    for found, right in zip([arrays[0], *taken[2:]], wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(arrays[1], gradient)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rule", "flags"), CASES)
def test_a_step_is_its_formula_whatever_the_flags(rule, flags, dtype, rng):
    check(rule, flags, drawn(rng, rule, (37,), dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("layout", ["channels_last", "permuted", "strided", "field"])
@pytest.mark.parametrize("rule", RULES)
def test_any_layout_and_halves_are_stepped_where_they_lie(rule, layout, dtype, rng):
    check(rule, DECAYS | sum(RULES[rule][2]), drawn(rng, rule, (2, 3, 4, 5), dtype, layout))


def test_a_complex_parameter_is_twice_as_many_real_ones(rng):
    pairs = rng.standard_normal((2, 5, 2))
    p, g = (a.view("c16")[..., 0].copy() for a in pairs)
    optimizers.take([Step("sgd", [p, g], RULES["sgd"][1], 0)])
    np.testing.assert_allclose(p.view("f8").reshape(5, 2), pairs[0] + LR * pairs[1])
    with pytest.raises(TypeError, match="complex parameter must be complex, got float64"):
        optimizers.take([Step("sgd", [p, g.real], RULES["sgd"][1], 0)])


def test_several_parameters_are_stepped_at_once_and_shared_memory_in_order(rng):
    p, g, q = rng.standard_normal((3, 9))
    before, other = p.copy(), q.copy()
    optimizers.take([Step("sgd", [a, g], RULES["sgd"][1], 0) for a in (p, q, p)])
    np.testing.assert_allclose(p, before + 2 * LR * g)
    np.testing.assert_allclose(q, other + LR * g)


def test_a_read_only_parameter_is_an_error_before_anything_changes(rng):
    p, g, q = rng.standard_normal((3, 9))
    q.flags.writeable = False
    before = p.copy()
    with pytest.raises((BufferError, ValueError), match="read-only"):
        optimizers.take([Step("sgd", [a, g], RULES["sgd"][1], 0) for a in (p, q)])
    np.testing.assert_array_equal(p, before)
