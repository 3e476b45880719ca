"""One convolution layer: its sizes, the text form ``"N,C,H,W,O,k,s,p,d,g"``, its three passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convcore.engine.geometry import Geometry

FIELDS = ("N", "C", "H", "W", "O", "k", "s", "p", "d", "g")
PASSES = ("forward", "input_grad", "weight_grad")
OPERANDS = ("input", "weight", "grad_output")
FORMATS = ("contiguous", "channels_last")
DTYPES = ("float32", "float64")
_MEANINGS = {
    "N": "images in the batch",
    "C": "input channels",
    "H": "input height",
    "W": "input width",
    "O": "output channels",
    "k": "kernel size",
    "s": "stride",
    "p": "padding",
    "d": "dilation",
    "g": "groups",
}
_DEFAULTS = {"s": "1", "p": "0", "d": "1", "g": "1"}
_PER_AXIS = frozenset("kspd")
_LEAST = {"N": 0, "p": 0}

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """A 2-d convolution: input (N, C_in, H, W), weight (C_out, C_in/G, KH, KW)."""

    name: str
    n: int
    c_in: int
    h: int
    w: int
    c_out: int
    kernel: Pair
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    @property
    def geometry(self) -> Geometry:
        """The engine's geometry of this layer; a ValueError if there is none."""
        # Here, not above: the engine's package loads the kernels, and a layer is only numbers.
        from convcore.engine.geometry import make_geometry

        # A weight has whole channels a group: refuse here what the division below would hide.
        if self.c_in % self.groups:
            raise ValueError(
                "C (input channels) must be divisible by g (groups), "
                f"got {self.c_in} and {self.groups}"
            )
        weight = (self.c_out, self.c_in // self.groups, *self.kernel)
        image = (self.n, self.c_in, self.h, self.w)
        return make_geometry(image, weight, self.stride, self.padding, self.dilation, self.groups)

    @property
    def steps(self) -> dict[str, Any]:
        """The keyword arguments of the engine's three passes."""
        return {
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "groups": self.groups,
        }

    @property
    def dense(self) -> bool:
        """Whether every output sees every input channel: neither grouped nor depthwise."""
        return self.groups == 1

    @property
    def spec(self) -> str:
        """The text that `parse_layer` reads this layer from."""
        axes = (self.kernel, self.stride, self.padding, self.dilation)
        sizes = (self.n, self.c_in, self.h, self.w, self.c_out)
        return ",".join([*map(str, sizes), *map(_pair_text, axes), str(self.groups)])


def pass_calls(
    library: Any, layer: Layer, operands: Mapping[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Return the three passes of a layer, as functions of no arguments.

    Parameters
    ----------
    library : module
        Has ``conv_forward``, ``conv_input_grad`` and ``conv_weight_grad``, as convcore.engine.
    layer : Layer
    operands : mapping
        ``input``, ``weight`` and ``grad_output``.
    """
    x, w, gy = (operands[name] for name in OPERANDS)
    steps, size, kernel = layer.steps, (layer.h, layer.w), layer.kernel
    return {
        "forward": lambda: library.conv_forward(x, w, **steps),
        "input_grad": lambda: library.conv_input_grad(gy, w, size, **steps),
        "weight_grad": lambda: library.conv_weight_grad(x, gy, kernel, **steps),
    }


def parse_layer(spec: str, name: str | None = None) -> Layer:
    """Read a layer from ``"N,C,H,W,O,k,s,p,d,g"``.

    Parameters
    ----------
    spec : str
        Whole numbers between commas.  k, s, p and d may be two, as ``3x5``: height, then width.
        s, p, d and g may be left out from the end; they are then 1, 0, 1 and 1.
    name : str, optional
        What tables call the layer; the text itself if none is given.

    Raises
    ------
    ValueError
        Too few or too many fields; a field that is no number or too small (the message names it);
        sizes that make no convolution.

    Examples
    --------
    >>> parse_layer("1,3,224,224,64,7,2,3").geometry.output_shape
    (1, 64, 112, 112)
    >>> parse_layer("1,8,9,9,8,3x5").kernel
    (3, 5)
    """
    parts = [part.strip() for part in spec.split(",")]
    required = len(FIELDS) - len(_DEFAULTS)
    if not required <= len(parts) <= len(FIELDS):
        raise ValueError(
            f"a layer has {required} to {len(FIELDS)} fields, {','.join(FIELDS)}, "
            f"got {len(parts)}: {spec!r}"
        )
    texts = dict(_DEFAULTS, **dict(zip(FIELDS, parts, strict=False)))
    values = {field: _read(field, texts[field]) for field in FIELDS}
    scalars = {field: value[0] for field, value in values.items()}
    layer = Layer(
        name or spec,
        *(scalars[field] for field in "NCHWO"),
        *(values[field] for field in "kspd"),
        scalars["g"],
    )
    # Asked for once here, so that sizes without a convolution fail now and not in a worker.
    _ = layer.geometry
    return layer


def _read(field: str, text: str) -> Pair:
    """Parse a field: ``"3x5"`` gives (3, 5), and ``"3"`` gives (3, 3)."""
    allowed = r"(\d+)(?:x(\d+))?" if field in _PER_AXIS else r"(\d+)"
    match = re.fullmatch(allowed, text, re.ASCII)
    if match is None:
        form = "a whole number, or two as 3x5" if field in _PER_AXIS else "a whole number"
        raise ValueError(f"{field} ({_MEANINGS[field]}) must be {form}, got {text!r}")
    values = [int(group) for group in match.groups() if group is not None]
    least = _LEAST.get(field, 1)
    if min(values) < least:
        raise ValueError(f"{field} ({_MEANINGS[field]}) must be at least {least}, got {text!r}")
    return values[0], values[-1]


def _pair_text(pair: Pair) -> str:
    return str(pair[0]) if pair[0] == pair[1] else f"{pair[0]}x{pair[1]}"
