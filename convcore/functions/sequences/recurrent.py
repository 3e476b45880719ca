"""Recurrent cells, and layers that run them along sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convcore._tensor import Tensor
from convcore.functions.elementwise.activation import relu
from convcore.functions.elementwise.arithmetic import add, mul, sub
from convcore.functions.elementwise.elementwise import sigmoid, tanh
from convcore.functions.elementwise.ternary import addcmul, lerp
from convcore.functions.products.matmul import addmm, linear
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import t
from convcore.functions.shapes.slicing import narrow
from convcore.functions.shapes.splitting import chunk, split

__all__: list[str] = []  # layers call them; F has none of these names

State = tuple[Tensor, ...]  # (h,), or (h, c) of an LSTM
Cell = Callable[[Tensor, State], State]


# Cells: what the input gives to the gates, and the state -> the next state


def rnn_cell(w_hh: Tensor, nonlinearity: str) -> Cell:
    """Return h -> tanh or relu of (gates + W h)."""
    columns = t(w_hh)
    function: Callable[[Tensor], Tensor] = relu if nonlinearity == "relu" else tanh
    return lambda gates, state: (function(addmm(gates, state[0], columns)),)


def lstm_cell(w_hh: Tensor, w_hr: Tensor | None = None) -> Cell:
    """Return the step of an LSTM, whose gates are input, forget, cell and output.

    References
    ----------
    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9, 1997; with forget
    gates: F. Gers, J. Schmidhuber, F. Cummins, "Learning to forget", 2000; with the projection
    ``w_hr``: H. Sak, A. Senior, F. Beaufays, 2014.
    """
    columns = t(w_hh)

    def step(gates: Tensor, state: State) -> State:
        h, c = state
        entry, forget, cell, exit = chunk(addmm(gates, h, columns), 4, 1)
        c = addcmul(mul(sigmoid(forget), c), sigmoid(entry), tanh(cell))
        h = mul(sigmoid(exit), tanh(c))
        return (h if w_hr is None else linear(h, w_hr)), c

    return step


def gru_cell(w_hh: Tensor, b_hh: Tensor | None) -> Cell:
    """Return the step of a GRU, whose gates are reset, update and new.

    References
    ----------
    K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation", EMNLP 2014; the reset gate follows the product, as in cuDNN.
    """
    size = w_hh.shape[1]

    def step(gates: Tensor, state: State) -> State:
        (h,) = state
        both, new = split(gates, [2 * size, size], 1)
        hidden_both, hidden_new = split(linear(h, w_hh, b_hh), [2 * size, size], 1)
        reset, update = chunk(sigmoid(add(both, hidden_both)), 2, 1)
        new = tanh(addcmul(new, reset, hidden_new))
        if new._array.dtype != h._array.dtype:  # under autocast
            return (add(new, mul(sub(h, new), update)),)
        return (lerp(new, h, update),)

    return step


# Layers


def recurrent_layer(
    gates: Tensor, sizes: Sequence[int], cell: Cell, state: State, reverse: bool = False
) -> tuple[Tensor, State]:
    """Run a cell along sequences.

    Parameters
    ----------
    gates : (sum of sizes, n)
        What the input gives to the gates, one time step after the other.
    sizes : ints that do not rise
        How many sequences have each time step; the first ones have all.
    cell : what `lstm_cell` and others return
    state : (sizes[0], hidden) each
    reverse : bool
        Whether to run from the last time step to the first.

    Returns
    -------
    output : (sum of sizes, hidden)
    state : as the argument, after the last step of each sequence
    """
    steps = split(gates, list(sizes))
    outputs, state = (_backwards if reverse else _forwards)(steps, cell, state)
    return cat(outputs), state


def _forwards(steps: Sequence[Tensor], cell: Cell, state: State) -> tuple[list[Tensor], State]:
    """Run from the first step; sequences that have ended leave their state behind."""
    outputs, ended = [], []
    for gates in steps:
        n, before = gates.shape[0], state[0].shape[0]
        if n < before:
            ended.append(tuple([narrow(x, 0, n, before - n) for x in state]))
            state = tuple([narrow(x, 0, 0, n) for x in state])
        state = cell(gates, state)
        outputs.append(state[0])
    if ended:
        state = tuple([cat(parts) for parts in zip(state, *ended[::-1], strict=True)])
    return outputs, state


def _backwards(steps: Sequence[Tensor], cell: Cell, state: State) -> tuple[list[Tensor], State]:
    """Run from the last step; sequences that are shorter join with their own state."""
    outputs: list[Tensor] = []
    first, size = state, steps[-1].shape[0]
    if size < first[0].shape[0]:
        state = tuple([narrow(x, 0, 0, size) for x in first])
    for gates in reversed(steps):
        n, before = gates.shape[0], state[0].shape[0]
        if n > before:
            joining = [narrow(x, 0, before, n - before) for x in first]
            state = tuple([cat(pair) for pair in zip(state, joining, strict=True)])
        state = cell(gates, state)
        outputs.append(state[0])
    return outputs[::-1], state
