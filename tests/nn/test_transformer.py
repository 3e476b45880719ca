"""Attention and transformer layers: draws, values, gradients, masks and errors."""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import numpy as np
import pytest
from against_torch import plain, same_error
from torch_twins import copied_state

import convcore
from convcore import nn

E, HEADS, N = 8, 2, 3
PADDING = np.array([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])


@pytest.fixture(autouse=True)
def _as_composed(request):
    """Have PyTorch compute layers of its modules, not by its kernels for inference."""
    if "torch" in request.fixturenames:
        torch = request.getfixturevalue("torch")
        torch.backends.mha.set_fastpath_enabled(False)
        request.addfinalizer(lambda: torch.backends.mha.set_fastpath_enabled(True))


def both(torch, make, call, rtol=2e-4):
    """Check that a net has the same parameters, results, gradients and next draw."""
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(2)
        net = make(lib.nn)
        outs = [out for out in call(lib, net) if out is not None]
        sum(out.pow(3).sum() for out in outs).backward()
        parameters = list(net.parameters())
        grads = [p.grad for p in parameters]
        found.append((net, [*parameters, *outs, lib.rand(2)], grads))
    assert repr(found[0][0]) == repr(found[1][0])
    assert list(found[0][0].state_dict()) == list(found[1][0].state_dict())
    for ours, theirs in zip(found[0][1] + found[0][2], found[1][1] + found[1][2], strict=True):
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(plain(ours), plain(theirs), rtol=rtol, atol=rtol)


def leaf(lib, *shape):
    return lib.randn(*shape).requires_grad_()


ATTENTION = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"kdim": 3, "vdim": 5},
    {"batch_first": True},
    {"dropout": 0.3},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True, "kdim": 3},
]


@pytest.mark.parametrize("options", ATTENTION, ids=str)
@pytest.mark.parametrize("mask", [None, "bool", "float", "heads"])
@pytest.mark.parametrize("padding", [None, "bool", "float"])
def test_attention_agrees_with_pytorch(torch, options, mask, padding):
    rng = np.random.default_rng(4)
    masks = {
        "bool": np.triu(np.ones((4, 5), bool), 2),
        "float": rng.normal(size=(4, 5)).astype("f4"),
        "heads": rng.normal(size=(N * HEADS, 4, 5)).astype("f4"),
    }
    paddings = {"bool": PADDING, "float": rng.normal(size=(N, 5)).astype("f4")}
    first = options.get("batch_first")

    def call(lib, net):
        given = [
            leaf(lib, *((N, length, size) if first else (length, N, size)))
            for length, size in ((4, E), (5, options.get("kdim", E)), (5, options.get("vdim", E)))
        ]
        named = {
            **({"attn_mask": lib.from_numpy(masks[mask])} if mask else {}),
            **({"key_padding_mask": lib.from_numpy(paddings[padding])} if padding else {}),
        }
        return (
            *net(*given, **named),
            *net(*given, **named, need_weights=False),
            *net(*given, **named, average_attn_weights=False),
        )

    mixed = {mask, padding} in ({"bool", "float"}, {"bool", "heads"})
    with pytest.warns(UserWarning, match="mismatched") if mixed else nullcontext():
        both(torch, lambda nn: nn.MultiheadAttention(E, HEADS, **options), call)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("shared", ["all", "key and value"])
def test_self_attention_without_a_batch_agrees_with_pytorch(torch, batch_first, shared):
    def call(lib, net):
        x, y = leaf(lib, 4, E), leaf(lib, 5, E)
        y = x if shared == "all" else y
        return net(x, y, y)

    both(torch, lambda nn: nn.MultiheadAttention(E, HEADS, batch_first=batch_first), call)


def test_a_batch_of_nothing(lib):
    layer = lib.nn.TransformerEncoderLayer(8, 2, 16)
    x = lib.ones(5, 0, 8, requires_grad=True)
    out = layer(x)
    out.sum().backward()
    assert out.shape == x.grad.shape == (5, 0, 8)


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_causal_hint(torch, need_weights):
    def call(lib, net):
        x = leaf(lib, 5, N, E)
        mask = lib.nn.Transformer.generate_square_subsequent_mask(5)
        options = {"attn_mask": mask, "is_causal": True, "need_weights": need_weights}
        return net(x, x, x, **options)

    both(torch, lambda nn: nn.MultiheadAttention(E, HEADS), call)


