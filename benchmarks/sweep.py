"""Tuning of constants: layers timed with other values of one, in turn with its own.

    python benchmarks/sweep.py --constant winograd.BLOCK_BYTES --values 524288,2097152
    python benchmarks/sweep.py --constant engine.layers.norm.norm._LEAST_ITEM --values 16384,65536
    python benchmarks/sweep.py --constant bfloat16.FEWEST_CHANNELS --values 16,32 --precision bf16

A ratio is the time with the present value over that with another: above 1, the other is faster.
A convolution whose plan a value does not change is not timed with it; the calls of other layers are
those of layer_calls.py.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from layer_calls import LAYERS, calls_of

from convcore.bench.layers import FORMATS, PASSES, Layer, parse_layer
from convcore.bench.measuring import (
    Sampling,
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
from convcore.engine import get_num_threads, set_num_threads
from convcore.engine.conv.call import ConvCall
from convcore.engine.conv.selection import PRECISIONS, current, select
from convcore.engine.runtime import memory
from convcore.engine.runtime.cpus import cpu_limit

# On busy CPUs the least of up to so many calls is taken, each short enough to be left alone.
_BUSY_CALLS = 50

Number = int | float
Timed = tuple[Any, Callable[[], Any]]  # what a value must change for the call to be timed with it


class Constant(NamedTuple):
    """A number of a module, or of a dict in it, wherever else it was imported to."""

    module: ModuleType
    name: str
    owners: Sequence[dict[str, Any]]

    def get(self) -> Number:
        """Return the present value."""
        return self.owners[0][self.name]

    def put(self, value: Number) -> None:
        """Set the value for all that is called or planned from now on."""
        for owner in self.owners:
            owner[self.name] = value
        for module in (self.module, *_modules("convcore.functions.")):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()
        set_num_threads(get_num_threads())  # which hands on what kernels compare work with


def main() -> int:
    """Measure and print, in a process that no variable holds back."""
    arguments = _parser().parse_args()
    environment = worker_environment(os.environ, arguments.threads)
    if environment != dict(os.environ):
        return subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode
    set_num_threads(arguments.threads)
    select(precision=arguments.precision, matmul=arguments.precision)
    constant, values = arguments.constant, arguments.values
    name = f"{constant.module.__name__}.{constant.name}"
    print(f"{name} is {constant.get()}; threads: {arguments.threads}\n")
    print(_row("layer, pass, format", map(str, values)))
    ratios: dict[Number, list[float]] = {value: [] for value in values}
    for title, make in _cells(arguments):
        found = _compare(constant, values, make, arguments.rounds, arguments.busy)
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
        metavar="MODULE.NAME",
        help="of convcore.engine.conv, or of convcore",
    )
    parser.add_argument("--values", required=True, type=_numbers, metavar="V,...")
    parser.add_argument("--calls", default="", metavar="TEXT", help="those whose title has it")
    parser.add_argument("--suite", default="", metavar="NAME,...", help="default: table")
    parser.add_argument("--layer", action="append", default=[], metavar="N,C,H,W,O,k,s,p,d,g")
    parser.add_argument("--passes", "--maps", default=PASSES, type=_names, metavar=",".join(PASSES))
    parser.add_argument("--formats", default=FORMATS, type=_names, metavar=",".join(FORMATS))
    parser.add_argument(
        "--prepacked", action="store_true", help="prepare the forward passes' weights"
    )
    parser.add_argument(
        "--precision", default="none", choices=PRECISIONS, help="of float32 products"
    )
    parser.add_argument("--threads", type=int, default=cpu_limit(), metavar="T")
    parser.add_argument("--all", action="store_true", help="time layers of the same plan, too")
    parser.add_argument(
        "--busy", action="store_true", help="others use the CPUs: a call's shortest time counts"
    )
    parser.add_argument("--rounds", type=int, default=7, metavar="R")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[Number]:
    return [float(part) if "." in part else int(part) for part in text.split(",")]


def _constant(text: str) -> Constant:
    """Return a constant from winograd.PART, engine.layers.norm.norm._ROW or MODULE.DICT.key."""
    found = re.fullmatch(r"([a-z0-9_.]+)\.(_?[A-Z][A-Z0-9_]*)(?:\.(\w+))?", text)
    path, name, key = found.groups() if found else (text, "", None)
    places = (f"engine.conv.{path}.plan", f"engine.conv.{path}", path)
    module = next(filter(None, map(_module, places)), None)
    if module is None:
        raise argparse.ArgumentTypeError(f"{path!r} is no file of the algorithms, nor of convcore")
    if key:
        constant = Constant(module, key, [getattr(module, name, {})])
    else:
        constant = Constant(module, name, [vars(m) for m in _holders(module, name)])
    if not isinstance(constant.owners[0].get(constant.name), Number):
        raise argparse.ArgumentTypeError(f"{path} has no number of the name {text!r}")
    return constant


def _module(path: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"convcore.{path}")
    except ImportError:
        return None


def _holders(module: ModuleType, name: str) -> Iterator[ModuleType]:
    """Yield a module, and the engine's others that import a name from it."""
    yield module
    for other in _modules("convcore.engine"):
        if (module.__name__, name) in _imports(other):
            yield other


