"""Reading at keys in exported models."""

from __future__ import annotations

import pytest

import convcore

CASES = {
    "list": lambda x: x[:, [0, 2]],
    "index_of_two_axes": lambda x: x[:, convcore.tensor([[0, 1], [2, 3]])],
    "two_lists": lambda x: x[:, [0, 1], [2, 3]],
    "two_lists_apart": lambda x: x[:, [0, 1], :, [2, 3]],
    "list_after_new_axis": lambda x: x[:, None, [0, 1]],
    "list_after_number": lambda x: x[:, 0, :, [1, 2]],
    "constant_mask": lambda x: x[:, convcore.tensor([True, False, True, True])],
    "computed_index": lambda x: x[:, :, x[0, 0, :, 0].argsort()],
    "computed_pairs": lambda x: x[:, x[0, :, 0, 0].argsort(), x[0, :4, 1, 1].argsort()],
    "ellipsis": lambda x: x[..., 0],
    "new_axes": lambda x: x[..., None, 0],
    "negative": lambda x: x[:, -1, -3:-1, ::2],
    "nothing": lambda x: x[:],
    "broadcast": lambda x: x[:, convcore.tensor([[0], [1]]), convcore.tensor([0, 2])],
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