KINDS = list(itertools.product((False, True), (False, True), ("relu", "gelu"), (True, False)))


@pytest.mark.parametrize(("norm_first", "batch_first", "activation", "bias"), KINDS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_transformers_agree_with_pytorch(torch, norm_first, batch_first, activation, bias):
    options = {"batch_first": batch_first, "norm_first": norm_first, "bias": bias}

    def call(lib, net):
        source, target = (
            leaf(lib, *((N, length, E) if batch_first else (length, N, E))) for length in (5, 4)
        )
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4)
        padding = lib.from_numpy(PADDING)
        named = {"src_key_padding_mask": padding, "memory_key_padding_mask": padding}
        out = net(source, target, tgt_mask=mask, **named)
        net.eval()
        return out, net(source, target, tgt_mask=mask, tgt_is_causal=True)

    def make(nn):
        return nn.Transformer(E, HEADS, 2, 2, 16, 0.1, activation, **options)

    both(torch, make, call)


def test_layers_alone_and_their_states_both_ways(torch, rng):
    x = rng.normal(size=(5, N, E)).astype("f4")
    for name in ("TransformerEncoderLayer", "TransformerDecoderLayer"):
        ours, theirs = (
            getattr(lib.nn, name)(E, HEADS, 16, activation=lib.tanh).eval()
            for lib in (convcore, torch)
        )
        ours.load_state_dict(copied_state(theirs, convcore))
        theirs.load_state_dict(copied_state(ours, torch))
        given = [(lib.from_numpy(x),) * name.count("Decoder") for lib in (convcore, torch)]
        found = ours(convcore.from_numpy(x), *given[0])
        expected = theirs(torch.from_numpy(x), *given[1])
        np.testing.assert_allclose(plain(found), plain(expected), rtol=1e-4, atol=1e-5)


def test_an_encoder_copies_its_layer():
    layer = nn.TransformerEncoderLayer(E, HEADS, 16, 0.0)
    net = nn.TransformerEncoder(layer, 2, nn.LayerNorm(E))
    x = convcore.ones(4, 1, E)
    expected = net.norm(layer(layer(x)))
    np.testing.assert_allclose(plain(net(x)), plain(expected), rtol=1e-5)
    assert net.layers[0].linear1.weight is not net.layers[1].linear1.weight


def test_a_causal_mask_hides_what_comes_later(rng):
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(E, HEADS, 16, batch_first=True), 2)
    net.eval()
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert mask.tolist()[1] == [0, 0, -np.inf, -np.inf]
    x = rng.normal(size=(1, 4, E)).astype("f4")
    found = plain(net(convcore.from_numpy(x), mask))
    x[:, 2:] = 7
    np.testing.assert_allclose(plain(net(convcore.from_numpy(x), mask))[:, :2], found[:, :2], 1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, nn: nn.MultiheadAttention(8, 3),
        lambda lib, nn: nn.MultiheadAttention(0, 1),
        lambda lib, nn: nn.MultiheadAttention(8, 2)(*[lib.ones(2, 2, 2, 8)] * 3),
        lambda lib, nn: nn.MultiheadAttention(8, 2)(lib.ones(2, 8), *[lib.ones(2, 1, 8)] * 2),
        lambda lib, nn: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
        lambda lib, nn: nn.Transformer(8, 2, 1, 1, 8)(lib.ones(5, 3, 8), lib.ones(5, 2, 8)),
        lambda lib, nn: nn.Transformer(8, 2, 1, 1, 8)(lib.ones(5, 3, 7), lib.ones(5, 3, 8)),
    ],
)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_errors_are_pytorchs(torch, function):
    same_error(torch, lambda lib: function(lib, lib.nn))


def test_switches_of_kernels_change_nothing():
    backends = nn.attention.SDPBackend
    with nn.attention.sdpa_kernel(backends.MATH), nn.attention.sdpa_kernel([backends.ERROR]):
        assert nn.Transformer.generate_square_subsequent_mask(1).tolist() == [[0]]
    with pytest.raises(AssertionError, match="Backend must be"), nn.attention.sdpa_kernel("math"):
        pass
    assert {name: int(value) for name, value in backends.__members__.items()} == {
        **{"ERROR": -1, "MATH": 0, "FLASH_ATTENTION": 1, "EFFICIENT_ATTENTION": 2},
        **{"CUDNN_ATTENTION": 3, "OVERRIDEABLE": 4},
    }
