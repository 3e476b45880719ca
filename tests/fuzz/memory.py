"""Failed allocations: each is a MemoryError, nothing is lost or half done, the next call is right.

    python tests/fuzz/memory.py --long
    python tests/fuzz/memory.py --only=adam --span=8
    python tests/fuzz/memory.py --only=adam --small

Every program below is run with its first allocation failing, then its second, and so on: those of
convcore's kernels, whichever thread makes them, and Python's and NumPy's of 128 KiB and more
(failing.c, which takes a C compiler and Linux).  With --long every one, and several in a row too;
without, a seeded sample.  --small fails smaller ones as well, except in files: it says more of the
graph and the optimizers, but NumPy (2.4: np.add of a row, at an iterator's buffer), pickle and
zipfile crash or raise something else at some of these, which ends the run.  After each failure

- the error is a MemoryError, or nothing at all where the failure was got over;
- what the program writes into (parameters, optimizer states, files) is as before, or, where nothing
  was raised, as after a call;
- threads, BLAS's threads, gradient mode, autocast and the selection of algorithms are as before;
- no block of the memory pool is in use that was not, and no file lies beside the saved one;
- the same call then gives the same bits.

At last the address space is limited (RLIMIT_AS), a little more at a time, and the same is checked.
The exit code is 1 if anything was found, which is printed with the options that do it again.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import dis
import gc
import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import sgemm

import convcore
import convcore.amp
from convcore import engine, nn, optim
from convcore.autograd import casting
from convcore.bench.layers import pass_calls
from convcore.engine.conv.algorithms import ALGORITHMS
from convcore.engine.conv.call import cached_plan
from convcore.engine.conv.selection import current, selected
from convcore.engine.runtime import _threads, memory, threads
from convcore.verify import checks
from convcore.verify.cases import LAYOUTS, parse_case

SOURCE = Path(__file__).resolve().parent / "failing.c"
OURS, NUMPYS = "convcore/engine", "_multiarray_umath"
# Layers small enough for thousands of calls, whose arrays lie in the pool all the same (64 KiB).
LAYERS = (
    *("2,32,24,24,32,3,1,1", "2,3,40,40,32,3,2,1", "2,32,24,24,32,3,1,1,1,32", "2,32,24,24,32,1"),
    *("2,32,24,24,32,3,1,1,1,8", "2,32,24,24,32,3,2,1"),
)
THREADS = 2
ROW = 5  # failures after one another, in the long form
LIMITED = ("net", "linear", "save")  # in the short form, by address space too
FILES = ("save", "load")
SAMPLE = 24  # failures of each program in the short form
LARGE = 1 << 17  # bytes: from here on malloc asks the system, each time
STEP = 1 << 16  # bytes by which the address space grows


class Program(NamedTuple):
    """What is called, and what it writes into besides what it returns."""

    call: Callable[[], Any]
    written: Callable[[], list[Any]] = list
    restore: Callable[[], None] = list  # type: ignore[assignment]
    whole: bool = True  # after a failure all of it is as before, or each part is as before or after


def settings() -> tuple[Any, ...]:
    """Return what the process has set, which no failure may change."""
    _, getter, _ = threads._find()
    return (
        convcore.get_num_threads(),
        ctypes.CFUNCTYPE(ctypes.c_int)(getter)() if getter else None,
        convcore.is_grad_enabled(),
        convcore.amp.autocast_mode.is_autocast_enabled("cpu"),
        casting.here.nesting,
        casting.exchange.holders(),
        current(),
    )


def bits(value: Any) -> Any:
    """Return the bits of arrays and tensors, however deep they lie."""
    if isinstance(value, convcore.Tensor):
        value = value.detach().numpy()
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: bits(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [bits(part) for part in value]
    return value


# The programs


def convolutions() -> Iterator[tuple[str, Program]]:
    """Yield each pass of each algorithm in both formats, once planned and once from the cache."""
    seen = set()
    for spec, layout in itertools.product(LAYERS, LAYOUTS[:2]):
        case = parse_case(f"{spec} float32 {layout}/{layout}/{layout} normal 1")
        operands = case.operands()
        calls = pass_calls(engine, case.layer, operands)
        for (pass_name, call), algorithm in itertools.product(calls.items(), ALGORITHMS):
            if pass_name not in algorithm.passes:
                continue
            name = f"{algorithm.name} {pass_name} {layout}"
            with selected(algorithm=algorithm.name):
                taken = checks._taken(case, pass_name, operands)
            if taken != algorithm.name or name in seen:
                continue
            seen.add(name)

            def planned(call: Callable = call) -> Any:
                cached_plan.cache_clear()
                return call()

            with selected(algorithm=algorithm.name):
                yield name, Program(call)
                yield f"{name} planned", Program(planned)


def blocks() -> Iterator[tuple[str, Program]]:
    """Yield the contexts that set something for a while."""

    def choose() -> None:
        with selected(strict=True), selected(forbidden="winograd"):
            pass

    def switch() -> None:
        with convcore.no_grad(), convcore.inference_mode(), convcore.enable_grad():
            pass

    def cast() -> None:
        with convcore.amp.autocast("cpu"), convcore.amp.autocast("cpu", enabled=False):
            pass

    yield "select", Program(choose)
    yield "no_grad", Program(switch)
    yield "autocast", Program(cast)


def tensor(*shape: int, requires_grad: bool = False) -> convcore.Tensor:
    drawn = np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)
    return convcore.from_numpy(drawn).requires_grad_(requires_grad)


def through(module: nn.Module, *shape: int) -> Program:
    """A layer, forward and backward; the gradients come back with the result."""
    x = tensor(*shape, requires_grad=True)
    parameters = [x, *module.parameters()]
    gradient = convcore.ones_like(module(x))
    modules, buffers = list(module.modules()), list(module.buffers())
    first = [buffer.clone() for buffer in buffers]

    def restore() -> None:
        for buffer, was in zip(buffers, first, strict=True):
            buffer.copy_(was)

    def call() -> Any:
        y = module(x)
        return [y, *convcore.autograd.grad(y, parameters, gradient)]

    # The running statistics of one layer change together; its backward may fail after that.
    return Program(
        call, lambda: [[*own.buffers(recurse=False)] for own in modules], restore, whole=False
    )


def layers() -> Iterator[tuple[str, Program]]:
    image = (2, 16, 34, 34)
    yield "max_pool", through(nn.MaxPool2d(3, 2, 1), *image)
    yield "avg_pool", through(nn.AvgPool2d(3, 2), *image)
    yield "global_avg_pool", through(nn.AdaptiveAvgPool2d(1), *image)
    yield "batch_norm", through(nn.BatchNorm2d(16), *image)
    yield "eval_batch_norm", through(nn.BatchNorm2d(16).eval(), *image)
    yield "group_norm", through(nn.GroupNorm(4, 16), *image)
    yield "layer_norm", through(nn.LayerNorm(34), *image)
    yield "linear", through(nn.Linear(256, 192), 128, 256)
    yield "relu", through(nn.ReLU(), *image)
    yield "softmax", through(nn.LogSoftmax(1), *image)
    yield "interpolate", through(nn.Upsample(scale_factor=2, mode="bilinear"), *image)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
    yield "net", through(net, 4, 3, 32, 32)


def steps_of(make: Callable[..., optim.Optimizer], taken: int, whole: bool) -> Program:
    """A step of an optimizer that took so many before."""
    parameters = [tensor(n, n, requires_grad=True) for n in (200, 220, 7)]
    optimizer = make(parameters)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = tensor(*parameter.shape)
        optimizer.step()

    def written() -> list[Any]:
        return [(p, dict(optimizer.state[p]) if p in optimizer.state else {}) for p in parameters]

    for _ in range(taken):
        step()
    state = copy.deepcopy(optimizer.state_dict())
    first = [p.detach().clone() for p in parameters]

    def restore() -> None:
        optimizer.load_state_dict(copy.deepcopy(state))
        with convcore.no_grad():
            for parameter, was in zip(parameters, first, strict=True):
                parameter.copy_(was)
                parameter.grad = tensor(*parameter.shape)

    return Program(optimizer.step, written, restore, whole=whole)


def steps() -> Iterator[tuple[str, Program]]:
    makers = {
        "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        "adam": lambda p: optim.Adam(p, lr=0.1, amsgrad=True),
        "rmsprop": lambda p: optim.RMSprop(p, lr=0.1, momentum=0.5),
        "adagrad": lambda p: optim.Adagrad(p, lr=0.1),
    }
    for (name, make), taken in itertools.product(makers.items(), (0, 2)):
        # The others change a parameter and its state after the other.
        yield f"{name} step {taken}", steps_of(make, taken, whole=name != "adagrad")


def files(folder: Path) -> Iterator[tuple[str, Program]]:
    old, new = folder / "a.pt", {"a": tensor(200, 200), "b": [tensor(3), 1, "x"]}
    convcore.save({"a": tensor(5)}, old)
    kept = old.read_bytes()

    def in_folder() -> list[Any]:
        return [{file.name: file.read_bytes() for file in folder.iterdir()}]

    def restore() -> None:
        old.write_bytes(kept)

    yield "save", Program(lambda: convcore.save(new, str(old)), in_folder, restore)
    other = folder.parent / f"{folder.name}.pt"
    convcore.save(new, other)
    yield "load", Program(lambda: convcore.load(str(other)), in_folder)


def programs(folder: Path) -> Iterator[tuple[str, Program]]:
    yield from blocks()
    yield from layers()
    yield from steps()
    yield from files(folder)
    yield from convolutions()


# Running them


class Injector:
    """The preloaded library, told which memory is NumPy's and ours."""

    def __init__(self) -> None:
        self.least, self.library = LARGE, ctypes.CDLL(None)
        library = self.library
        library.disarm.restype = ctypes.c_long
        library.arm.argtypes = (ctypes.c_long,) * 3
        library.watch.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
        for line in Path("/proc/self/maps").read_text().splitlines():
            if " r-xp " in line and (OURS in line or NUMPYS in line):
                ends = [int(number, 16) for number in line.split()[0].split("-")]
                library.watch(*ends, OURS in line)
        self.disarm = library.disarm
        ctypes.PyDLL(None).hook_python()

    def arm(self, first: int, last: int) -> None:
        self.library.arm(first, last, self.least)


