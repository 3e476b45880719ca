"""``convcore plan``: what a convolution would do, and why, without doing it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from convcore.bench.layer import FIELDS, FORMATS, MAPS, Layer, parse_layer
from convcore.cli.errors import UsageError

if TYPE_CHECKING:
    from convcore.engine.plan import MapPlan

DTYPES = ("float32", "float64", "complex64", "complex128")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``plan`` to the parser."""
    parser = commands.add_parser(
        "plan",
        help="show how a layer would be computed, and why",
        description="Print a layer's geometry and, for its three maps, the algorithm with its "
        "reason, the blocks of work and the bytes of scratch memory.",
    )
    parser.add_argument(
        "layer",
        metavar=",".join(FIELDS),
        help="sizes of the layer; k, s, p and d may be two, as 3x5; s, p, d, g default to 1,0,1,1",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--format", choices=FORMATS, default="contiguous")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    try:
        layer = parse_layer(arguments.layer)
    except ValueError as error:
        raise UsageError(str(error)) from None
    print(describe(layer, arguments.dtype, arguments.format))
    return 0


def describe(layer: Layer, dtype: str, memory_format: str) -> str:
    """Return the geometry and the three maps' plans as text."""
    # Here, not above: the engine loads the compiled kernels.
    import numpy as np

    from convcore.engine.plan import plan_conv

    plan = plan_conv(layer.geometry, np.dtype(dtype), memory_format == "channels_last")
    lines = [*_geometry_lines(layer, dtype, memory_format)]
    for name in MAPS:
        lines += ["", *_map_lines(name, getattr(plan, name))]
    return "\n".join(lines)


def _geometry_lines(layer: Layer, dtype: str, memory_format: str) -> list[str]:
    geometry = layer.geometry
    return [
        f"{layer.spec}  {dtype}, {memory_format}",
        f"  input        {_sizes(geometry.input_shape)}",
        f"  weight       {_sizes(geometry.weight_shape)}",
        f"  output       {_sizes(geometry.output_shape)}",
        f"  steps        stride {_sizes(layer.stride)}, padding {_sizes(layer.padding)}, "
        f"dilation {_sizes(layer.dilation)}, groups {layer.groups}",
        f"  a sum has    {geometry.columns:,} terms",
        f"  multiply-adds {geometry.multiply_adds:,} in each map",
    ]


def _map_lines(name: str, plan: MapPlan) -> list[str]:
    return [
        f"{name}: {plan.algorithm}",
        f"  because      {plan.reason}",
        f"  work         {plan.items:,} independent items, "
        f"blocks of up to {plan.block:,} pixels by {plan.o_block:,} channels",
        f"  scratch      {_bytes(plan.scratch_bytes)} a thread, {_bytes(plan.shared_bytes)} shared",
    ]


def _sizes(values: tuple[int, ...]) -> str:
    return " x ".join(map(str, values))


def _bytes(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least 1."""
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
