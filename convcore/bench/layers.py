"""One convolution layer of any rank: its sizes, its text form, its three passes.

The text of a 2-d layer is ``"N,C,H,W,O,k,s,p,d,g"``; others begin with their kind and have as many
sizes: ``"1d:N,C,W,O,k"``, ``"3d:N,C,D,H,W,O,k"``, ``"2d transposed:N,C,H,W,O,k"``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convcore.engine.geometry import Geometry

FIELDS = (*"NCHWOkspdg",)
PASSES = ("forward", "input_grad", "weight_grad")
OPERANDS = ("input", "weight", "grad_output")
FORMATS = ("contiguous", "channels_last")
DTYPES = ("float32", "float64")
_MEANINGS = {
    "N": "images in the batch",
    "C": "input channels",
    "D": "input depth",
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
_KIND = re.compile(r"([123])d( transposed)?", re.ASCII)

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution: input (N, C_in, *size), weight (C_out, C_in/G, *kernel).

    A transposed one has the weight (C_in, C_out/G, *kernel), and computes what the input gradient
    of `geometry` is: its own input is that one's output.
    """

    name: str
    n: int
    c_in: int
    size: Sizes
    c_out: int
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int = 1
    transposed: bool = False

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.size)

    @property
    def geometry(self) -> Geometry:
        """The engine's geometry of this layer; a ValueError if there is none."""
        # Here, not above: the engine's package loads the kernels, and a layer is only numbers.
        from convcore.engine.geometry import make_geometry

        # A weight has whole channels a group: refuse here what the division below would hide.
        divided = {"C (input channels)": self.c_in}
        if self.transposed:
            divided["O (output channels)"] = self.c_out
        for name, channels in divided.items():
            if channels % self.groups:
                raise ValueError(
                    f"{name} must be divisible by g (groups), got {channels} and {self.groups}"
                )
        first, second, size = self.c_out, self.c_in, self.size
        if self.transposed:
            first, second = second, first
            size = tuple(
                (n - 1) * s - 2 * p + d * (k - 1) + 1
                for n, s, p, d, k in zip(
                    size, self.stride, self.padding, self.dilation, self.kernel, strict=True
                )
            )
        weight = (first, second // self.groups, *self.kernel)
        return make_geometry(
            (self.n, second, *size), weight, self.stride, self.padding, self.dilation, self.groups
        )

    @property
    def shapes(self) -> dict[str, Sizes]:
        """The shapes of input, weight and grad_output."""
        g = self.geometry
        ends = (g.input_shape, g.output_shape)
        first, last = reversed(ends) if self.transposed else ends
        return dict(zip(OPERANDS, (first, g.weight_shape, last), strict=True))

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
    def kind(self) -> str:
        """What tables of many layers sort by: its rank, or how it differs from a plain one."""
        if self.transposed:
            return "transposed"
        if not self.dense:
            return "depthwise" if self.groups == self.c_in else "grouped"
        if self.rank == 2 and set(self.kernel) == {1}:
            return "1x1"
        return f"{self.rank}-d"

    @property
    def spec(self) -> str:
        """The text that `parse_layer` reads this layer from."""
        axes = (self.kernel, self.stride, self.padding, self.dilation)
        sizes = (self.n, self.c_in, *self.size, self.c_out)
        text = ",".join([*map(str, sizes), *map(_axes_text, axes), str(self.groups)])
        if self.rank == 2 and not self.transposed:
            return text
        return f"{self.rank}d{' transposed' * self.transposed}:{text}"

    def pass_of_geometry(self, pass_name: str) -> str:
        """Return which pass of the geometry a pass of this layer is."""
        swapped = {"forward": "input_grad", "input_grad": "forward"}
        return swapped.get(pass_name, pass_name) if self.transposed else pass_name


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
    if layer.transposed:
        x, gy = gy, x
    steps, size, kernel = layer.steps, layer.geometry.input_shape[2:], layer.kernel
    calls = {
        "forward": lambda: library.conv_forward(x, w, **steps),
        "input_grad": lambda: library.conv_input_grad(gy, w, size, **steps),
        "weight_grad": lambda: library.conv_weight_grad(x, gy, kernel, **steps),
    }
    return {name: calls[layer.pass_of_geometry(name)] for name in PASSES}


def parse_layer(spec: str, name: str | None = None) -> Layer:
    """Read a layer from ``"N,C,H,W,O,k,s,p,d,g"``, or the text of another kind.

    Parameters
    ----------
    spec : str
        Whole numbers between commas.  k, s, p and d may be one an axis, as ``3x5``: height, then
        width.  s, p, d and g may be left out from the end; they are then 1, 0, 1 and 1.  Before
        them ``1d:``, ``3d:``, ``2d transposed:`` and so on; an axis D, H and W each of that rank.
    name : str, optional
        What tables call the layer; the text itself if none is given.

    Raises
    ------
    ValueError
        Another kind; too few or too many fields; a field that is no number or too small (the
        message names it); sizes that make no convolution.

    Examples
    --------
    >>> parse_layer("1,3,224,224,64,7,2,3").geometry.output_shape
    (1, 64, 112, 112)
    >>> parse_layer("1,8,9,9,8,3x5").kernel
    (3, 5)
    >>> parse_layer("1d transposed:1,8,10,4,4,2").shapes["grad_output"]
    (1, 4, 22)
    """
    kind, colon, numbers = spec.rpartition(":")
    match = _KIND.fullmatch(kind.strip() if colon else "2d")
    if match is None:
        raise ValueError(
            f"a layer's kind is 1d, 2d or 3d, with ' transposed' or not, got {kind!r} in {spec!r}"
        )
    rank, transposed = int(match[1]), match[2] is not None
    fields = (*"NC", *"DHW"[3 - rank :], *"Okspdg")
    parts = [part.strip() for part in numbers.split(",")]
    required = len(fields) - len(_DEFAULTS)
    if not required <= len(parts) <= len(fields):
        raise ValueError(
            f"a layer has {required} to {len(fields)} fields, {','.join(fields)}, "
            f"got {len(parts)}: {spec!r}"
        )
    texts = dict(_DEFAULTS, **dict(zip(fields, parts, strict=False)))
    values = {field: _read(field, texts[field], rank) for field in fields}
    layer = Layer(
        name or spec,
        *(values[field][0] for field in "NC"),
        tuple(values[field][0] for field in fields[2 : 2 + rank]),
        values["O"][0],
        *(values[field] for field in "kspd"),
        values["g"][0],
        transposed,
    )
    # Asked for once here, so that sizes without a convolution fail now and not in a worker.
    _ = layer.geometry
    return layer


def _read(field: str, text: str, rank: int) -> Sizes:
    """Parse a field: ``"3x5"`` gives (3, 5), and ``"3"`` gives a 3 for each axis."""
    is_per_axis = field in _PER_AXIS and rank > 1
    found = text.split("x") if is_per_axis else [text]
    if len(found) not in (1, rank) or not all(re.fullmatch(r"\d+", n, re.ASCII) for n in found):
        several = {2: ", or two as 3x5", 3: ", or three as 3x5x5"}
        form = f"a whole number{several[rank] if is_per_axis else ''}"
        raise ValueError(f"{field} ({_MEANINGS[field]}) must be {form}, got {text!r}")
    values = tuple(map(int, found))
    least = _LEAST.get(field, 1)
    if min(values) < least:
        raise ValueError(f"{field} ({_MEANINGS[field]}) must be at least {least}, got {text!r}")
    return values * rank if len(values) == 1 else values


def _axes_text(values: Sizes) -> str:
    return str(values[0]) if len(set(values)) == 1 else "x".join(map(str, values))
