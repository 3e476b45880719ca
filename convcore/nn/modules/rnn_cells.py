"""Recurrent cells: one step of an RNN, LSTM or GRU."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from convcore._tensor import Tensor
from convcore._tensor.creation import empty, zeros
from convcore.functions.sequences.recurrent import Cell, State, gru_cell, lstm_cell, rnn_cell
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """What the cells share: their parameters.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    num_chunks : int
        The number of gates.
    device, dtype
        Of the parameters.
    """

    _printed_values = ("input_size", "hidden_size")
    _printed_attributes = ("bias",)
    _printed_unless: ClassVar[dict[str, Any]] = {"bias": True}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        made = partial(empty, device=device, dtype=dtype)
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(made(rows, input_size))
        self.weight_hh = Parameter(made(rows, hidden_size))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(made(rows)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from the uniform distribution within 1 / sqrt(hidden_size) of 0."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _prepared(self, input: Tensor, hx: State | None, n_states: int) -> tuple[Tensor, State]:
        """Return input and states as batches, checked."""
        kind = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{kind}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for number, state in enumerate(hx or ()):
            if state.dim() not in (1, 2):
                what = "hidden" if n_states == 1 else f"hx[{number}]"
                raise ValueError(
                    f"{kind}: Expected {what} to be 1D or 2D, got {state.dim()}D instead"
                )
        if input.dim() == 1:
            input = input.unsqueeze(0)
            hx = None if hx is None else tuple([x.unsqueeze(0) for x in hx])
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        if hx is None:
            zero = zeros(input.shape[0], self.hidden_size, dtype=input.dtype)
            return input, (zero,) * n_states
        for number, state in enumerate(hx):
            self._check_state(number, state, input)
        return input, hx

    def _check_state(self, number: int, state: Tensor, input: Tensor) -> None:
        if state.shape[0] != input.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size "
                f"{state.shape[0]}"
            )
        if state.shape[1] != self.hidden_size:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected "
                f"{self.hidden_size}"
            )

    def _run(self, input: Tensor, hx: State | None, cell: Cell, n_states: int = 1) -> State:
        """Return the next states."""
        x, states = self._prepared(input, hx, n_states)
        bias = self.bias_ih
        if bias is not None and not isinstance(self, GRUCell):
            bias = bias + self.bias_hh
        states = cell(functional.linear(x, self.weight_ih, bias), states)
        return states if input.dim() == 2 else tuple([x.squeeze(0) for x in states])


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    Parameters
    ----------
    input_size, hidden_size : int
    bias : bool
    nonlinearity : 'tanh' or 'relu'
    device, dtype
        Of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:  # noqa: D102
        usual = super().extra_repr()
        is_tanh = self.nonlinearity == "tanh"
        return usual if is_tanh else f"{usual}, nonlinearity={self.nonlinearity}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state, (N, hidden_size) or (hidden_size,)."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = rnn_cell(self.weight_hh, self.nonlinearity)
        return self._run(input, None if hx is None else (hx,), cell)[0]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`; the arguments are those of `RNNCell` without a nonlinearity."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        """Return the next states h and c, each (N, hidden_size) or (hidden_size,)."""
        states = None if hx is None else (hx[0], hx[1])
        return self._run(input, states, lstm_cell(self.weight_hh), 2)


class GRUCell(RNNCellBase):
    """One step of `GRU`; the arguments are those of `RNNCell` without a nonlinearity."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state, (N, hidden_size) or (hidden_size,)."""
        cell = gru_cell(self.weight_hh, self.bias_hh)
        return self._run(input, None if hx is None else (hx,), cell)[0]
