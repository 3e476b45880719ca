"""The embedding layer and RMS normalisation: weights, options and errors."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import plain, same_error
from torch_twins import copied_state

import convcore
from convcore import nn

MAKERS = [
    lambda nn: nn.Embedding(5, 3),
    lambda nn: nn.Embedding(5, 3, padding_idx=-1),
    lambda nn: nn.Embedding(5, 3, 1, max_norm=2, norm_type=1, scale_grad_by_freq=True),
    lambda nn: nn.RMSNorm(4),
    lambda nn: nn.RMSNorm((3, 4), eps=1e-3, elementwise_affine=False),
]


@pytest.mark.parametrize("make", MAKERS)
def test_weights_and_printed_forms_are_pytorchs(torch, make):
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(11)
        net = make(lib.nn)
        found.append((repr(net), net.state_dict(), lib.rand(1)))
    assert found[0][0] == found[1][0] and list(found[0][1]) == list(found[1][1])
    for ours, theirs in zip(found[0][1].values(), found[1][1].values(), strict=True):
        np.testing.assert_array_equal(plain(ours), plain(theirs))
    assert found[0][2].item() == found[1][2].item()


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (MAKERS[1], lambda lib: (lib.tensor([[0, 4], [4, 2]]),)),
        (MAKERS[2], lambda lib: (lib.tensor([0, 4, 4]),)),
        (MAKERS[3], lambda lib: (lib.arange(8.0).reshape(2, 4),)),
    ],
)
def test_layers_agree_with_pytorch(torch, make, inputs):
    theirs = make(torch.nn)
    ours = make(nn)
    ours.load_state_dict(copied_state(theirs, convcore))
    found = []
    for lib, net in ((convcore, ours), (torch, theirs)):
        out = net(*inputs(lib))
        out.pow(2).sum().backward()
        found.append([out, *net.parameters(), *(p.grad for p in net.parameters())])
    for mine, right in zip(*found, strict=True):
        np.testing.assert_allclose(plain(mine), plain(right), rtol=1e-5, atol=1e-6)


def test_the_row_of_padding_is_zeros_and_stays():
    net = nn.Embedding(5, 3, padding_idx=-2)
    net(convcore.tensor([0, 3, 3])).sum().backward()
    assert net.padding_idx == 3 and not net.weight[3].any()
    np.testing.assert_array_equal(net.weight.grad.numpy()[:, 0], [1, 0, 0, 0, 0])
    with convcore.no_grad():
        net.weight.fill_(1)
    net.reset_parameters()
    assert not net.weight[3].any() and net.weight[0].any()


def test_given_weights():
    weight = convcore.arange(6.0).reshape(3, 2)
    net = nn.Embedding.from_pretrained(weight)
    assert not net.weight.requires_grad and net.weight.tolist() == weight.tolist()
    assert (net.num_embeddings, net.embedding_dim) == (3, 2)
    other = nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=-1)
    assert other.weight.requires_grad and other.padding_idx == 2
    assert other.weight[2].tolist() == [4, 5]


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, nn: nn.Embedding(5, 3, padding_idx=5),
        lambda lib, nn: nn.Embedding(5, 3, padding_idx=-6),
        lambda lib, nn: nn.Embedding(5, 3, _weight=lib.ones(3, 5)),
        lambda lib, nn: nn.Embedding.from_pretrained(lib.ones(3)),
    ],
)
def test_errors_are_pytorchs(torch, function):
    same_error(torch, lambda lib: function(lib, lib.nn))


def test_sparse_gradients_are_refused_when_the_layer_is_made():
    with pytest.raises(NotImplementedError, match="gradients are dense; use sparse=False"):
        nn.Embedding(5, 3, sparse=True)
