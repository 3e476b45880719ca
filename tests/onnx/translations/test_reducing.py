"""Axes reduced to one value, and running sums, in exported models."""

from __future__ import annotations

import pytest

import convcore

CASES = {
    "argmax": lambda x: x.argmax(1),
    "argmax_of_all": lambda x: x[:1].argmax(),
    "argmin": lambda x: x.argmin(-1, True),
    "max": lambda x: x.max(1),
    "max_of_all": lambda x: x.max(),
    "min": lambda x: convcore.min(x, 2, keepdim=True),
    "max_of_two": lambda x: convcore.max(x, x * 2) + convcore.min(x, x * 3),
    "aminmax": lambda x: x.aminmax(dim=1),
    "any": lambda x: (x > 1).any(1),
    "all": lambda x: (x > -1).all(),
    "count_nonzero": lambda x: (x > 0).count_nonzero(1),
    "prod": lambda x: x.prod(1),
    "std": lambda x: x.std(1),
    "std_of_all": lambda x: x.std(),
    "var": lambda x: x.var((2, 3), keepdim=True),
    "biased": lambda x: x.var(dim=1, unbiased=False),
    "correction": lambda x: x.std(dim=(0, 1), correction=2),
    "var_mean": lambda x: convcore.var_mean(x, 1),
    "std_mean": lambda x: convcore.std_mean(x),
    "cumsum": lambda x: x.cumsum(1),
    "cumsum_of_bools": lambda x: (x > 0).cumsum(-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "nansum": lambda x: x.log().nansum(1) + x.log().nanmean(1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
