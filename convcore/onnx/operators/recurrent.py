"""Recurrent layers: RNN, GRU, LSTM, each in one direction or both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import convcore
from convcore._tensor.reads import mark_static
from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.operators.registry import operator
from convcore.onnx.values import Value, integers

# Of one direction: from all inputs to their share of the gates, and from a time's share and the
# states before it to those after it.
Step = tuple[Callable[[Value], Value], Callable[..., tuple[Value, ...]]]


def _activation(name: str, alpha: float | None, beta: float | None) -> Callable[[Value], Value]:
    a, b = alpha, beta
    functions: dict[str, Callable[[Value], Value]] = {
        "affine": lambda x: (1.0 if a is None else a) * x + (0.0 if b is None else b),
        "elu": lambda x: F.elu(x, 1.0 if a is None else a),
        "hardsigmoid": lambda x: convcore.clamp(
            (0.2 if a is None else a) * x + (0.5 if b is None else b), 0, 1
        ),
        "leakyrelu": lambda x: F.leaky_relu(x, 0.01 if a is None else a),
        "relu": F.relu,
        "scaledtanh": lambda x: (
            (1.0 if a is None else a) * convcore.tanh((1.0 if b is None else b) * x)
        ),
        "sigmoid": convcore.sigmoid,
        "softplus": F.softplus,
        "softsign": F.softsign,
        "tanh": convcore.tanh,
        "thresholdedrelu": lambda x: F.threshold(x, 1.0 if a is None else a, 0.0),
    }
    if name.lower() not in functions:
        raise OnnxError(f"unknown activation {name!r}")
    return functions[name.lower()]


# The parameters are given in one list each, to those activations that have them.
_WITH_BETA = ("affine", "hardsigmoid", "scaledtanh")
_WITH_ALPHA = (*_WITH_BETA, "elu", "leakyrelu", "thresholdedrelu")


def _given_out(values: list[float], names: list[str], takers: tuple[str, ...]) -> list[Any]:
    """Return for each activation the next value if it takes one, None if not or at the end."""
    rest = iter(values)
    return [next(rest, None) if name.lower() in takers else None for name in names]


def _bounded(x: Value, clip: float | None) -> Value:
    return x if clip is None else convcore.clamp(x, -clip, clip)


class _Layer:
    """One recurrent layer: its options, and the walk over time in each direction."""

    def __init__(self, options: dict[str, Any], defaults: list[str]) -> None:
        self.direction = options.get("direction", "forward")
        self.layout, self.clip = options.get("layout", 0), options.get("clip")
        self.names = options.get("activations") or defaults * (2 if self.both else 1)
        self.per_direction = len(defaults)
        alphas, betas = (options.get(f"activation_{name}") or [] for name in ("alpha", "beta"))
        self.alphas = _given_out(alphas, self.names, _WITH_ALPHA)
        self.betas = _given_out(betas, self.names, _WITH_BETA)

    @property
    def both(self) -> bool:
        """Whether it runs in both directions."""
        return self.direction == "bidirectional"

    def activations(self, direction: int) -> list[Callable[[Value], Value]]:
        """Return the activations of a direction."""
        first = direction * self.per_direction
        places = range(first, first + self.per_direction)
        return [_activation(self.names[p], self.alphas[p], self.betas[p]) for p in places]

    def run(
        self, x: Value, lengths: Value, states: list[Value], step: Callable[[int], Step]
    ) -> tuple[Value, ...]:
        """Return all outputs (time, directions, N, hidden), and the last states."""
        x = x.transpose(0, 1) if self.layout else x
        states = [s.transpose(0, 1) if self.layout else s for s in states]
        counts = None if lengths is None else integers(lengths)
        ways = [
            _walk(x, counts, [s[d] for s in states], step(d), d == 1 or self.direction == "reverse")
            for d in range(2 if self.both else 1)
        ]
        outputs = convcore.stack([way[0] for way in ways], 1)
        last = [convcore.stack([way[1][k] for way in ways]) for k in range(len(states))]
        if self.layout:
            outputs = outputs.permute(2, 0, 1, 3)
            last = [state.transpose(0, 1) for state in last]
        return (outputs, *last)


def _walk(
    x: Value, counts: list[int] | None, states: list[Value], step: Step, backwards: bool
) -> tuple[Value, list[Value]]:
    share, advance = step
    shares = share(x)  # of all times in one product, which reads the weights once
    outputs: list[Any] = [None] * len(x)
    order = range(len(x))
    for time in reversed(order) if backwards else order:
        new = advance(shares[time], *states)
        shown = new[0]
        if counts is not None:
            alive = convcore.tensor([time < n for n in counts]).reshape(-1, 1)
            new = tuple(convcore.where(alive, a, b) for a, b in zip(new, states, strict=True))
            shown = convcore.where(alive, shown, convcore.zeros_like(shown))
        states, outputs[time] = list(new), shown
    return convcore.stack(outputs), states


def _start(initial: Value, x: Value, directions: int, hidden: int, layout: int) -> Value:
    if initial is not None:
        return initial
    batch = x.shape[0] if layout else x.shape[1]
    return _zeros(x, *((batch, directions, hidden) if layout else (directions, batch, hidden)))


def _zeros(x: Value, *shape: int) -> Value:
    zeros = x.new_zeros(shape)
    mark_static(zeros)
    return zeros


def _biases(bias: Value, direction: int, x: Value, rows: int) -> tuple[Value, Value]:
    both = _zeros(x, 2 * rows) if bias is None else bias[direction]
    return both[:rows], both[rows:]


def _wanted(results: tuple[Value, ...], outputs: int) -> Any:
    return results[:outputs] if outputs > 1 else results[0]


@operator("RNN", weights=(1, 2, 3))
def rnn(
    x: Value,
    weight: Value,
    recurrence: Value,
    bias: Value = None,
    lengths: Value = None,
    initial: Value = None,
    *,
    outputs: int,
    hidden_size: int | None = None,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    layout: int = 0,
) -> Any:
    """Return h = f(W x + R h + b) over time, and the last h."""
    layer = _Layer(locals(), ["Tanh"])
    hidden = recurrence.shape[-1]

    def step(d: int) -> Step:
        (f,) = layer.activations(d)
        wb, rb = _biases(bias, d, x, hidden)
        inner = recurrence[d]

        def one(xt: Value, h: Value) -> tuple[Value, ...]:
            return (f(_bounded(xt + F.linear(h, inner, rb), clip)),)

        return partial(F.linear, weight=weight[d], bias=wb), one

    h0 = _start(initial, x, len(weight), hidden, layout)
    return _wanted(layer.run(x, lengths, [h0], step), outputs)


@operator("GRU", weights=(1, 2, 3))
def gru(
    x: Value,
    weight: Value,
    recurrence: Value,
    bias: Value = None,
    lengths: Value = None,
    initial: Value = None,
    *,
    outputs: int,
    hidden_size: int | None = None,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    layout: int = 0,
    linear_before_reset: int = 0,
) -> Any:
    """Return the gated recurrent unit's h over time, and the last h."""
    layer = _Layer(locals(), ["Sigmoid", "Tanh"])
    hidden = recurrence.shape[-1]

    def step(d: int) -> Step:
        f, g = layer.activations(d)
        wb, rb = _biases(bias, d, x, 3 * hidden)
        inner = recurrence[d]

        def one(xt: Value, h: Value) -> tuple[Value, ...]:
            xz, xr, xh = xt.chunk(3, -1)
            hz, hr = F.linear(h, inner[: 2 * hidden], rb[: 2 * hidden]).chunk(2, -1)
            z, r = f(_bounded(xz + hz, clip)), f(_bounded(xr + hr, clip))
            last, offset = inner[2 * hidden :], rb[2 * hidden :]
            if linear_before_reset:
                new = g(_bounded(xh + r * F.linear(h, last, offset), clip))
            else:
                new = g(_bounded(xh + F.linear(r * h, last, offset), clip))
            return ((1 - z) * new + z * h,)

        return partial(F.linear, weight=weight[d], bias=wb), one

    h0 = _start(initial, x, len(weight), hidden, layout)
    return _wanted(layer.run(x, lengths, [h0], step), outputs)


