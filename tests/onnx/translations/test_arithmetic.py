"""Sums, products, quotients and bounds in exported models."""

from __future__ import annotations

import pytest

import convcore


def in_place(x):
    x = x * 1
    x += 1
    x *= 2
    x -= 0.5
    x /= 3
    x %= 7
    mask = x > 0
    mask &= x < 3
    mask |= x > 5
    return x * mask


CASES = {
    "alpha": lambda x: x.add(x, alpha=2).sub(x, alpha=3),
    "number_over_tensor": lambda x: 2 / x.clamp(1),
    "floor_divide": lambda x: x // 2 + 7 // x.clamp(2),
    "remainder": lambda x: x % 2 + x.remainder(-0.3) + 7 % x.clamp(2),
    "fmod": lambda x: x.fmod(0.3),
    "rounded_quotients": lambda x: (
        x.div(0.3, rounding_mode="trunc") + x.div(0.3, rounding_mode="floor")
    ),
    "of_integers": lambda x: (
        ((x * 9).long() - 1) // 2 + (x * 9).long() % 3 + (x * 9).long().clamp(0, 1)
    ),
    "integers_towards_zero": lambda x: (x * 9).long().div(2, rounding_mode="trunc"),
    "power_of_a_number": lambda x: 2**x,
    "rsub": lambda x: convcore.rsub(x, 1, alpha=2),
    "bools": lambda x: (x > 0) * (x < 1),
    "clamp_to_tensors": lambda x: x.clamp(x * 0 - 1, convcore.tensor(0.5)),
    "clamp_min": lambda x: x.clamp_min(0.1).clamp_max(0.5),
    "lerp": lambda x: x.lerp(x * 2, 0.3),
    "addcmul": lambda x: convcore.addcmul(x, x, x, value=2),
    "addcdiv": lambda x: convcore.addcdiv(x, x, x.exp()),
    "hypot": lambda x: convcore.hypot(x, x * 2),
    "logaddexp": lambda x: convcore.logaddexp(x, -x),
    "xlogy": lambda x: convcore.xlogy(x.relu(), x.relu()),
    "atan2": lambda x: convcore.atan2(x, x.roll(1, 1)) + convcore.atan2(x * 0, x.relu()),
    "in_place": in_place,
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
