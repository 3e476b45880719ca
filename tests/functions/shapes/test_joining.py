"""Joins and grids of tensors: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore

JOINS: dict[str, Callable] = {
    "cat": lambda lib, x, v: lib.cat([x, v]),
    "cat-1": lambda lib, x, v: lib.cat((x, v, x), dim=1),
    "cat-negative": lambda lib, x, v: lib.cat([x, v], -1),
    "cat-one": lambda lib, x, v: lib.cat([x]),
    "cat-empty-vector": lambda lib, x, v: lib.cat([lib.zeros(0), x, v]),
    "cat-promotes": lambda lib, x, v: lib.cat([x, v.float(), lib.ones(1, 4, dtype=lib.int64)]),
    "cat-bool": lambda lib, x, v: lib.cat([x > 0, lib.arange(8).reshape(2, 4)]),
    "concat": lambda lib, x, v: lib.concat([x, v]),
    "concatenate": lambda lib, x, v: lib.concatenate([x.t(), v.t()], 1),
    "stack": lambda lib, x, v: lib.stack([x, v]),
    "stack-1": lambda lib, x, v: lib.stack((x, v), 1),
    "stack-last": lambda lib, x, v: lib.stack((x, v), dim=-1),
    "stack-0d": lambda lib, x, v: lib.stack([x[0, 0], v[0, 0], x.sum()]),
    "stack-promotes": lambda lib, x, v: lib.stack([x.float(), v]),
    "hstack": lambda lib, x, v: lib.hstack([x, v]),
    "hstack-vectors": lambda lib, x, v: lib.hstack([x[0], v[0, 0]]),
    "vstack": lambda lib, x, v: lib.vstack([x, v[0]]),
    "dstack": lambda lib, x, v: lib.dstack([x, v]),
    "column-stack": lambda lib, x, v: lib.column_stack([x[:, 0], v]),
    "meshgrid": lambda lib, x, v: lib.meshgrid(x[0], v[0, :2], indexing="ij"),
    "meshgrid-xy": lambda lib, x, v: lib.meshgrid([x[0], v[0, :2]], indexing="xy"),
    "atleast-1d": lambda lib, x, v: lib.atleast_1d(x[0, 0], v),
    "atleast-2d": lambda lib, x, v: lib.atleast_2d(x[0]),
    "atleast-3d": lambda lib, x, v: lib.atleast_3d((x[0], v)),
}


JOIN_ERRORS: dict[str, Callable] = {
    "cat-nothing": lambda lib, x: lib.cat([]),
    "cat-rank": lambda lib, x: lib.cat([x, x[0]]),
    "cat-size": lambda lib, x: lib.cat([x, x[:, :2]]),
    "cat-dim": lambda lib, x: lib.cat([x, x], 2),
    "cat-0d": lambda lib, x: lib.cat([x[0, 0], x[0, 0]]),
    "cat-tensor": lambda lib, x: lib.cat(x),
    "cat-number": lambda lib, x: lib.cat([x, 1]),
    "stack-size": lambda lib, x: lib.stack([x, x[0]]),
    "stack-nothing": lambda lib, x: lib.stack([]),
    "stack-dim": lambda lib, x: lib.stack([x, x], 4),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_like_torch(torch, rng, seed, name):
    x, v = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    agree(torch, JOINS[name], x, v, seed=seed, nodes=2)


@pytest.mark.parametrize("name", JOIN_ERRORS)
def test_join_errors_like_torch(torch, name):
    same_error(torch, JOIN_ERRORS[name], np.zeros((3, 4)))


def test_cat_keeps_channels_last_where_all_have_it(torch, rng):
    x = rng.normal(size=(2, 3, 4, 5)).astype("float32")
    for join in ("cat", "stack"):
        for one in (True, False):

            def function(lib, x, join=join, one=one):
                y = x.to(memory_format=lib.channels_last)
                return getattr(lib, join)([y, y if one else x], 0)

            agree(torch, function, x, strides=True)


def test_joins_of_nothing_along_an_axis_like_torch(torch):
    x = np.zeros((0, 3))
    for function in (lambda lib, x: lib.cat([x, x]), lambda lib, x: lib.stack([x, x], 2)):
        agree(torch, function, x)


def test_meshgrid_asks_for_its_indexing():
    with pytest.warns(UserWarning, match="it will be required to pass the indexing argument"):
        rows, columns = convcore.meshgrid(convcore.arange(2), convcore.arange(3))
    assert rows.shape == columns.shape == (2, 3) and rows[1, 0] == 1 == columns[0, 1]


def test_meshgrid_refuses_what_pytorch_refuses(torch):
    for function in (
        lambda lib, x: lib.meshgrid(),
        lambda lib, x: lib.meshgrid(x, x.long(), indexing="ij"),
        lambda lib, x: lib.meshgrid(x, lib.empty(2, device="meta"), indexing="ij"),
    ):
        same_error(torch, function, np.ones(2))


def test_cat_of_nothing_along_any_axis(torch):
    agree(torch, lambda lib, x: lib.cat([x, x], 1), np.ones(0))
