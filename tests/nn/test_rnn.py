"""Recurrent layers and cells: values, draws, gradients, states and errors, beside PyTorch's."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from against_torch import plain, same_error
from torch_twins import copied_state

import convcore
from convcore import nn
from convcore.autograd import gradcheck, gradgradcheck
from convcore.nn.utils.rnn import pack_sequence, unpack_sequence

KINDS = ("RNN", "GRU", "LSTM")
OPTIONS = [
    {"num_layers": layers, "bidirectional": both, "batch_first": first, "bias": bias}
    for layers, both, first, bias in itertools.product((1, 2), *[(False, True)] * 3)
]


def close(ours, theirs, rtol=2e-5):
    """Compare results, or trees of them."""
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for mine, right in zip(ours, theirs, strict=True):
            close(mine, right, rtol)
    else:
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(plain(ours), plain(theirs), rtol=rtol, atol=rtol)


def trained(lib, make, shape, run=None):
    """Return what a layer gives, its gradients, and the next number that is drawn."""
    lib.manual_seed(5)
    net = make(lib.nn)
    x = lib.randn(*shape).requires_grad_()
    out, last = (run or (lambda net, x: net(x)))(net, x)
    lasts = last if isinstance(last, tuple) else (last,)
    out = getattr(out, "data", out) if hasattr(out, "batch_sizes") else out
    (out.pow(2).sum() + sum(state.pow(3).sum() for state in lasts)).backward()
    parameters = list(net.parameters())
    return [parameters, out, lasts, x.grad, [p.grad for p in parameters], lib.rand(2)], net


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda o: "-".join(str(int(v)) for v in o.values())
)
def test_layers_agree_with_pytorch(torch, kind, options):
    make = lambda nn: getattr(nn, kind)(3, 4, **options)  # noqa: E731
    shape = (2, 5, 3) if options["batch_first"] else (5, 2, 3)
    (ours, mine), (theirs, right) = (trained(lib, make, shape) for lib in (convcore, torch))
    close(ours[0], theirs[0], 0)
    close(ours, theirs)
    assert ours[1].stride() == theirs[1].stride()
    assert repr(mine) == repr(right)
    assert list(mine.state_dict()) == list(right.state_dict())
    assert mine._all_weights == right._all_weights


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.RNN(3, 4, nonlinearity="relu"),
        lambda nn: nn.RNN(3, 4, 2, "relu", False),
        lambda nn: nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True),
        lambda nn: nn.LSTM(3, 4, proj_size=2, bias=False),
        lambda nn: nn.LSTM(3, 4, 3, dropout=0.5),
        lambda nn: nn.GRU(3, 4, 2, dropout=0.5, batch_first=True),
        lambda nn: nn.RNN(3, 4, 2, dropout=1.0),
    ],
)
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_options_agree_with_pytorch(torch, make):
    (ours, mine), (theirs, right) = (trained(lib, make, (5, 5, 3)) for lib in (convcore, torch))
    close(ours, theirs)
    assert repr(mine) == repr(right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_sorted", [True, False])
def test_packed_sequences_agree_with_pytorch(torch, kind, is_sorted):
    lengths = [5, 3, 3, 1] if is_sorted else [3, 5, 1, 3]

    def run(net, x):
        lib = convcore if isinstance(net, nn.Module) else torch
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=is_sorted)
        start = lib.linspace(-1, 1, 4 * 4 * 4).reshape(4, 4, 4)
        return net(packed, (start, start.cos()) if kind == "LSTM" else start)

    make = lambda nn: getattr(nn, kind)(3, 4, 2, bidirectional=True)  # noqa: E731
    (ours, _), (theirs, _) = (trained(lib, make, (5, 4, 3), run) for lib in (convcore, torch))
    close(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences_give_what_each_gives_alone(rng, kind):
    net = getattr(nn, kind)(3, 4, bidirectional=True, dtype=convcore.float64)
    parts = [convcore.from_numpy(rng.normal(size=(length, 3))) for length in (2, 4, 1)]
    out, last = net(pack_sequence(parts, enforce_sorted=False))
    for number, (part, found) in enumerate(zip(parts, unpack_sequence(out), strict=True)):
        alone, state = net(part)
        np.testing.assert_allclose(found.numpy(force=True), alone.numpy(force=True), rtol=1e-12)
        pairs = zip(last, state, strict=True) if kind == "LSTM" else [(last, state)]
        for both, own in pairs:
            np.testing.assert_allclose(plain(both[:, number]), plain(own), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_states_go_over_both_ways(torch, rng, kind):
    x = rng.normal(size=(5, 2, 3)).astype("f4")
    ours, theirs = (getattr(lib.nn, kind)(3, 4, 2) for lib in (convcore, torch))
    theirs.load_state_dict(copied_state(ours, torch))
    close(ours(convcore.from_numpy(x))[0], theirs(torch.from_numpy(x))[0])
    ours.load_state_dict(copied_state(getattr(torch.nn, kind)(3, 4, 2), convcore))
    theirs.load_state_dict(copied_state(ours, torch))
    close(ours(convcore.from_numpy(x))[0], theirs(torch.from_numpy(x))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(rng, kind):
    net = getattr(nn, kind)(2, 2, dtype=convcore.float64)
    x = convcore.from_numpy(rng.normal(size=(3, 2, 2))).requires_grad_()
    assert gradcheck(lambda x: net(x)[0], (x,)) and gradgradcheck(lambda x: net(x)[0], (x,))


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
@pytest.mark.parametrize("options", [{}, {"bias": False}])
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
@pytest.mark.parametrize("with_state", [True, False])
def test_cells_agree_with_pytorch(torch, kind, options, shape, with_state):
    found = []
    for lib in (convcore, torch):
        lib.manual_seed(7)
        net = getattr(lib.nn, kind)(3, 4, **options)
        x = lib.randn(*shape)
        state = lib.randn(*shape[:-1], 4)
        states = (state, state.cos()) if kind == "LSTMCell" else state
        out = net(x, states) if with_state else net(x)
        outs = out if isinstance(out, tuple) else (out,)
        sum(part.pow(2).sum() for part in outs).backward()
        grads = [p.grad for p in net.parameters()]
        found.append([outs, [g for g in grads if g is not None]])
        assert repr(net) == repr(getattr(torch.nn, kind)(3, 4, **options))
    close(*found)


def test_a_relu_cell_and_its_printed_form(torch):
    ours, theirs = (lib.nn.RNNCell(3, 4, nonlinearity="relu") for lib in (convcore, torch))
    ours.load_state_dict(copied_state(theirs, convcore))
    x = np.linspace(-1, 1, 6, dtype="f4").reshape(2, 3)
    close(ours(convcore.from_numpy(x)), theirs(torch.from_numpy(x)))
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize(
    "function",
    [
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 2, 3)),
        lambda lib, nn: nn.GRU(3, 4)(lib.ones(3)),
        lambda lib, nn: nn.RNN(3, 4)(lib.ones(2, 2, 2, 3)),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 2)),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 3), (lib.ones(1, 1, 4), lib.ones(1, 1, 4))),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(1, 4), lib.ones(1, 4))),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(1, 1, 4), lib.ones(1, 2, 4))),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 3), (lib.ones(1, 2, 4), lib.ones(1, 1, 4))),
        lambda lib, nn: nn.LSTM(3, 4)(lib.ones(2, 2, 3).double()),
        lambda lib, nn: nn.GRU(3, 4)(lib.ones(0, 2, 3)),
        lambda lib, nn: nn.GRU(3, 4)(lib.ones(2, 2, 3), lib.ones(1, 3, 4)),
        lambda lib, nn: nn.GRU(3, 4)(lib.ones(2, 3), lib.ones(1, 1, 4)),
        lambda lib, nn: nn.RNN(3, 4)(lib.ones(2, 2, 3), lib.ones(1, 4)),
        lambda lib, nn: nn.RNN(3, 4, proj_size=2),
        lambda lib, nn: nn.GRU(3, 4, proj_size=2),
        lambda lib, nn: nn.LSTM(3, 4, proj_size=4),
        lambda lib, nn: nn.LSTM(3, 4, proj_size=-1),
        lambda lib, nn: nn.RNN(3, 4, nonlinearity="x"),
        lambda lib, nn: nn.RNNBase("X", 3, 4),
        lambda lib, nn: nn.LSTM(0, 4),
        lambda lib, nn: nn.LSTM(3, 0),
        lambda lib, nn: nn.LSTM(3, 4, 0),
        lambda lib, nn: nn.LSTM(3.0, 4),
        lambda lib, nn: nn.LSTM(3, "4"),
        lambda lib, nn: nn.LSTM(3, 4, bias=1),
        lambda lib, nn: nn.LSTM(3, 4, batch_first=1),
        lambda lib, nn: nn.LSTM(3, 4, dropout=2),
        lambda lib, nn: nn.LSTM(3, 4, dropout=True),
        lambda lib, nn: nn.RNNCell(3, 4)(lib.ones(2, 2)),
        lambda lib, nn: nn.RNNCell(3, 4)(lib.ones(2, 2, 3)),
        lambda lib, nn: nn.RNNCell(3, 4)(lib.ones(2, 3), lib.ones(3, 4)),
        lambda lib, nn: nn.GRUCell(3, 4)(lib.ones(2, 3), lib.ones(2, 5)),
        lambda lib, nn: nn.GRUCell(3, 4)(lib.ones(2, 3), lib.ones(1, 2, 4)),
        lambda lib, nn: nn.LSTMCell(3, 4)(lib.ones(2, 3), (lib.ones(2, 5), lib.ones(2, 4))),
        lambda lib, nn: nn.LSTMCell(3, 4)(lib.ones(2, 3), (lib.ones(2, 4), lib.ones(1, 2, 4))),
        lambda lib, nn: nn.GRUCell(3, 4)(lib.ones(2, 3).double()),
    ],
)
def test_errors_are_pytorchs(torch, function):
    same_error(torch, lambda lib: function(lib, lib.nn))


def test_dropout_of_one_layer_warns():
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.LSTM(3, 4, dropout=0.5)


def test_an_empty_batch(torch):
    for lib in (convcore, torch):
        out, last = lib.nn.GRU(3, 4, bidirectional=True)(lib.ones(2, 0, 3))
        assert (tuple(out.shape), tuple(last.shape)) == ((2, 0, 8), (2, 0, 4))


def test_copies_and_conversions_keep_their_own_weights():
    net = nn.LSTM(3, 4, 2, bidirectional=True)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other.weight_ih_l0 is not net.weight_ih_l0
        assert [len(weights) for weights in other.all_weights] == [4] * 4
        assert other.all_weights[1][0] is other.weight_ih_l0_reverse
        assert other._flat_weights_names == net._flat_weights_names
        assert other.flatten_parameters() is None
        x = convcore.ones(2, 1, 3)
        np.testing.assert_array_equal(plain(other(x)[0]), plain(net(x)[0]))
    assert net.double()(convcore.ones(2, 1, 3).double())[0].dtype == convcore.float64
