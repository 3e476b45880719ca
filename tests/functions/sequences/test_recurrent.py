"""Recurrent cells and the run along sequences, by formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import convcore
from convcore.autograd import gradcheck, gradgradcheck
from convcore.functions.sequences.recurrent import gru_cell, lstm_cell, recurrent_layer, rnn_cell

H, N = 3, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def tensors(*arrays):
    return tuple(convcore.from_numpy(array) for array in arrays)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_an_rnn_cell_is_its_formula(rng, nonlinearity):
    w, gates, h = rng.normal(size=(H, H)), rng.normal(size=(N, H)), rng.normal(size=(N, H))
    (found,) = rnn_cell(*tensors(w), nonlinearity)(*tensors(gates), tensors(h))
    function = np.tanh if nonlinearity == "tanh" else lambda x: np.maximum(x, 0)
    np.testing.assert_allclose(found.numpy(), function(gates + h @ w.T), rtol=1e-12)


@pytest.mark.parametrize("projected", [False, True])
def test_an_lstm_cell_is_its_formula(rng, projected):
    size = 2 if projected else H
    w, w_hr = rng.normal(size=(4 * H, size)), rng.normal(size=(size, H))
    gates, h, c = (rng.normal(size=(N, n)) for n in (4 * H, size, H))
    cell = lstm_cell(*tensors(w), *(tensors(w_hr) if projected else ()))
    found = cell(*tensors(gates), tensors(h, c))
    i, f, g, o = np.split(gates + h @ w.T, 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    np.testing.assert_allclose(found[0].numpy(), h @ w_hr.T if projected else h, rtol=1e-11)
    np.testing.assert_allclose(found[1].numpy(), c, rtol=1e-11)


def test_a_gru_cell_is_its_formula(rng):
    w, b = rng.normal(size=(3 * H, H)), rng.normal(size=3 * H)
    gates, h = rng.normal(size=(N, 3 * H)), rng.normal(size=(N, H))
    (found,) = gru_cell(*tensors(w, b))(*tensors(gates), tensors(h))
    x, y = np.split(gates, 3, 1), np.split(h @ w.T + b, 3, 1)
    r, z = sigmoid(x[0] + y[0]), sigmoid(x[1] + y[1])
    n = np.tanh(x[2] + r * y[2])
    np.testing.assert_allclose(found.numpy(), (1 - z) * n + z * h, rtol=1e-11)


@pytest.mark.parametrize("reverse", [False, True])
def test_sequences_of_different_lengths_run_by_themselves(rng, reverse):
    lengths, sizes = [4, 2, 1], [3, 2, 1, 1]
    gates, start = rng.normal(size=(sum(sizes), 1)), rng.normal(size=(3, 1))

    def running_sum(gates, state):
        return (gates + state[0],)

    out, (last,) = recurrent_layer(
        *tensors(gates), sizes, running_sum, tensors(start), reverse=reverse
    )
    firsts = np.cumsum([0, *sizes])
    for number, length in enumerate(lengths):
        rows = firsts[:length] + number
        steps = gates[rows][:: -1 if reverse else 1]
        expected = start[number] + np.cumsum(steps, 0)
        found = out.numpy()[rows][:: -1 if reverse else 1]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_allclose(last.numpy()[number], expected[-1], rtol=1e-12)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_weights_have_gradients_of_the_second_order(rng, kind):
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[kind]
    shapes = ((5, gates), (gates, 1), (2, 1), (2, 1))
    given = [convcore.from_numpy(rng.normal(size=shape)).requires_grad_() for shape in shapes]

    def function(x, w, h, c):
        cell = {
            "rnn": lambda: rnn_cell(w, "tanh"),
            "gru": lambda: gru_cell(w, None),
            "lstm": lambda: lstm_cell(w),
        }[kind]()
        state = (h, c) if kind == "lstm" else (h * c,)
        out, last = recurrent_layer(x, [2, 2, 1], cell, state)
        return out, *last

    assert gradcheck(function, given) and gradgradcheck(function, given)
