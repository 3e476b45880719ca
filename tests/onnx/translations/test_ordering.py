"""Sorting in exported models."""

from __future__ import annotations

import pytest

import convcore

CASES = {
    "topk": lambda x: x.topk(2, 1),
    "smallest": lambda x: x.topk(2, largest=False),
    "sort": lambda x: x.sort(1, descending=True),
    "argsort": lambda x: x.argsort(2),
    "msort": lambda x: convcore.msort(x[:1]),
    "kthvalue": lambda x: x.kthvalue(2, 1),
    "median": lambda x: x.median(1, True),
    "median_of_all": lambda x: x[0].median(),
    "sort_batch": lambda x: x.sort(0)[0],
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
