"""Convolutions to check: edge shapes and drawn ones, each with a text to make it again from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from convcore.bench.layers import OPERANDS, Layer, parse_layer

DTYPES = ("float32", "float64", "complex64", "complex128")
VALUES = ("normal", "positive", "integers")
# How an operand lies in memory.  The first two have kernels of their own.
LAYOUTS = ("contiguous", "channels_last", "strided", "reversed", "unaligned")

# Shapes at the borders of the algorithms' conditions: nothing at all, single pixels and channels,
# one more or less than a vector, a tile or a block, kernels larger than the image.
_EDGES = (
    *("0,3,8,8,4,3", "1,1,1,1,1,1", "1,1,1,1,1,3,1,1", "2,3,4,5,6,3,1,2", "1,16,1,40,16,1x3,1,0x1"),
    *("1,16,16,16,16,3,1,1", "1,17,15,17,33,3,1,1", "2,32,9,9,64,3,2,1", "1,64,7,7,64,3,1,1"),
    *("1,128,14,14,256,1", "1,129,13,13,127,1,2", "3,3,33,31,64,7,2,3", "1,4,20,20,8,5,1,2"),
    *("1,35,19,19,35,3,1,1,1,35", "2,17,10,10,34,3,2,1,1,17", "1,16,12,12,32,3,1,1,1,4"),
    *("1,32,30,30,32,3,1,14,14", "1,8,5,5,8,5,5", "1,48,11,23,96,3x1,1,1x0", "5,2,2,2,3,2,2"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One convolution: its layer, dtype, the operands' memory layouts, and the numbers in them."""

    layer: Layer
    dtype: str
    layouts: tuple[str, str, str]
    values: str
    seed: int

    @property
    def text(self) -> str:
        """What `parse_case` reads this case from."""
        return f"{self.layer.spec} {self.dtype} {'/'.join(self.layouts)} {self.values} {self.seed}"

    def operands(self) -> dict[str, np.ndarray]:
        """Return input, weight and grad_output; the same numbers each time."""
        geometry, generator = self.layer.geometry, np.random.default_rng(self.seed)
        shapes = (geometry.input_shape, geometry.weight_shape, geometry.output_shape)
        return {
            name: _lay_out(_numbers(generator, shape, self.dtype, self.values), layout)
            for name, shape, layout in zip(OPERANDS, shapes, self.layouts, strict=True)
        }


def parse_case(text: str) -> Case:
    """Read a case from ``"N,C,H,W,O,k,s,p,d,g dtype layout/layout/layout values seed"``.

    Raises
    ------
    ValueError
        Another number of words; a word that is not one of those allowed; no layer.
    """
    words = text.split()
    if len(words) != 5:
        raise ValueError(f"a case has 5 words, layer dtype layouts values seed, got {text!r}")
    layer, dtype, layouts, values, seed = words
    names = tuple(layouts.split("/"))
    if len(names) != len(OPERANDS):
        raise ValueError(f"a case has a layout for each of {', '.join(OPERANDS)}, got {layouts!r}")
    for name, allowed in ((dtype, DTYPES), (values, VALUES), *((n, LAYOUTS) for n in names)):
        if name not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}, got {name!r}")
    if not seed.isdecimal():
        raise ValueError(f"seed must be a whole number, got {seed!r}")
    return Case(parse_layer(layer), dtype, (names[0], names[1], names[2]), values, int(seed))


def draw_cases(seed: int) -> Iterator[Case]:
    """Yield the edge shapes in all dtypes and both formats, then others without end."""
    generator = np.random.default_rng(seed)
    edges = list(itertools.product(_EDGES, DTYPES, LAYOUTS[:2]))
    generator.shuffle(edges)
    for number, (spec, dtype, layout) in enumerate(edges):
        yield Case(parse_layer(spec), dtype, (layout,) * 3, "normal", number)
    for number in itertools.count(len(edges)):
        yield _draw(generator, number)


def _draw(generator: np.random.Generator, seed: int) -> Case:
    """Draw a case; half are float32 and half the operands in one of the two formats."""

    def pick(values: tuple) -> object:
        return values[generator.integers(len(values))]

    layouts = tuple(pick((*LAYOUTS[:2], *LAYOUTS)) for _ in OPERANDS)
    dtype, values = pick(("float32", *DTYPES)), pick(("normal", *VALUES))
    return Case(_draw_layer(generator), dtype, layouts, values, seed)


def _draw_layer(generator: np.random.Generator) -> Layer:
    """Draw sizes of the kinds that algorithms differ by: few channels or many, groups, strides."""
    channels = generator.integers(1, (4, 20, 100)[generator.integers(3)], 2)
    groups = int((1, 1, 1, 2, 3, 16, 33)[generator.integers(7)])
    if groups > 3:  # depthwise, or nearly
        channels = generator.integers(1, 4, 2)
    kernel, stride, padding = ([0, 0] for _ in range(3))
    dilation = int((1, 1, 1, 1, 2, 3)[generator.integers(6)])
    sizes = [0, 0]
    square = generator.random() < 0.8
    for axis in range(2):
        if axis and square:
            kernel[1], stride[1], padding[1] = kernel[0], stride[0], padding[0]
        else:
            kernel[axis] = int((1, 1, 2, 3, 3, 3, 4, 5, 7)[generator.integers(9)])
            stride[axis] = int((1, 1, 1, 2, 2, 3)[generator.integers(6)])
            padding[axis] = int(generator.integers(0, dilation * (kernel[axis] - 1) + 2))
        least = max(1, dilation * (kernel[axis] - 1) + 1 - 2 * padding[axis])
        sizes[axis] = least + int(generator.integers(0, 40))
    return Layer(
        "drawn",
        int((1, 1, 2, 5)[generator.integers(4)]),
        int(channels[0]) * groups,
        (sizes[0], sizes[1]),
        int(channels[1]) * groups,
        (kernel[0], kernel[1]),
        (stride[0], stride[1]),
        (padding[0], padding[1]),
        (dilation, dilation),
        groups,
    )


def _numbers(
    generator: np.random.Generator, shape: tuple[int, ...], dtype: str, values: str
) -> np.ndarray:
    """Return numbers of a kind: normal deviates, their absolute values, or integers up to 4."""

    def real() -> np.ndarray:
        if values == "integers":
            return generator.integers(-4, 5, shape).astype(np.float64)
        drawn = generator.standard_normal(shape)
        return np.abs(drawn) if values == "positive" else drawn

    array = real() + 1j * real() if np.dtype(dtype).kind == "c" else real()
    return array.astype(dtype)


def _lay_out(array: np.ndarray, layout: str) -> np.ndarray:
    """Return the same numbers, lying in memory as the layout says."""
    if layout == "channels_last":
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    if layout == "reversed":
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    if layout == "strided":
        larger = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        larger[..., ::2] = array
        return larger[..., ::2]
    if layout == "unaligned":
        room = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        room[...] = array
        return room
    return array