class Found(Exception):
    """What a failure must not do."""


def in_use() -> int:
    """Return the bytes of the pool that arrays use, without kept scratch."""
    memory._scratch.clear()
    gc.collect()
    return convcore.memory_stats()["allocated_bytes.current"]


def is_numpys(error: BaseException) -> bool:
    """Return whether NumPy failed to allocate and forgot to say so, as it does in reductions."""
    return isinstance(error, SystemError) and "exception" in str(error)


def loses_arguments(error: BaseException) -> bool:
    """Return whether a call failed before it began: Python 3.11 then may lose an argument.

    It does where the function called has variables of an inner function.
    """
    if sys.version_info >= (3, 12):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None:
        return False
    codes = dis.get_instructions(last.tb_frame.f_code)
    reached = [code.opname for code in codes if code.offset <= last.tb_lasti]
    return reached[-1] in ("PRECALL", "CALL")


class Watched:
    """A program beside what is known of it: its result, and all that may not change."""

    def __init__(self, program: Program) -> None:
        self.program = program
        for _ in range(3):  # what is made lazily is there
            program.restore()
            program.call()
        program.restore()
        self.before = bits(program.written())
        self.result = bits(program.call())
        self.after = bits(program.written())
        program.restore()
        self.settings, self.in_use = settings(), in_use()

    def attempt(self, failing: Callable[[Callable[[], Any]], Any]) -> str | None:
        """Call under `failing`; return the error's text, or None if it was got over."""
        self.program.restore()
        convcore.empty_cache()  # so that each block of the pool is asked of the system
        result, text, excused = None, None, False
        try:
            result = failing(self.program.call)
        except MemoryError as error:
            excused = loses_arguments(error)
            text = "".join(traceback.format_exception(error))
        except BaseException as error:
            if not is_numpys(error):
                raise Found("".join(traceback.format_exception(error))) from None
            text = f"{error!r}"
        if text is None and bits(result) != self.result:
            raise Found("nothing was raised, and the result is wrong")
        del result
        self.check_written(text)
        self.check(text, excused)
        return text

    def check_written(self, text: str | None) -> None:
        """Compare what the program writes into with what it was, or became."""
        found = bits(self.program.written())
        parts = zip(found, self.before, self.after, strict=True)
        if text is None:
            is_right = found == self.after
        elif self.program.whole:
            is_right = found == self.before
        else:
            is_right = all(now in (before, after) for now, before, after in parts)
        if not is_right:
            raise Found(f"half done, after {text}")

    def check(self, text: str | None, excused: bool) -> None:
        """Compare settings and memory; call again, without a failure."""
        if settings() != self.settings:
            raise Found(f"settings: {settings()} instead of {self.settings}, after {text}")
        self.program.restore()
        if excused:
            self.in_use = in_use()
        if in_use() != self.in_use:
            raise Found(f"{in_use() - self.in_use:+} bytes of the pool are in use, after {text}")
        if bits(self.program.call()) != self.result:
            raise Found("the next call is wrong")
        if bits(self.program.written()) != self.after:
            raise Found("the next call writes what is wrong")
        self.program.restore()


