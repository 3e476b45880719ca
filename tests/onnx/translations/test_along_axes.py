"""Reading and adding at indices along one axis in exported models."""

from __future__ import annotations

import pytest

import convcore
from convcore.nn import functional as F

CASES = {
    "gather": lambda x: x.gather(1, x.argsort(1)),
    "take_along_dim": lambda x: x.take_along_dim(x.argsort(1), 1),
    "index_select": lambda x: x.index_select(1, convcore.tensor([0, 0, 3])),
    "take": lambda x: x[0].take(convcore.tensor([5, 1])),
    "scatter": lambda x: convcore.zeros_like(x).scatter(1, x.argsort(1), x),
    "scatter_number": lambda x: x.scatter(1, x.argmax(1, keepdim=True), 9.0),
    "scatter_add": lambda x: x.scatter_add(1, x.argsort(1), x),
    "scatter_in_place": lambda x: convcore.zeros_like(x).scatter_(1, x.topk(2, 1)[1], 1.0),
    "scatter_reduce": lambda x: x.scatter_reduce(1, x.argsort(1), x, "sum"),
    "scatter_multiply": lambda x: x.scatter(1, x.argsort(1), x, reduce="multiply"),
    "index_add": lambda x: x.index_add(1, convcore.tensor([0, 2]), x[:, :2], alpha=2),
    "index_copy": lambda x: x.index_copy(1, convcore.tensor([0, 2]), x[:, :2]),
    "index_fill": lambda x: x.index_fill(1, convcore.tensor([0, 2]), 3.0),
    "one_hot": lambda x: F.one_hot(x.argmax(1), 5),
    "embedding_bag": lambda x: F.embedding_bag(
        x.argmax(1)[..., 0], convcore.arange(20.0).reshape(5, 4), mode="sum"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
