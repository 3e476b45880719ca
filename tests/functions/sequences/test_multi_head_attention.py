"""Multi-head attention as a function: its arguments without a module, and its errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import agree, same_error

import convcore
from convcore.functions.sequences.multi_head_attention import canonical_mask
from convcore.nn import functional as F

E, HEADS, N = 6, 2, 3


def attention(lib, x, weight, bias, out, key=None, **options):
    """Call the function on tensors of a library."""
    start = (E, HEADS, weight, bias, None, None, False, 0.0, out, None)
    key = x if key is None else key
    return lib.nn.functional.multi_head_attention_forward(x, key, key, *start, **options)


def numbers(rng, length=4, dtype="float64"):
    shapes = ((length, N, E), (3 * E, E), (3 * E,), (E, E))
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def test_the_weights_are_a_softmax_over_the_keys_of_each_head(rng):
    x, weight, bias, out = numbers(rng)
    given = [convcore.from_numpy(array) for array in (x, weight, bias, out)]
    result, weights = attention(convcore, *given, average_attn_weights=False)
    q, k, v = np.split(x @ weight.T + bias, 3, -1)
    heads = [part.reshape(4, N, HEADS, E // HEADS).transpose(1, 2, 0, 3) for part in (q, k, v)]
    scores = heads[0] @ heads[1].swapaxes(-1, -2) / np.sqrt(E // HEADS)
    scores = np.exp(scores)
    scores /= scores.sum(-1, keepdims=True)
    np.testing.assert_allclose(weights.numpy(), scores, rtol=1e-11)
    joined = (scores @ heads[2]).transpose(2, 0, 1, 3).reshape(4, N, E)
    np.testing.assert_allclose(result.numpy(), joined @ out.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("static", ["static_k", "static_v"])
def test_static_keys_and_values_agree_with_pytorch(torch, rng, need_weights, static):
    given = numbers(rng)
    fixed = rng.normal(size=(N * HEADS, 4, E // HEADS))

    def function(lib, *given):
        options = {static: given[4], "need_weights": need_weights}
        return tuple(x for x in attention(lib, *given[:4], **options) if x is not None)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        agree(torch, lambda lib, *x: function(lib, *x)[0], *given, fixed, rtol=1e-9)


def test_a_bias_on_key_and_value_joins_the_scores(torch, rng):
    x, weight, bias, out = numbers(rng)
    extra = [rng.normal(size=(1, 1, E)) for _ in range(2)]

    def function(lib, x, weight, bias, out, *extra):
        rest = (weight, bias, *extra, True, 0.0, out, None)
        mha = lib.nn.functional.multi_head_attention_forward
        return mha(x, x, x, E, HEADS, *rest, need_weights=True)

    agree(torch, function, x, weight, bias, out, *extra, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        lambda lib: {"attn_mask": lib.zeros(4, 5)},
        lambda lib: {"attn_mask": lib.zeros(2, 4, 4)},
        lambda lib: {"attn_mask": lib.zeros(4)},
        lambda lib: {"attn_mask": lib.zeros(4, 4).long()},
        lambda lib: {"key_padding_mask": lib.zeros(N)},
        lambda lib: {"key_padding_mask": lib.zeros(N, 4).long()},
        lambda lib: {"key_padding_mask": lib.zeros(N, 5)},
        lambda lib: {"key_padding_mask": lib.zeros(N + 1, 4)},
        lambda lib: {"is_causal": True},
        lambda lib: {"static_k": lib.zeros(5, 4, 3)},
        lambda lib: {"static_v": lib.zeros(6, 4, 2)},
        lambda lib: {"use_separate_proj_weight": True},
        lambda lib: {"key": lib.zeros(4, E)},
    ],
)
def test_errors_of_options_are_pytorchs(torch, rng, options):
    given = numbers(rng, dtype="float32")
    same_error(torch, lambda lib, *given: attention(lib, *given, **options(lib)), *given)


@pytest.mark.parametrize(
    "change",
    [
        lambda given: {"embed_dim_to_check": 8},
        lambda given: {"num_heads": 4},
        lambda given: {"in_proj_weight": None},
        lambda given: {"query": given["query"][0, 0]},
        lambda given: {"bias_k": given["query"][:1, :1]},
        lambda given: {"bias_v": given["query"][:1, :1]},
        lambda given: {"value": given["query"][:2]},
    ],
)
def test_errors_of_arguments_are_pytorchs(torch, rng, change):
    def called(lib, x, weight, bias, out):
        given = {
            **{"query": x, "key": x, "value": x, "embed_dim_to_check": E, "num_heads": HEADS},
            **{"in_proj_weight": weight, "in_proj_bias": bias, "bias_k": None, "bias_v": None},
            **{"add_zero_attn": False, "dropout_p": 0.0},
            **{"out_proj_weight": out, "out_proj_bias": None},
        }
        lib.nn.functional.multi_head_attention_forward(**given | change(given))

    same_error(torch, called, *numbers(rng, dtype="float32"))


def test_masks_of_two_kinds_warn():
    with pytest.warns(UserWarning, match="Support for mismatched a and b is deprecated"):
        mask = canonical_mask(
            convcore.tensor([True, False]), "a", convcore.zeros(1), "b", convcore.float32
        )
    np.testing.assert_array_equal(mask.numpy(), [-np.inf, 0])


def test_the_function_is_public():
    assert F.multi_head_attention_forward.__name__ == "multi_head_attention_forward"
