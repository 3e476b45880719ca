"""Writing at keys in exported models."""

from __future__ import annotations

import pytest

import convcore


def written(x, key, value):
    y = x * 1.5
    y[key] = value
    return y


def into_zeros(x):
    y = convcore.zeros_like(x)
    y[:, 1:] = x[:, :-1]
    return y + x


CASES = {
    "number_at_slice": lambda x: written(x, (slice(None), slice(None, 2)), 1.0),
    "slice": lambda x: written(x, (slice(None), slice(None, 2)), x[:, 2:]),
    "number_as_key": lambda x: written(x, (slice(None), 0), x[:, 1]),
    "list": lambda x: written(x, (slice(None), slice(None), [0, 3]), x[:, :, :2]),
    "last": lambda x: written(x, (Ellipsis, -1), 0.5),
    "two_axes": lambda x: written(x, (slice(None), 1, slice(1, 3)), x[:, 0, :2]),
    "stepped": lambda x: written(
        x, (slice(None), slice(None), slice(0, None, 2)), x[:, :, ::2] * 2
    ),
    "everything": lambda x: written(x, slice(None), x[:, :1]),
    "mask": lambda x: written(x, x > 0.5, 0.0),
    "mask_of_first_axes": lambda x: written(x, x[..., 0] > 0.5, convcore.tensor(0.0)),
    "pairs": lambda x: written(x, (convcore.tensor([0, 1]), convcore.tensor([0, 1])), 2.0),
    "index_put": lambda x: convcore.index_put(
        x, (convcore.tensor([0, 0]),), convcore.tensor(2.0), accumulate=True
    ),
    "into_zeros": into_zeros,
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