def _modules(prefix: str) -> list[ModuleType]:
    """Return the modules in Python below a name."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(prefix)]
    return [module for module in modules if (module.__file__ or "").endswith(".py")]


def _imports(module: ModuleType) -> Iterator[tuple[str | None, str]]:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def _row(title: str, columns: Iterable[str]) -> str:
    return f"{title:58}" + "".join(f"{column:>10}" for column in columns)


def _cells(arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Timed]]]:
    """Yield each call, of a convolution or of the constant's layer: its title, what prepares it."""
    module = arguments.constant.module.__name__.rpartition(".")[2]
    cells = _layer_cells(module) if module in LAYERS else _conv_cells(arguments)
    if arguments.all:
        cells = ((title, lambda make=make: (object(), make()[1])) for title, make in cells)
    return ((title, make) for title, make in cells if arguments.calls in title)


def _layer_cells(module: str) -> Iterator[tuple[str, Callable[[], Timed]]]:
    for title, make in calls_of(module):
        yield title, lambda make=make: (object(), make())  # any value may change something


def _conv_cells(arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Timed]]]:
    """Yield each layer, pass and format as its title and what prepares a call of it."""
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
    left, right, sizes = {
        "forward": (x, w, ()),
        "input_grad": (gy, w, layer.size),
        "weight_grad": (x, gy, layer.kernel),
    }[pass_name]
    shapes = (left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype)
    parameters = (*layer.steps.values(), sizes)
    packs = prepacked and pass_name == "forward"
    # Not the cached plan, which was made with the constant's first value.
    call = ConvCall(pass_name, *shapes, current(), *parameters, prepacked=packs).plan()
    plan = call.plan._replace(refused=())  # whose texts may name the constant
    if not plan.prepacked:
        return plan, lambda: call(left, right, ())
    block = memory.Block(plan.prepacked_bytes)
    call.kernel.pack(right, block)
    return plan, lambda: call(left, right, (), prepacked=block)


def _compare(
    constant: Constant,
    values: Sequence[Number],
    make: Callable[[], Timed],
    rounds: int,
    busy: bool = False,
) -> dict[Number, float]:
    """Return the present value's time over that of each other one that changes something."""
    present = constant.get()
    made: dict[Number, Timed] = {}
    try:
        for value in (*values, present):
            constant.put(value)
            made[value] = make()
        changed = [v for v in values if v != present and made[v][0] != made[present][0]]
        if not changed:
            return {}
        timed = {v: _sampler(constant, v, made[v][1], busy) for v in (present, *changed)}
        seconds: dict[Number, list[float]] = {value: [] for value in timed}
        for value, one in take_turns(timed, dict.fromkeys(timed, rounds), rounds):
            seconds[value].append(one)
    finally:
        constant.put(present)
    if busy:
        return {v: min(seconds[present]) / min(seconds[v]) for v in changed}
    return {v: quartiles(paired_ratios(seconds[v], seconds[present])).median for v in changed}


def _sampler(
    constant: Constant, value: Number, call: Callable[[], Any], busy: bool
) -> Callable[[], float]:
    """Return what takes a sample of a call while the constant has a value."""
    constant.put(value)
    call()
    # Of one thread it is the CPU's time that counts, of which other processes take none.
    clock = time.perf_counter if get_num_threads() > 1 else time.thread_time
    sampling = calibrate(call, clock)
    few = min(_BUSY_CALLS, 5 * sampling.calls)

    def timed() -> float:
        constant.put(value)
        call()
        if busy:
            return min(sample(call, Sampling(1, 1), clock) for _ in range(few))
        return sample(call, sampling, clock)

    return timed


if __name__ == "__main__":
    sys.exit(main())