@operator("LSTM", weights=(1, 2, 3, 7))
def lstm(
    x: Value,
    weight: Value,
    recurrence: Value,
    bias: Value = None,
    lengths: Value = None,
    initial_h: Value = None,
    initial_c: Value = None,
    peepholes: Value = None,
    *,
    outputs: int,
    hidden_size: int | None = None,
    activations: list[str] | None = None,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    input_forget: int = 0,
    layout: int = 0,
) -> Any:
    """Return the long short-term memory's h over time, the last h and the last cell."""
    layer = _Layer(locals(), ["Sigmoid", "Tanh", "Tanh"])
    hidden = recurrence.shape[-1]

    def step(d: int) -> Step:
        f, g, k = layer.activations(d)
        wb, rb = _biases(bias, d, x, 4 * hidden)
        inner = recurrence[d]
        pi, po, pf = (None,) * 3 if peepholes is None else peepholes[d].chunk(3)

        def gate(x: Value, peephole: Value, c: Value) -> Value:
            return f(_bounded(x if peephole is None else x + peephole * c, clip))

        def one(xt: Value, h: Value, c: Value) -> tuple[Value, ...]:
            xi, xo, xf, xc = (xt + F.linear(h, inner, rb)).chunk(4, -1)
            i = gate(xi, pi, c)
            forget = 1 - i if input_forget else gate(xf, pf, c)
            c = forget * c + i * g(_bounded(xc, clip))
            return gate(xo, po, c) * k(c), c

        return partial(F.linear, weight=weight[d], bias=wb), one

    starts = [_start(s, x, len(weight), hidden, layout) for s in (initial_h, initial_c)]
    return _wanted(layer.run(x, lengths, starts, step), outputs)
