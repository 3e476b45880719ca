"""Factors that have no product: shapes and dtypes refused in PyTorch's words."""

from __future__ import annotations

import pytest
from against_torch import same_error


def z(m, *shape, dtype="float32"):
    return m.zeros(*shape, dtype=getattr(m, dtype))


def linear(m, *tensors):
    return m.nn.functional.linear(*tensors)


REFUSED = [
    lambda m: m.mm(z(m, 2, 3), z(m, 4, 5)),
    lambda m: m.mm(z(m, 2, 3), z(m, 3, 5, dtype="float64")),
    lambda m: m.mm(z(m, 2, 3), z(m, 3, 5, dtype="int64")),
    lambda m: m.mm(z(m, 2, 3, dtype="bool"), z(m, 3, 5, dtype="bool")),
    lambda m: m.mm(z(m, 3), z(m, 3, 2)),
    lambda m: m.mm(z(m, 2, 3), z(m, 3)),
    lambda m: m.mm(z(m, 2, 3), 3),
    lambda m: m.mm(3, z(m, 2, 3)),
    lambda m: m.matmul(z(m, 2, 3), z(m, 4, 5)),
    lambda m: m.matmul(z(m, 3), z(m, 4, 2)),
    lambda m: m.matmul(z(m, 2, 3), z(m, 4)),
    lambda m: m.matmul(z(m), z(m, 4)),
    lambda m: m.matmul(z(m, 4), z(m)),
    lambda m: m.matmul(z(m, 3), z(m, 4)),
    lambda m: m.matmul(z(m, 3), z(m, 3, dtype="float64")),
    lambda m: m.matmul(z(m, 3), 3),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 2, 4, 5)),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 3, 3, 5)),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 4, 5)),
    lambda m: m.matmul(z(m, 2, 3), z(m, 2, 4, 5)),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 4)),
    lambda m: m.matmul(z(m, 3), z(m, 2, 4, 5)),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 2, 3, 5, dtype="float64")),
    lambda m: m.matmul(z(m, 2, 2, 3, dtype="bool"), z(m, 2, 3, 5, dtype="bool")),
    lambda m: m.matmul(z(m, 2, 2, 3), z(m, 3, dtype="float64")),
    lambda m: m.bmm(z(m, 2, 3), z(m, 3, 2)),
    lambda m: m.bmm(z(m, 2, 2, 3), z(m, 3, 2)),
    lambda m: m.bmm(z(m, 2, 2, 3), z(m, 2, 4, 2)),
    lambda m: m.bmm(z(m, 2, 2, 3), z(m, 3, 3, 2)),
    lambda m: m.bmm(z(m, 2, 2, 3), z(m, 2, 3, 2, dtype="float64")),
    lambda m: m.mv(z(m, 2, 3), z(m, 4)),
    lambda m: m.mv(z(m, 3), z(m, 4)),
    lambda m: m.mv(z(m, 2, 3), z(m, 3, 1)),
    lambda m: m.mv(z(m, 2, 3), z(m, 3, dtype="float64")),
    lambda m: m.mv(z(m, 2, 3, dtype="bool"), z(m, 3, dtype="bool")),
    lambda m: m.dot(z(m, 3), z(m, 4)),
    lambda m: m.dot(z(m, 2, 3), z(m, 3)),
    lambda m: m.dot(z(m, 3), z(m, 3, dtype="float64")),
    lambda m: m.dot(z(m, 3, dtype="bool"), z(m, 3, dtype="bool")),
    lambda m: m.dot(z(m, 3), 3),
    lambda m: m.outer(z(m, 2, 1), z(m, 3)),
    lambda m: m.outer(z(m, 2), z(m, 3, 1)),
    lambda m: m.addmm(z(m, 2), z(m, 2, 3), z(m, 4, 2)),
    lambda m: m.addmm(z(m, 3), z(m, 2, 3), z(m, 3, 2)),
    lambda m: m.addmm(z(m, 2), z(m, 3), z(m, 3, 2)),
    lambda m: m.addmm(z(m, 2), z(m, 2, 3), z(m, 3)),
    lambda m: m.addmm(z(m, 2, dtype="float64"), z(m, 2, 3), z(m, 3, 2)),
    lambda m: m.addmm(z(m, 2), z(m, 2, 3, dtype="float64"), z(m, 3, 2)),
    lambda m: m.baddbmm(z(m, 3), z(m, 4, 2, 3), z(m, 4, 3, 2)),
    lambda m: m.baddbmm(z(m, 2), z(m, 4, 2, 3), z(m, 4, 5, 2)),
    lambda m: linear(m, z(m, 2, 5), z(m, 3, 4), z(m, 3)),
    lambda m: linear(m, z(m, 2, 5), z(m, 3, 4)),
    lambda m: linear(m, z(m, 1, 2, 5), z(m, 3, 4), z(m, 3)),
    lambda m: linear(m, z(m, 5), z(m, 3, 4), z(m, 3)),
    lambda m: linear(m, z(m, 2, 4, dtype="float64"), z(m, 3, 4), z(m, 3)),
    lambda m: linear(m, z(m, 2, 4), z(m, 3, 4), z(m, 3, dtype="float64")),
    lambda m: linear(m, z(m, 4), z(m, 3, 4), z(m, 3, dtype="float64")),
    lambda m: linear(m, z(m, 2, 4, dtype="int64"), z(m, 3, 4), z(m, 3)),
    lambda m: linear(m, z(m, 2, 4), z(m, 3, 4), z(m, 2)),
    lambda m: linear(m, z(m, 2, 4), z(m, 1, 3, 4)),
    lambda m: linear(m, z(m), z(m, 3, 4), z(m, 3)),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_errors_are_pytorchs(call, torch):
    same_error(torch, call)
