"""Recurrent layers: RNN, LSTM and GRU."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any, ClassVar

from convcore._errors import hinted
from convcore._errors.calls import unknown_keyword
from convcore._tensor import Tensor
from convcore._tensor.creation import empty, zeros
from convcore.autograd.casting import here
from convcore.functions.elementwise.casts import lowered
from convcore.functions.sequences.recurrent import (
    Cell,
    State,
    gru_cell,
    lstm_cell,
    recurrent_layer,
    rnn_cell,
)
from convcore.functions.shapes.joining import cat, stack
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.modules.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from convcore.nn.parameter import Parameter
from convcore.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: their parameters, and the run over layers and directions.

    Parameters
    ----------
    mode : 'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU'
    input_size, hidden_size : int
    num_layers : int
    bias : bool
    batch_first : bool
        Whether sequences are (N, L, input_size), not (L, N, input_size).
    dropout : float
        Of what all layers but the last give, while training.
    bidirectional : bool
        Whether each layer also runs from the end to the beginning.
    proj_size : int
        The size to which an LSTM's h is projected; 0 for no projection.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : Parameter
        Of the first layer; (gates * hidden_size, ...).  The next layer is l1; names end in
        _reverse for the second direction.  weight_hr_l0 is the projection.
    all_weights : list of lists of Parameters
        Those of each layer and direction.

    Raises
    ------
    TypeError, ValueError
        An argument of a wrong type, or a size that is not possible.
    """

    _printed_values = ("input_size", "hidden_size")
    _printed_attributes = (
        *("proj_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"),
    )
    _printed_unless: ClassVar[dict[str, Any]] = {
        **{"proj_size": 0, "num_layers": 1, "bias": True},
        **{"batch_first": False, "dropout": 0, "bidirectional": False},
    }

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_types(bool, bias=bias, batch_first=batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = self._shapes(layer)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @property
    def _output_size(self) -> int:
        """The size of h, for one direction."""
        return self.proj_size or self.hidden_size

    @property
    def _num_directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters of one layer and direction."""
        rows = _GATES[self.mode] * self.hidden_size
        columns = self._output_size * self._num_directions if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, columns),
            "weight_hh": (rows, self._output_size),
        }
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draw all parameters from the uniform distribution within 1 / sqrt(hidden_size) of 0."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: PyTorch puts a GPU's weights into one piece of memory."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for name in self._flat_weights_names]

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless the input has the weights' dtype, the right axes and features."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not here.enabled:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert "
                f"input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 3 if batch_sizes is None else 2
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """Return the shape of the states h."""
        if batch_sizes is not None:
            n = int(batch_sizes[0])
        else:
            n = input.size(0 if self.batch_first else 1)
        return self.num_layers * self._num_directions, n, self._output_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, ...],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise RuntimeError unless a state has this shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def _check_states(self, states: State, expected: tuple[int, int, int]) -> None:
        self.check_hidden_size(states[0], expected)

    def _check_ranks(self, hx: State, batched: bool) -> None:
        """Raise unless the states have a batch axis where the input has."""
        rank = 3 if batched else 2
        try:
            ranks = [x.dim() for x in hx]
        except AttributeError as error:
            hinted(error, "the state of a GRU or RNN is one tensor, h_0; an LSTM's is (h_0, c_0)")
            raise
        if any(one != rank for one in ranks):
            lead = f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, "
            if len(hx) == 1:
                got = f"hx should also be {rank}-D but got {ranks[0]}-D tensor"
            else:
                also = f"hx and cx should also be {rank}-D but got "
                got = also + f"({ranks[0]}-D, {ranks[1]}-D) tensors"
            raise RuntimeError(lead + got)

    # Running

    def _run(self, input: Any, hx: State | None) -> tuple[Any, State]:
        """Return output and states of a batch, one sequence, or packed sequences."""
        if isinstance(input, PackedSequence):
            data, sizes, order, back = input
            if hx is not None and order is not None:
                hx = tuple([x.index_select(1, order) for x in hx])
            self.check_input(data, sizes)
            out, states = self._layers(data, sizes.tolist(), self._states(hx, data, sizes))
            if back is not None:
                states = tuple([x.index_select(1, back) for x in states])
            return PackedSequence(out, sizes, order, back), states
        if input.dim() not in (2, 3):
            kind, tail = self._get_kind()
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}D{tail}")
        batched = input.dim() == 3
        if hx is not None:
            self._check_ranks(hx, batched)
        if not batched:
            hx = None if hx is None else tuple([x.unsqueeze(1) for x in hx])
            input = input.unsqueeze(0 if self.batch_first else 1)
        self.check_input(input, None)
        states = self._states(hx, input, None)
        steps = input.transpose(0, 1) if self.batch_first else input
        length, n, features = steps.shape
        if not length:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        out, states = self._layers(steps.reshape(length * n, features), [n] * length, states)
        out = out.reshape(length, n, -1 if n else self._output_size * self._num_directions)
        if not batched:
            return out.squeeze(1), tuple([x.squeeze(1) for x in states])
        return (out.transpose(0, 1) if self.batch_first else out), states

    def _get_kind(self) -> tuple[str, str]:
        """Return the name and the end of the error for an input of other axes."""
        return self.mode, " instead"

    def _states(self, hx: State | None, input: Tensor, batch_sizes: Tensor | None) -> State:
        """Return the states that were given, or zeros."""
        expected = self.get_expected_hidden_size(input, batch_sizes)
        if hx is not None:
            self._check_states(hx, expected)
            return hx
        shapes = [expected]
        if self.mode == "LSTM":
            shapes.append((*expected[:2], self.hidden_size))
        return tuple([zeros(shape, dtype=input.dtype) for shape in shapes])

    def _layers(self, x: Tensor, sizes: Sequence[int], states: State) -> tuple[Tensor, State]:
        """Run all layers along the rows of all time steps."""
        if here.enabled and self.mode == "LSTM":  # whose cell state is lower too, as in PyTorch
            x, *lower = [lowered(one) for one in (x, *states)]
            states = tuple(lower)
        found: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for reverse in range(self._num_directions):
                number = len(found)
                gates, cell = self._cell(x, self._all_weights[number])
                start = tuple([state[number] for state in states])
                out, state = recurrent_layer(gates, sizes, cell, start, bool(reverse))
                outputs.append(out)
                found.append(state)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, 1)
            if self.dropout and layer < self.num_layers - 1:
                x = functional.dropout(x, self.dropout, self.training)
        return x, tuple([stack(parts) for parts in zip(*found, strict=True)])

    def _cell(self, x: Tensor, names: list[str]) -> tuple[Tensor, Cell]:
        """Return what the input gives to the gates in all steps, and the cell."""
        own = {name.partition("_l")[0]: getattr(self, name) for name in names}
        w_hh, b_ih, b_hh = own["weight_hh"], own.get("bias_ih"), own.get("bias_hh")
        if self.mode == "GRU":
            return functional.linear(x, own["weight_ih"], b_ih), gru_cell(w_hh, b_hh)
        bias = None if b_ih is None else b_ih + b_hh
        gates = functional.linear(x, own["weight_ih"], bias)
        if self.mode == "LSTM":
            return gates, lstm_cell(w_hh, own.get("weight_hr"))
        return gates, rnn_cell(w_hh, "relu" if self.mode == "RNN_RELU" else "tanh")


def _check_dropout(dropout: Any, num_layers: int) -> None:
    if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element "
            "being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
            stacklevel=4,
        )


def _check_types(kind: type, **given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
            )


def _check_sizes(input_size: int, hidden_size: int, num_layers: int, proj_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        _check_types(int, **{name: size})
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """Elman RNN: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    nonlinearity : 'tanh' or 'relu'
    bias, batch_first, dropout, bidirectional, device, dtype
        As for `RNNBase`.

    Examples
    --------
    >>> import convcore
    >>> output, h_n = RNN(10, 20, 2)(convcore.ones(5, 3, 10))
    >>> output.shape, h_n.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        _check_keywords("RNN", kwargs, "nonlinearity")
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _get_kind(self) -> tuple[str, str]:
        return "RNN", " tensor instead"

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the outputs of all steps, and the last state of each layer and direction.

        Parameters
        ----------
        input : (L, N, input_size), (N, L, input_size) if batch_first, (L, input_size), or
            PackedSequence
        hx : (layers * directions, N, hidden_size), optional
            Zeros by default.
        """
        out, states = self._run(input, None if hx is None else (hx,))
        return out, states[0]


class GRU(RNNBase):
    """GRU: gated recurrent units.

    r = sigmoid(W_ir x + b_ir + W_hr h + b_hr), z likewise,
    n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), h' = (1 - z) * n + z * h.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, batch_first, dropout, bidirectional, device, dtype
        As for `RNNBase`.

    References
    ----------
    K. Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation", EMNLP 2014.

    Examples
    --------
    >>> import convcore
    >>> output, h_n = GRU(10, 20, bidirectional=True)(convcore.ones(5, 3, 10))
    >>> output.shape, h_n.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        _check_keywords("GRU", kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the outputs of all steps, and the last states; see `RNN.forward`."""
        out, states = self._run(input, None if hx is None else (hx,))
        return out, states[0]


# What a layer may be given by keyword: as the base's, without what the layer itself decides.
_KEYWORDS = [n for n in inspect.signature(RNNBase).parameters if n not in ("mode", "proj_size")]


def _check_keywords(layer: str, given: Iterable[str], *more: str) -> None:
    """Raise TypeError for a keyword that is no argument of a layer; the base would name itself."""
    names = (*_KEYWORDS, *more)
    for name in given:
        if name not in names:
            raise unknown_keyword(f"{layer}.__init__", name, names)


def _refuse_projection(kwargs: dict) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class LSTM(RNNBase):
    """LSTM: long short-term memory.

    i, f, o = sigmoid(W_i x + b_i + W_h h + b_h), g = tanh(likewise), c' = f * c + i * g,
    h' = o * tanh(c').

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
    bias, batch_first, dropout, bidirectional, proj_size, device, dtype
        As for `RNNBase`.

    References
    ----------
    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9, 1997.

    Examples
    --------
    >>> import convcore
    >>> output, (h_n, c_n) = LSTM(10, 20)(convcore.ones(5, 3, 10))
    >>> output.shape, c_n.shape
    (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _check_keywords("LSTM", kwargs, "proj_size")
        super().__init__("LSTM", *args, **kwargs)

    def _check_states(self, states: State, expected: tuple[int, int, int]) -> None:
        cells = (*expected[:2], self.hidden_size)
        self.check_hidden_size(states[0], expected, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(states[1], cells, "Expected hidden[1] size {}, got {}")

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Return the outputs of all steps, and the last states (h_n, c_n); see `RNN.forward`.

        Parameters
        ----------
        input : (L, N, input_size), (N, L, input_size) if batch_first, (L, input_size), or
            PackedSequence
        hx : h_0 (layers * directions, N, proj_size or hidden_size), c_0 (..., hidden_size); or None
        """
        try:
            state = None if hx is None else (hx[0], hx[1])
        except IndexError as error:
            hinted(error, "the state of an LSTM is a pair, (h_0, c_0)")
            raise
        return self._run(input, state)  # type: ignore[return-value]  # two states, of an LSTM
