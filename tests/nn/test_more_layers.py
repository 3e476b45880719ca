"""Losses with margins, L_p pooling, RReLU ... beside PyTorch's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import convcore
from convcore._errors import without_hint

MODULES: dict[str, Callable[[Any], Any]] = {
    "lrn": lambda m: m.nn.LocalResponseNorm(3, 0.1, 0.5, 2.0),
    "channel-shuffle": lambda m: m.nn.ChannelShuffle(2),
    "rrelu": lambda m: m.nn.RReLU(0.1, 0.3),
    "rrelu-inplace": lambda m: m.nn.Sequential(m.nn.Identity(), m.nn.RReLU(inplace=True)).eval(),
}
SIZES = {"lp-1d": (6,), "lp-3d": (4, 5, 4)}


@pytest.mark.parametrize("name", MODULES)
def test_layers_agree_with_pytorch(torch, rng, name):
    x = abs(rng.normal(size=(2, 4, *SIZES.get(name, (6, 6))))) + 0.1
    if "rrelu" in name:
        x -= 0.8
    found, shown = [], []
    for m in (convcore, torch):
        m.manual_seed(5)
        module = MODULES[name](m)
        found.append(module(m.from_numpy(x.copy())).numpy())
        shown.append(repr(module))
        again = pickle.loads(pickle.dumps(copy.deepcopy(module)))
        assert repr(again) == shown[-1]
    assert shown[0] == shown[1]
    np.testing.assert_allclose(*found, rtol=1e-9)


def tensors(m, *arrays):
    return [m.from_numpy(np.asarray(array)) for array in arrays]


SIGNS = np.array([1.0, -1, 1])
LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "ranking": lambda m, x, y: m.nn.MarginRankingLoss(0.2)(x[0], y[0], m.from_numpy(SIGNS)),
    "cosine": lambda m, x, y: m.nn.CosineEmbeddingLoss(0.2)(x, y, m.from_numpy(SIGNS)),
    "hinge": lambda m, x, y: m.nn.HingeEmbeddingLoss(reduction="sum")(x[0], m.from_numpy(SIGNS)),
    "triplet": lambda m, x, y: m.nn.TripletMarginLoss(swap=True)(x, y, x + y),
    "triplet-names": lambda m, x, y: m.nn.TripletMarginLoss()(x, positive=y, negative=x + y),
    "poisson": lambda m, x, y: m.nn.PoissonNLLLoss(full=True)(x, y.abs()),
    "gaussian": lambda m, x, y: m.nn.GaussianNLLLoss(full=True)(x, y, y.abs()),
    "ctc": lambda m, x, y: m.nn.CTCLoss(zero_infinity=True)(
        x[:, None].log_softmax(2), m.tensor([[1, 2]]), (3,), (2,)
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_agree_with_pytorch(torch, rng, name):
    arrays = rng.normal(size=(2, 3, 3))
    found = []
    for m in (convcore, torch):
        x, y = tensors(m, *arrays.copy())
        x.requires_grad_()
        loss = LOSSES[name](m, x, y)
        loss.sum().backward()
        found.append((loss.detach().numpy(), x.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def outcome(m, call):
    with pytest.raises((RuntimeError, ValueError)) as caught:
        call(m)
    return caught.type, without_hint(caught.value)


@pytest.mark.parametrize("call", [lambda m: m.nn.TripletMarginLoss(margin=0)])
def test_errors_are_pytorchs(torch, call):
    assert outcome(convcore, call) == outcome(torch, call)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm"])
def test_a_bool_is_no_normalized_shape(torch, name):
    for lib in (convcore, torch):
        with pytest.raises(TypeError):
            getattr(lib.nn, name)(True)
    assert getattr(convcore.nn, name)(np.int64(3)).normalized_shape == (3,)
