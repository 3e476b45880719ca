"""Convolutions in float32 and in bfloat16, beside PyTorch's bfloat16, pass by pass.

    python benchmarks/precision.py [--threads N]
    python benchmarks/precision.py --errors

Milliseconds of CPU time, the least of several calls, each library in turn.  float32 and "bf16" take
and give float32 tensors (`convcore.backends.conv.fp32_precision`); PyTorch has all its tensors in
bfloat16 already, but for the forward pass, which rounds its input and weights as autocast does.
channels_last throughout.  The last column is the largest error of the forward pass in bfloat16, in
units of float32's eps of the largest sum of absolute products, against factors that are rounded
exactly.

With ``--errors`` no time is taken: bfloat16 tensors go through all passes of both libraries, one
image each, and errors against float64 sums of the same numbers are printed in bfloat16's eps (2^-7)
of the largest sum of absolute products, convcore's before PyTorch's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

# Before NumPy is loaded: settings of BLAS that a shell may have made slow it down.
if {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"} & set(os.environ):
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    os.execv(sys.executable, [sys.executable, *sys.argv])

import numpy as np

import convcore
from convcore import engine
from convcore.backends import conv
from convcore.bench.layers import Layer, parse_layer
from convcore.engine import reference
from convcore.engine.conv.plan import plan_conv
from convcore.engine.runtime import _isa

LAYERS = {
    "1x1 64-256 @56": "8,64,56,56,256,1",
    "1x1 256-64 @56": "8,256,56,56,64,1",
    "1x1 512-128 @28": "8,512,28,28,128,1",
    "1x1 256-1024 @14": "8,256,14,14,1024,1",
    "1x1 512-2048 @7": "8,512,7,7,2048,1",
    "1x1 s2 256-512 @56": "8,256,56,56,512,1,2",
    "3x3 s2 128 @56": "8,128,56,56,128,3,2,1",
    "3x3 64 @56": "8,64,56,56,64,3,1,1",
    "3x3 512 @7": "8,512,7,7,512,3,1,1",
}
CALLS = 7
BFLOAT16_EPS = 2.0**-7


def least(call: Callable[[], object]) -> float:
    """Return the least CPU time of some calls, in milliseconds."""
    call()
    times = []
    for _ in range(CALLS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def arrays_of(layer: Layer) -> list[np.ndarray]:
    """Return input, weight and grad_output, channels_last."""
    g, rng = layer.geometry, np.random.default_rng(0)
    shapes = (g.input_shape, g.weight_shape, g.output_shape)
    drawn = (rng.standard_normal((n, *rest, c), "f4") for n, c, *rest in shapes)
    return [array.transpose(0, 3, 1, 2) for array in drawn]


def calls_of(layer: Layer, arrays: list[np.ndarray]) -> list[Callable[[], np.ndarray]]:
    """Return the three passes."""
    x, w, y = arrays
    steps = layer.steps
    return [
        lambda: engine.conv_forward(x, w, **steps),
        lambda: engine.conv_input_grad(y, w, x.shape[2:], **steps),
        lambda: engine.conv_weight_grad(x, y, w.shape[2:], **steps),
    ]


def pytorchs(layer: Layer, arrays: list[np.ndarray], threads: int) -> list[Callable[[], object]]:
    """Return the three passes of PyTorch in bfloat16, or nothing without it."""
    try:
        import torch
    except ImportError:
        return []
    torch.set_num_threads(threads)
    x, w, _ = single = [torch.from_numpy(array) for array in arrays]
    half = [one.bfloat16().contiguous(memory_format=torch.channels_last) for one in single]
    stride, padding = list(layer.stride), list(layer.padding)

    def backward(number: int) -> Callable[[], object]:
        mask = [number == 0, number == 1, False]
        rest = (None, stride, padding, [1, 1], False, [0, 0], 1, mask)
        return lambda: torch.ops.aten.convolution_backward(half[2], half[0], half[1], *rest)

    def forward() -> object:
        return torch.conv2d(x.bfloat16(), w.bfloat16(), stride=stride, padding=padding)

    return [forward, backward(0), backward(1)]


def error(layer: Layer, arrays: list[np.ndarray]) -> float:
    """Return the error of one image's forward pass in bfloat16."""
    x, w = (reference.rounded_to_bfloat16(array) for array in (arrays[0][:1], arrays[1]))
    exact = reference.conv_forward(x, w, **layer.steps)
    bound = reference.conv_forward(np.abs(x), np.abs(w), **layer.steps)
    with conv.flags(algorithm="bfloat16"):
        found = engine.conv_forward(arrays[0][:1], arrays[1], **layer.steps)
    return reference.error_in_eps(found, exact, bound, "f4")