def one_after_another(
    injector: Injector, name: str, watched: Watched, span: int, draw: random.Random | None
) -> tuple[int, int, list[str]]:
    """Fail allocations of one program; return how many failed, how many raised, what was found."""
    convcore.empty_cache()
    injector.arm(0, 0)
    watched.program.call()
    counted = injector.disarm()
    numbers = list(range(1, counted + 1))
    if draw is not None and counted > SAMPLE:
        numbers = sorted(draw.sample(numbers, SAMPLE))
    raised, found = 0, []
    for number in numbers:

        def failing(call: Callable[[], Any], number: int = number) -> Any:
            injector.arm(number, number + span - 1)
            try:
                return call()
            finally:
                injector.disarm()

        try:
            raised += watched.attempt(failing) is not None
        except Found as error:
            found.append(f"--only='{name}' --span={span} allocation {number} of {counted}: {error}")
            watched.program.restore()
            watched.in_use = in_use()
    return len(numbers), raised, found


def under_limits(name: str, watched: Watched) -> tuple[int, list[str]]:
    """Run a program in ever more address space, until it has enough."""
    found, refused = [], 0
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    convcore.empty_cache()
    for grown in range(0, 1 << 26, STEP):

        def failing(call: Callable[[], Any], grown: int = grown) -> Any:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + grown
            resource.setrlimit(resource.RLIMIT_AS, (limit, unlimited[1]))
            try:
                return call()
            finally:
                resource.setrlimit(resource.RLIMIT_AS, unlimited)

        try:
            if watched.attempt(failing) is None:
                break
            refused += 1
        except Found as error:
            found.append(f"--only='{name}' in {grown:,} bytes more: {error}")
        convcore.empty_cache()
    return refused, found


