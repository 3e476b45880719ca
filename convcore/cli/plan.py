"""``convcore plan``: algorithms, blocking and memory of a convolution, without running it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from convcore.bench.layers import FIELDS, FORMATS, PASSES, Layer, parse_layer
from convcore.cli.errors import UsageError
from convcore.cli.terminal import fitted

if TYPE_CHECKING:
    from convcore.engine.conv.plan import PassPlan
    from convcore.engine.geometry import Geometry

DTYPES = ("float32", "float64", "complex64", "complex128")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``plan`` to the parser."""
    parser = commands.add_parser(
        "plan",
        help="show which algorithms a layer would be computed with, and why",
        description="Print a layer's geometry and, for each of its three passes (forward, input "
        "gradient, weight gradient), the algorithm and the reason for it, the reasons against the "
        "others, the blocks of work and the bytes of memory.",
    )
    parser.add_argument(
        "layer",
        metavar=",".join(FIELDS),
        help="sizes of the layer; k, s, p and d may be pairs as 3x5; s, p, d, g default to "
        "1,0,1,1; other kinds begin with it: 1d:N,C,W,O,... or '3d transposed:N,C,D,H,W,O,...'",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--format", choices=FORMATS, default="contiguous")
    parser.add_argument("--strict", action="store_true", help="direct summation only: no Winograd")
    parser.add_argument(
        "--precision",
        choices=("none", "bf16"),
        default="none",
        help="bf16 lets float32 products be computed in bfloat16; float32 by default",
    )
    parser.add_argument(
        "--algorithm", metavar="NAME", help="use this algorithm wherever it is possible"
    )
    parser.add_argument(
        "--forbid",
        metavar="NAME",
        action="append",
        default=[],
        help="use this algorithm only where no other is possible; may be repeated",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from convcore.engine.conv.selection import selected

    asked = {name: getattr(arguments, name) for name in ("strict", "algorithm", "precision")}
    try:
        layer = parse_layer(arguments.layer)
        with selected(forbidden=arguments.forbid, **asked):
            print(fitted(describe(layer, arguments.dtype, arguments.format)))
    except ValueError as error:
        raise UsageError(str(error)) from None
    return 0


def describe(layer: Layer, dtype: str, memory_format: str) -> str:
    """Return the geometry and the plans of the three passes as text."""
    # Here, not above: the engine loads the compiled kernels.
    import numpy as np

    from convcore.engine.conv.plan import plan_conv
    from convcore.engine.runtime import _isa

    plan = plan_conv(layer.geometry, np.dtype(dtype), memory_format == "channels_last")
    lines = [*_geometry_lines(layer, dtype, memory_format), f"  instructions  {_isa.name()}"]
    for name in PASSES:
        of_plan = getattr(plan, layer.pass_of_geometry(name))
        lines += ["", *_pass_lines(name, of_plan, layer.geometry)]
    return "\n".join(lines)


def _geometry_lines(layer: Layer, dtype: str, memory_format: str) -> list[str]:
    geometry, shapes = layer.geometry, layer.shapes
    return [
        f"{layer.spec}  {dtype}, {memory_format}",
        f"  input         {_sizes(shapes['input'])}",
        f"  weight        {_sizes(shapes['weight'])}",
        f"  output        {_sizes(shapes['grad_output'])}",
        f"  settings      stride {_sizes(layer.stride)}, padding {_sizes(layer.padding)}, "
        f"dilation {_sizes(layer.dilation)}, groups {layer.groups}",
        f"  a sum has     {geometry.columns:,} terms",
        f"  multiply-adds {geometry.multiply_adds:,} in each pass, by definition",
    ]


def _pass_lines(name: str, plan: PassPlan, geometry: Geometry) -> list[str]:
    work = f"{plan.items:,} independent work items"
    if plan.block:
        work += f", blocks of up to {plan.block:,} {plan.units} by {plan.o_block:,} channels"
    return [
        f"{name}: {plan.algorithm}",
        f"  because       {plan.reason}",
        *(f"  not           {other}: {reason}" for other, reason in plan.refused),
        f"  multiply-adds {_products(plan, geometry)}",
        f"  work          {work}",
        f"  scratch       {_scratch(plan)}",
        f"  shared        {_shared(plan, geometry)}",
    ]


def _products(plan: PassPlan, geometry: Geometry) -> str:
    if not geometry.multiply_adds:
        return f"{plan.multiply_adds:,}"
    share = plan.multiply_adds / geometry.multiply_adds
    return f"{plan.multiply_adds:,}, {share:.2f} of the number by definition"


def _scratch(plan: PassPlan) -> str:
    from convcore.engine.conv.blocks import SCRATCH_BYTES

    return f"{_bytes(plan.scratch_bytes)} a thread, of {_bytes(SCRATCH_BYTES)} allowed"


def _shared(plan: PassPlan, geometry: Geometry) -> str:
    """Return the bytes of memory that threads share, its content and its bound."""
    from convcore.engine.conv import blocks, problem

    if not plan.shared:
        return "0 B"
    text = _bytes(plan.shared_bytes)
    if plan.shared_contents:
        text += f" of {plan.shared_contents}"
    if plan.shared_contents == problem.PARTIAL_SUMS:
        return f"{text}, of {_bytes(blocks.PARTIAL_BYTES)} allowed"
    if plan.shared_contents in (problem.PACKED_WEIGHTS, problem.TRANSFORMED_WEIGHTS):
        times = plan.shared / (geometry.c_out * geometry.columns)
        return f"{text}, {times:.2f} of the weight, of {blocks.MOST_WEIGHTS} allowed"
    return text


def _sizes(values: tuple[int, ...]) -> str:
    return " x ".join(map(str, values))


def _bytes(count: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least 1."""
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