def errors(layer: Layer, arrays: list[np.ndarray]) -> list[tuple[float, float]]:
    """Return the errors of each pass on bfloat16 tensors: ours and PyTorch's, in bfloat16's eps."""
    import torch

    x, w, y = (reference.rounded_to_bfloat16(array) for array in arrays)
    found = []
    for number, (exact, bound) in enumerate(
        zip(oracles(layer, x, w, y), oracles(layer, *map(np.abs, (x, w, y))), strict=True)
    ):
        pair = []
        for library in (convcore, torch):
            result = gradients_of(library, layer, x, w, y)[number]
            scaled = reference.error_in_eps(result, exact, bound, "f4")
            pair.append(scaled * float(np.finfo("f4").eps) / BFLOAT16_EPS)
        found.append((pair[0], pair[1]))
    return found


def oracles(layer: Layer, x: np.ndarray, w: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the three passes in float64."""
    steps = layer.steps
    return [
        reference.conv_forward(x, w, **steps),
        reference.conv_input_grad(y, w, x.shape[2:], **steps),
        reference.conv_weight_grad(x, y, w.shape[2:], **steps),
    ]


def gradients_of(
    library: Any, layer: Layer, x: np.ndarray, w: np.ndarray, y: np.ndarray
) -> list[np.ndarray]:
    """Return a library's three passes on bfloat16 tensors, as float32 arrays."""
    input, weight, grad = (library.from_numpy(a.copy()).to(library.bfloat16) for a in (x, w, y))
    input.requires_grad_()
    weight.requires_grad_()
    convolve = library.nn.functional.conv2d
    output = convolve(input, weight, stride=tuple(layer.stride), padding=tuple(layer.padding))
    output.backward(grad)
    return [one.detach().float().numpy() for one in (output, input.grad, weight.grad)]


def print_errors() -> None:
    """Print the table of errors, and the largest ratio of ours to PyTorch's."""
    print("layer: forward, input gradient, weight gradient as convcore / PyTorch")
    worst = 0.0
    for name, spec in LAYERS.items():
        layer = parse_layer(spec.replace("8,", "1,", 1))
        pairs = errors(layer, arrays_of(layer))
        worst = max(worst, *(ours / theirs for ours, theirs in pairs))
        print(f"{name:18s} " + "   ".join(f"{a:.3f} / {b:.3f}" for a, b in pairs), flush=True)
    print(f"largest of ours over PyTorch's: {worst:.2f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--errors", action="store_true", help="errors on bfloat16 tensors")
    options = parser.parse_args()
    threads = options.threads
    convcore.set_num_threads(threads)
    if options.errors:
        print_errors()
        return
    print(f"bfloat16 by {_isa.bfloat16_name()}, float32 by {_isa.name()}, {threads} threads")
    print("layer: forward, input gradient, weight gradient as float32 / bf16 / PyTorch's bfloat16")
    for name, spec in LAYERS.items():
        layer = parse_layer(spec)
        arrays = arrays_of(layer)
        theirs = pytorchs(layer, arrays, threads)
        cells = []
        for number, call in enumerate(calls_of(layer, arrays)):
            single = least(call)
            with conv.flags(algorithm="bfloat16"):
                rounded = least(call)
            peer = f" / {least(theirs[number]):5.2f}" if theirs else ""
            cells.append(f"{single:5.2f} / {rounded:5.2f}{peer}")
        with conv.flags(fp32_precision="bf16"):
            plan = plan_conv(layer.geometry, "float32", True)
        taken = (
            "" if plan.forward.algorithm == "bfloat16" else f"  (taken: {plan.forward.algorithm})"
        )
        print(f"{name:18s} {'   '.join(cells)}   {error(layer, arrays):.1f} eps{taken}", flush=True)


if __name__ == "__main__":
    main()