def preloaded() -> int:
    """Compile the library, and run this program again with it before all others."""
    folder = tempfile.mkdtemp()
    try:
        library = os.path.join(folder, "failing.so")
        compiler = os.environ.get("CC", "cc").split()
        subprocess.run(
            [*compiler, "-shared", "-fPIC", "-O2", "-o", library, str(SOURCE), "-ldl"], check=True
        )
        return subprocess.run(
            [sys.executable, "-X", "faulthandler", *sys.argv],
            env=os.environ | {"LD_PRELOAD": library, "CONVCORE_FAILING": "1"},
        ).returncode
    finally:
        shutil.rmtree(folder)


def run(options: argparse.Namespace, folder: Path) -> int:
    injector = Injector()
    draw = None if options.long else random.Random(options.seed)
    totals, everything = [0, 0, 0], []
    convcore.set_num_threads(THREADS)
    _threads.set_limit(THREADS, 1)  # regions of two threads, however little work there is
    for name, program in programs(folder):
        if options.only not in name or (options.small and name in FILES):
            continue
        if options.verbose:
            print(name, flush=True)
        injector.least = 0 if options.small else LARGE
        watched = Watched(program)
        gc.collect()
        gc.freeze()  # so that the collections below look at what is new
        failed, raised, found = one_after_another(injector, name, watched, options.span, draw)
        if draw is None and options.span == 1 and not options.small:
            in_a_row = one_after_another(injector, name, watched, ROW, draw)
            failed, raised, found = failed + in_a_row[0], raised + in_a_row[1], found + in_a_row[2]
        if draw is None or name in LIMITED:
            refused, more = under_limits(name, watched)
            found, totals[2] = found + more, totals[2] + refused
        totals[0], totals[1] = totals[0] + failed, totals[1] + raised
        everything += found
        if found:
            print(found[0], flush=True)
            print(f"{name}: {len(found)} of {failed}", flush=True)
    print(
        f"{totals[0]:,} failures, {totals[1]:,} of them a MemoryError; {totals[2]:,} calls in too "
        f"little address space; {len(everything)} faults"
    )
    return bool(everything)


def fill_blas() -> None:
    """Have NumPy's and SciPy's OpenBLAS take a buffer for each thread, while there is memory.

    OpenBLAS ends the process where it cannot have one, and asks for another one only when threads
    multiply at the same time: on a busy machine that may first be in too little address space.
    """
    together = threading.Barrier(2 * THREADS)
    square = np.ones((600, 600), np.float32, order="F")

    def multiply() -> None:
        for product in (np.matmul, partial(sgemm, 1.0)):
            together.wait()
            product(square, square)

    workers = [threading.Thread(target=multiply) for _ in range(2 * THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--long", action="store_true", help="every allocation of every program")
    parser.add_argument("--seed", type=int, default=20, help="of the sample without --long")
    parser.add_argument("--span", type=int, default=1, help="how many in a row fail")
    parser.add_argument("--small", action="store_true", help="small objects too")
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if "CONVCORE_FAILING" not in os.environ:
        return preloaded()
    fill_blas()
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "saved").mkdir()
        return run(options, folder / "saved")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
