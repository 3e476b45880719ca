"""Tuning of a plan's constants: layers timed with other values of one, in turn with its own.

    python benchmarks/sweep.py --constant winograd.BLOCK_BYTES --values 524288,2097152

A ratio is the time with the present value over that with another: above 1, the other is faster.
Where a value changes nothing in a layer's plan, nothing is timed.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from convcore.bench.layers import FORMATS, PASSES, Layer, parse_layer
from convcore.bench.measuring import (
    calibrate,
    geometric_mean,
    paired_ratios,
    quartiles,
    sample,
    take_turns,
)
from convcore.bench.peers import in_format
from convcore.bench.problem import draw_operands
from convcore.bench.process import worker_environment
from convcore.bench.suites import layers_of
from convcore.engine import set_num_threads
from convcore.engine.conv import executables
from convcore.engine.conv.algorithms.problem import PassPlan
from convcore.engine.conv.algorithms.selection import current
from convcore.engine.runtime import memory
from convcore.engine.runtime.cpus import cpu_limit

Number = int | float
Timed = tuple[PassPlan, Callable[[], Any]]


def main() -> int:
    """Measure and print, in a process that no variable holds back."""
    arguments = _parser().parse_args()
    environment = worker_environment(os.environ, arguments.threads)
    if environment != dict(os.environ):
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    set_num_threads(arguments.threads)
    (module, name), values = arguments.constant, arguments.values
    present = getattr(module, name)
    print(f"{module.__name__}.{name} is {present}; threads: {arguments.threads}\n")
    print(_row("layer, pass, format", map(str, values)))
    ratios: dict[Number, list[float]] = {value: [] for value in values}
    for title, make in _cells(arguments):
        found = _compare(module, name, (present, *values), make, arguments.rounds)
        for value, ratio in found.items():
            ratios[value].append(ratio)
        if found:
            shown = (f"{found[value]:.2f}" if value in found else "same" for value in values)
            print(_row(title, shown), flush=True)
    means = (f"{geometric_mean(ratios[value]):.3f}" for value in values)
    print(_row(f"geometric mean of {max(map(len, ratios.values()))}", means))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--constant",
        required=True,
        type=_constant,
        metavar="FILE.NAME",
        help="of convcore/engine/conv/algorithms",
    )
    parser.add_argument("--values", required=True, type=_numbers, metavar="V,...")
    parser.add_argument("--suite", default="", metavar="NAME,...", help="default: table")
    parser.add_argument("--layer", action="append", default=[], metavar="N,C,H,W,O,k,s,p,d,g")
    parser.add_argument("--passes", "--maps", default=PASSES, type=_names, metavar=",".join(PASSES))
    parser.add_argument("--formats", default=FORMATS, type=_names, metavar=",".join(FORMATS))
    parser.add_argument(
        "--prepacked", action="store_true", help="prepare the forward passes' weights"
    )
    parser.add_argument("--threads", type=int, default=cpu_limit(), metavar="T")
    parser.add_argument("--rounds", type=int, default=7, metavar="R")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[Number]:
    return [float(part) if "." in part else int(part) for part in text.split(",")]


def _constant(text: str) -> tuple[ModuleType, str]:
    file, _, name = text.partition(".")
    try:
        module = importlib.import_module(f"convcore.engine.conv.algorithms.{file}")
    except ImportError:
        raise argparse.ArgumentTypeError(f"{file!r} is no file of the algorithms") from None
    if not isinstance(getattr(module, name, None), Number):
        raise argparse.ArgumentTypeError(f"{file} has no number of the name {name!r}")
    return module, name


def _row(title: str, columns: Iterable[str]) -> str:
    return f"{title:58}" + "".join(f"{column:>10}" for column in columns)


def _cells(arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Timed]]]:
    """Yield each layer, map and format as its title and what prepares a call of it."""
    suites = arguments.suite or ("" if arguments.layer else "table")
    layers = [*layers_of(filter(None, suites.split(","))), *map(parse_layer, arguments.layer)]
    for layer in layers:
        operands = draw_operands(layer, seed=0)
        for pass_name, format in itertools.product(arguments.passes, arguments.formats):
            arrays = {n: in_format(a, format == FORMATS[1]) for n, a in operands.items()}
            title = f"{layer.name}, {pass_name}, {format}"
            yield title, partial(_prepared, layer, pass_name, arrays, arguments.prepacked)


def _prepared(layer: Layer, pass_name: str, arrays: dict[str, Any], prepacked: bool) -> Timed:
    """Return a call, made as the constants are now, and its plan."""
    x, w, gy = arrays["input"], arrays["weight"], arrays["grad_output"]
    make, left, right, last = {
        "forward": (executables.forward_executable, x, w, ()),
        "input_grad": (executables.input_grad_executable, gy, w, ((layer.h, layer.w),)),
        "weight_grad": (executables.weight_grad_executable, x, gy, (layer.kernel,)),
    }[pass_name]
    last = (True,) if prepacked and pass_name == "forward" else last
    shapes = (left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype)
    # Not the cached one, which was made with the constant's first value.
    call = make.__wrapped__(*shapes, current(), *layer.steps.values(), *last)
    plan = call.plan._replace(refused=())  # whose texts may name the constant
    if not plan.prepacked:
        return plan, lambda: call(left, right, ())
    block = memory.Block(plan.prepacked_bytes)
    call.kernel.pack(right, block)
    return plan, lambda: call(left, right, (), prepacked=block)


def _compare(
    module: ModuleType, name: str, values: Sequence[Number], make: Callable[[], Timed], rounds: int
) -> dict[Number, float]:
    """Return the first value's time over that of each other one that makes another plan."""
    present, *others = values
    made: dict[Number, Timed] = {}
    for value in (*others, present):  # which is then what it was
        setattr(module, name, value)
        made[value] = make()
    changed = [value for value in others if made[value][0] != made[present][0]]
    if not changed:
        return {}
    timed = {value: _sampler(made[value][1]) for value in (present, *changed)}
    seconds: dict[Number, list[float]] = {value: [] for value in timed}
    for value, one in take_turns(timed, dict.fromkeys(timed, rounds), rounds):
        seconds[value].append(one)
    return {v: quartiles(paired_ratios(seconds[v], seconds[present])).median for v in changed}


def _sampler(call: Callable[[], Any]) -> Callable[[], float]:
    call()
    return partial(sample, call, calibrate(call))


if __name__ == "__main__":
    sys.exit(main())
