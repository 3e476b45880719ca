"""Multiply-adds a second of one core, by instruction: float32, pairs of bfloat16, fours of int8.

What a product of matrices can reach at most, in each precision: a loop of one instruction on twelve
registers, compiled for this processor with the C compiler in CC (cc by default).

With --nets, what that bounds: for the convolutions of each net of ``convcore bench --nets`` and one
picture, their multiply-adds, the part in layers that take Winograd's method, and the time at these
peaks on one core: in float32 as they are planned, and with each layer in int8 where that is less.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import convcore
from convcore import nn
from convcore.bench import nets
from convcore.engine import make_geometry, plan_conv

# name: the compiler's macro for it, multiply-adds of a vector, and the instruction.
INSTRUCTIONS = {
    "float32 multiply-add": ("__AVX512F__", 16, "vfmadd231ps"),
    "bfloat16 pairs": ("__AVX512BF16__", 32, "vdpbf16ps"),
    "float16 multiply-add": ("__AVX512FP16__", 32, "vfmadd231ph"),
    "int8 fours": ("__AVX512VNNI__", 64, "vpdpbusd"),
}

_LOOP = """
#ifdef {macro}
{{
    __m512 a = _mm512_setzero_ps(), b = a, {sums};
    double best = 1e9;
    for (int round = 0; round < 100; round++) {{
        const double start = now();
        for (int turn = 0; turn < TURNS; turn++) {{
            {products}
        }}
        const double took = now() - start;
        best = took < best ? took : best;
    }}
    printf("{name}: %.1f\\n", {lanes} * 12.0 * TURNS / best / 1e9);
}}
#else
printf("{name}: none\\n");
#endif
"""

# Each sum is a variable of its own: gcc would store every element of an array after each product.
_PRODUCT = '__asm__ volatile("{instruction} %2, %1, %0" : "+v"(sum{i}) : "v"(a), "v"(b));'

_PROGRAM = """
#include <immintrin.h>
#include <stdio.h>
#include <time.h>
enum { TURNS = 1 << 17 };
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void)
{
%s
    return 0;
}
"""


def peaks() -> dict[str, float]:
    """Compile the loops and run them on one core; NaN where the processor lacks an instruction."""
    loops = [
        _LOOP.format(
            name=name,
            macro=macro,
            lanes=lanes,
            sums=", ".join(f"sum{i} = a" for i in range(12)),
            products=" ".join(_PRODUCT.format(instruction=instruction, i=i) for i in range(12)),
        )
        for name, (macro, lanes, instruction) in INSTRUCTIONS.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "peaks.c"), Path(folder, "peaks")
        source.write_text(_PROGRAM % "".join(loops))
        compiler = os.environ.get("CC", "cc")
        command = [compiler, "-O2", "-march=native", str(source), "-o", str(program)]
        subprocess.run(command, check=True)
        found = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    lines = (line.split(": ") for line in found.splitlines())
    return {name: math.nan if rate == "none" else float(rate) for name, rate in lines}


def layers(net: nets.Net) -> list[tuple[str, int, int]]:
    """Return (algorithm, multiply-adds, those that its plan does) of each convolution."""
    found = []

    def note(layer: Any, args: tuple[convcore.Tensor, ...], output: convcore.Tensor) -> None:
        steps = {name: getattr(layer, name) for name in ("stride", "padding", "dilation", "groups")}
        geometry = make_geometry(args[0].shape, layer.weight.shape, **steps)
        plan = plan_conv(geometry, "float32", channels_last=True).forward
        found.append((plan.algorithm, geometry.multiply_adds, plan.multiply_adds))

    model = getattr(convcore.models, net.function)(**dict(net.options)).eval()
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(note)
    convcore.set_num_threads(1)
    with convcore.no_grad():
        model(convcore.zeros(net.input_shape(nets.RUN_ONE)))
    return found


def main() -> None:
    """Print the peaks, and what they bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nets", action="store_true", help="bound the nets' times, too")
    request = parser.parse_args()
    print("billions of multiply-adds a second, of one core")
    rates = peaks()
    single, fours = rates["float32 multiply-add"], rates["int8 fours"]
    for name, rate in rates.items():
        print(f"{name:24}{rate:8.0f}{rate / single:8.2f} of float32's")
    if not request.nets:
        return
    print("\nnet            billions   by Winograd   float32 ms   int8 ms   times")
    for net in nets.NETS:
        all_of_it = layers(net)
        wanted = sum(one[1] for one in all_of_it)
        winograd = sum(one[1] for one in all_of_it if one[0] == "winograd")
        exact = sum(done / single for _, _, done in all_of_it) / 1e6
        fewer = [
            done / single if name == "depthwise" else min(done / single, products / fours)
            for name, products, done in all_of_it
        ]
        lower = sum(fewer) / 1e6
        print(
            f"{net.name:12}{wanted / 1e9:11.2f}{winograd / wanted:14.0%}"
            f"{exact:13.1f}{lower:10.1f}{exact / lower:8.2f}"
        )


if __name__ == "__main__":
    main()
