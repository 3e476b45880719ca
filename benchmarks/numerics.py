"""Errors of every convolution algorithm on the layers of real nets, for inputs of five kinds.

    python benchmarks/numerics.py                  # the tables of docs/numerics.md, some minutes
    python benchmarks/numerics.py --sample 12      # every twelfth layer

Each pass of each layer is computed by each algorithm that can, in both memory formats, and compared
with the float64 oracle (`convcore.engine.reference`).  An error is counted in eps of float32,

    max |y - y64| / max conv(|x|, |w|)      the first table: of the largest sum of |products|
    max (|y - y64| / conv(|x|, |w|))        the second: of each element's own

So that it takes minutes, channels that no sum runs over are at most `CHANNELS`, there is one image,
and maps are at most `SIDE` wide: sums of the forward pass and of the input gradient are as long as
in the net, those of the weight gradient of up to SIDE * SIDE products.  "chosen" is the error of
the algorithm that the engine chooses for the whole layer, "chosen, strict" in strict mode.  The
exit code is 1 if an error exceeds `allowed`, which docs/numerics.md states.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from convcore import engine
from convcore.bench.layers import FORMATS, OPERANDS, PASSES, Layer, parse_layer, pass_calls
from convcore.bench.suites import SUITES, layers_of
from convcore.engine import reference
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.selection import selected
from convcore.verify.cases import Case
from convcore.verify.checks import MOST_EPS, _taken

CHANNELS = 24
SIDE = 56
DIRECT = {algorithm.name: algorithm.direct for algorithm in ALGORITHMS}
# Passes, and the axes of the weight (out, in) that no sum of theirs runs over.
_FREE = {"forward": ("c_out",), "input_grad": ("c_in",), "weight_grad": ("c_out", "c_in")}
# More layers than the suites have, as nets have them for one image: channels, side, channels out,
# kernel, and where they are not 1, 0, 1, 1: stride, padding, dilation, groups.
MORE = {
    "SqueezeNet 1.1": """64,55,16,1 16,55,64,1 16,55,64,3,1,1 128,55,16,1 128,27,32,1 32,27,128,1
        32,27,128,3,1,1 256,27,32,1 256,13,48,1 48,13,192,1 48,13,192,3,1,1 384,13,48,1 384,13,64,1
        64,13,256,3,1,1 512,13,1000,1""",
    "GoogLeNet": """192,28,64,1 192,28,96,1 96,28,128,3,1,1 192,28,16,1 16,28,32,5,1,2 256,28,128,1
        128,28,192,3,1,1 32,28,96,5,1,2 480,14,192,1 96,14,208,3,1,1 16,14,48,5,1,2 112,14,224,3,1,1
        144,14,288,3,1,1 160,14,320,3,1,1 832,7,256,1 192,7,384,3,1,1 48,7,128,5,1,2""",
    "DenseNet-121": """128,56,32,3,1,1 64,56,128,1 256,56,128,1 128,28,32,3,1,1 512,28,256,1
        128,14,32,3,1,1 1024,14,512,1 128,7,32,3,1,1 992,7,128,1""",
    "EfficientNet-B0": """32,112,16,1 16,112,96,1 96,56,24,1 144,28,40,1 40,28,240,1
        240,28,240,3,2,1,1,240 240,14,80,1 80,14,480,1 480,14,480,3,1,1,1,480 480,14,480,5,1,2,1,480
        480,14,112,1 112,14,672,1 672,14,672,5,1,2,1,672 672,14,672,5,2,2,1,672 672,7,192,1
        192,7,1152,1 1152,7,1152,5,1,2,1,1152 1152,7,1152,3,1,1,1,1152""",
    "ShuffleNetV2": """24,56,24,3,2,1,1,24 24,28,58,1 58,28,58,3,1,1,1,58 58,28,58,1
        116,28,116,3,2,1,1,116 116,14,116,1 116,14,116,3,1,1,1,116 232,7,232,1 232,7,232,3,1,1,1,232
        464,7,1024,1""",
    "Darknet-53": """3,416,32,3,1,1 32,416,64,3,2,1 64,208,32,1 64,208,128,3,2,1 128,104,64,1
        64,104,128,3,1,1 256,52,128,1 128,52,256,3,1,1 512,26,256,1 256,26,512,3,1,1 1024,13,512,1
        512,13,1024,3,1,1 1024,13,255,1""",
    "SRCNN, ESPCN": "1,64,64,9,1,4 64,64,32,5,1,2 32,64,1,5,1,2 1,64,64,5,1,2 32,64,9,3,1,1",
    "AlexNet": "64,27,192,5,1,2 192,13,384,3,1,1 384,13,256,3,1,1 256,13,256,3,1,1",
    "ResNet-18": "64,56,128,3,2,1 64,56,128,1,2 128,28,256,3,2,1 256,14,512,3,2,1 256,14,512,1,2",
    "ConvNeXt-T": """96,56,192,2,2 192,28,192,7,1,3,1,192 192,28,384,2,2 384,14,384,7,1,3,1,384
        384,14,768,2,2""",
    "RegNetY-400MF": """48,56,48,3,2,1,1,6 104,28,104,3,1,1,1,13 208,14,208,3,1,1,1,26
        440,7,440,3,1,1,1,55""",
    "DCGAN": "3,64,64,4,2,1 64,32,128,4,2,1 128,16,256,4,2,1 256,8,512,4,2,1 512,4,1,4",
    "dilated": "64,56,64,3,1,8,8 128,28,128,3,1,16,16",
}
Array = np.ndarray
Errors = dict[tuple[str, str], list[float]]


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw normal deviates."""
    return rng.standard_normal(shape)


def positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw numbers of one sign: after a ReLU, with weights of one sign."""
    return np.abs(rng.standard_normal(shape))


def cancelling(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw channels in pairs of x and -x (1 + 1e-3): what sums over them is nearly zero."""
    drawn = 1 + rng.random(shape)
    pairs = shape[1] // 2 * 2
    drawn[:, 1:pairs:2] = -drawn[:, 0:pairs:2] * (1 + 1e-3 * rng.random(drawn[:, 1:pairs:2].shape))
    return drawn


def scaled_channels(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw channels of scales from 1e-4 to 1e4."""
    scales = 10 ** rng.uniform(-4, 4, (1, shape[1], 1, 1))
    return rng.standard_normal(shape) * scales


def scaled_pixels(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw maps in which one pixel in fifty is a million times as large."""
    spots = np.where(rng.random((shape[0], 1, *shape[2:])) < 0.02, 1e6, 1.0)
    return rng.standard_normal(shape) * spots


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    kind.__name__: kind for kind in (normal, positive, cancelling, scaled_channels, scaled_pixels)
}
_WEIGHTS = {"positive": positive}  # elsewhere normal, and of one sign where inputs cancel


def allowed(algorithm: str, kind: str, terms: int) -> float:
    """Return the most eps, of the largest sum, that docs/numerics.md states for a kind of input."""
    most = MOST_EPS[DIRECT[algorithm]]
    if kind == "normal":
        return most
    if kind == "scaled_pixels" and not DIRECT[algorithm]:
        return math.inf
    # What stays large while it is added to is rounded each time: the errors grow with the root of
    # the number of terms.
    return most + 0.75 * math.sqrt(terms)


def reduced(layer: Layer, pass_name: str) -> Layer:
    """Return a layer of the same sums with fewer results."""
    sizes = {"n": 1, "size": tuple(min(n, SIDE) for n in layer.size)}
    if layer.groups == 1:
        sizes |= {name: min(getattr(layer, name), CHANNELS) for name in _FREE[pass_name]}
    return dataclasses.replace(layer, **sizes)


def operands_of(layer: Layer, kind: str, channels_last: bool) -> dict[str, Array]:
    """Return input, weight and grad_output; the map of each pass is of the kind."""
    geometry, rng = layer.geometry, np.random.default_rng(20)
    shapes = (geometry.input_shape, geometry.weight_shape, geometry.output_shape)
    found = {}
    for name, shape in zip(OPERANDS, shapes, strict=True):
        draw = KINDS[kind] if name != "weight" else _WEIGHTS.get(kind, normal)
        if name == "weight" and kind == "cancelling":
            draw = _even
        array = draw(rng, shape).astype("f4")
        if channels_last:
            array = np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        found[name] = array
    return found


def _even(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw weights that are alike in all channels, so that what they weigh cancels."""
    return np.broadcast_to(1 + rng.random((1, 1, *shape[2:])), shape)


def _terms(layer: Layer, pass_name: str) -> int:
    g = layer.geometry
    if pass_name == "weight_grad":
        return g.n * math.prod(g.output_shape[2:])
    return math.prod(layer.kernel) * (g.c_in if pass_name == "forward" else g.c_out) // g.groups


def chosen(layer: Layer, pass_name: str, channels_last: bool) -> dict[str, str]:
    """Return the algorithms that the engine takes for a whole layer, and in strict mode."""
    empty = {}
    geometry = layer.geometry
    shapes = (geometry.input_shape, geometry.weight_shape, geometry.output_shape)
    for name, (n, c, h, w) in zip(OPERANDS, shapes, strict=True):
        if channels_last:
            empty[name] = np.empty((n, h, w, c), "f4").transpose(0, 3, 1, 2)
        else:
            empty[name] = np.empty((n, c, h, w), "f4")
    case = Case(layer, "float32", (FORMATS[channels_last],) * 3, "normal", 0)
    with selected(strict=True):
        strict = _taken(case, pass_name, empty)
    return {"chosen": _taken(case, pass_name, empty), "chosen, strict": strict}


def errors(
    layer: Layer, pass_name: str, kind: str, channels_last: bool
) -> Iterator[tuple[str, float, float]]:
    """Yield (algorithm, error in eps of the largest sum, of each element's own)."""
    operands = operands_of(layer, kind, channels_last)
    wide = {name: array.astype("f8") for name, array in operands.items()}
    rounded = {name: reference.rounded_to_bfloat16(array) for name, array in operands.items()}
    expected = {}
    for rounds, factors in ((False, wide), (True, rounded)):
        sizes = {name: np.abs(array) for name, array in factors.items()}
        expected[rounds] = [
            pass_calls(reference, layer, of)[pass_name]() for of in (factors, sizes)
        ]
    case = Case(layer, "float32", (FORMATS[channels_last],) * 3, "normal", 0)
    eps = np.finfo("f4").eps
    for algorithm in ALGORITHMS:
        if pass_name not in algorithm.passes:
            continue
        with selected(algorithm=algorithm.name):
            if _taken(case, pass_name, operands) != algorithm.name:
                continue
            found = pass_calls(engine, layer, operands)[pass_name]()
        exact, bound = expected[algorithm.rounds]
        own = np.abs(found - exact) / np.where(bound == 0, 1, bound)
        yield algorithm.name, reference.error_in_eps(found, exact, bound, "f4"), own.max() / eps


def all_layers() -> list[Layer]:
    """Return the layers, one of each shape, whatever the number of images."""
    suites = [name for name in SUITES if name not in ("scaling", "tiny", "quick")]
    layers = list(layers_of(suites))
    for net, specs in MORE.items():
        for spec in specs.split():
            channels, side, rest = spec.split(",", 2)
            layers.append(parse_layer(f"1,{channels},{side},{side},{rest}", net))
    by_shape: dict[str, Layer] = {}
    for layer in layers:
        by_shape.setdefault(layer.spec.partition(",")[2], layer)
    return list(by_shape.values())


def measure(
    layers: list[Layer], kinds: list[str]
) -> tuple[Errors, Errors, list[str], dict[tuple[str, str], str]]:
    """Return errors by (algorithm, kind), both measures; what is too large; the worst layers."""
    largest: Errors = defaultdict(list)
    own: Errors = defaultdict(list)
    found, worst = [], {}
    for layer in layers:
        for pass_name in PASSES:
            small = reduced(layer, pass_name)
            for channels_last in (False, True):
                choices = chosen(layer, pass_name, channels_last)
                for kind in kinds:
                    for algorithm, error, own_error in errors(
                        small, pass_name, kind, channels_last
                    ):
                        names = [name for name, one in choices.items() if one == algorithm]
                        for name in (algorithm, *names):
                            if error > max(largest[name, kind], default=-1):
                                what = f"{pass_name} {layer.spec} {algorithm}"
                                worst[name, kind] = f"{what}, {_terms(small, pass_name)} products"
                            largest[name, kind].append(error)
                            own[name, kind].append(own_error)
                        if not error <= allowed(algorithm, kind, _terms(small, pass_name)):
                            found.append(
                                f"{algorithm} {pass_name} {layer.spec} {kind}: {error:.3g}"
                            )
    return largest, own, found, worst


def table(errors: Errors, kinds: list[str]) -> str:
    """Return a Markdown table of the largest error of each algorithm and kind."""
    lines = [f"| algorithm | {' | '.join(kind.replace('_', ' ') for kind in kinds)} |"]
    lines.append("| --- |" + " ---: |" * len(kinds))
    for name in (*DIRECT, "chosen", "chosen, strict"):
        if (name, kinds[0]) in errors:
            cells = [f"{max(errors[name, kind]):.3g}" for kind in kinds]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sample", type=int, default=1, help="every so manieth layer only")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of inputs")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    layers = all_layers()[:: options.sample]
    largest, own, found, worst = measure(layers, kinds)
    results = sum(len(each) for (name, _), each in largest.items() if name in DIRECT)
    print(f"{len(layers)} layers, {results:,} results\n")
    print(f"In eps of the largest sum:\n\n{table(largest, kinds)}\n")
    print(f"In eps of each element's own sum:\n\n{table(own, kinds)}\n")
    for kind in kinds:
        for name in ("winograd", "few_channels", "chosen", "chosen, strict"):
            if (name, kind) in worst:
                print(f"{kind}, {name}: {max(largest[name, kind]):.3g} by {worst[name, kind]}")
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
