"""Benchmarks of whole nets: training steps and inference, against other libraries.

The list of nets, what a worker process does with one, and the parent, which lets every library
train and run every net in turn, each in its own process.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import convcore
from convcore.bench.layers import FORMATS
from convcore.bench.measuring import Quartiles, paired_ratios, quartiles, take_turns
from convcore.bench.net_files import READERS, FileNet, is_file, net_in
from convcore.bench.peers import BFLOAT16, OURS, Peer, title
from convcore.bench.process import WorkerError, WorkerProcess
from convcore.bench.progress import Guess, Step

TRAIN, RUN, RUN_ONE = TASKS = ("training step", "inference", "inference of one")

PEERS = ("convcore_bfloat16", "torch", "torch_bfloat16", "onnxruntime", "openvino")
# Behind the formats of PyTorch's nets that torch.compile has made faster.
_COMPILED = " compiled"
_AUTOCAST = " autocast"

# Small: the same batch is learned from again and again, and must not make numbers overflow.
_STEP = {"lr": 1e-3, "momentum": 0.9}
# Outputs of one net in two libraries, over the largest: rounding, some fifty layers deep.
_TOLERANCE = 1e-3
# And where one of them computes in bfloat16, whose eps is 2^-7.
_BFLOAT16_TOLERANCE = 0.1
# About what a training step of a library takes for each multiply-add of the forward pass on one
# thread, and what its process takes to start; for the guess at the start only.
SECONDS_A_MULTIPLY_ADD, STARTING_SECONDS = 6e-11, 3.0

# (library, memory format of its tensors); the format is empty where the library chooses.
Variant = tuple[str, str]
Precision = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Net:
    """A function of convcore.models, its options, and the (C, H, W) pictures it takes.

    ``loss`` names the function of nn.functional that training minimises; ``multiply_adds`` is
    about what a picture takes, which a guess at the time is made from.
    """

    name: str
    function: str
    batch: int
    picture: tuple[int, int, int]
    multiply_adds: float
    loss: str = "cross_entropy"
    classes: int = 1000
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name by which a worker finds it."""
        return self.function

    def input_shape(self, task: str) -> tuple[int, ...]:
        """Return the shape of the input: (N, C, H, W)."""
        return (1 if task == RUN_ONE else self.batch, *self.picture)

    def formats(self, peer: str, task: str, compiled: bool = False) -> tuple[str, ...]:
        """Return the formats in which a library does a task; see `formats_of`."""
        return formats_of(peer, task, compiled)


NETS = (
    Net("ResNet-18", "resnet18", 8, (3, 224, 224), 1.8e9),
    Net("ResNet-50", "resnet50", 8, (3, 224, 224), 4.1e9),
    # 0.3e9, but its time is that of its memory.
    Net("MobileNetV2", "mobilenet_v2", 8, (3, 224, 224), 1.5e9),
    Net("VGG-16", "vgg16", 4, (3, 224, 224), 15.5e9),
    # The maps of 32 to 256 channels.
    Net("U-Net", "unet", 2, (3, 256, 256), 10e9, "binary_cross_entropy", options={"depth": 3}),
    Net("LeNet", "lenet", 64, (1, 28, 28), 1e6, "nll_loss", 10),
)


def net_named(name: str) -> Net | FileNet:
    """Return the net of that name, or in that ONNX file.

    Raises
    ------
    ValueError
        There is none.
    """
    return net_in(name) if is_file(name) else own_net(name)


def own_net(name: str) -> Net:
    """Return the net of `NETS` of that name.

    Raises
    ------
    ValueError
        There is none.
    """
    for net in NETS:
        if name.lower() in (net.name.lower(), net.function):
            return net
    names = ", ".join(net.name for net in NETS)
    raise ValueError(f"{name!r} is none of the nets {names}, and no file net.onnx")


def formats_of(peer: str, task: str, compiled: bool = False) -> tuple[str, ...]:
    """Return the formats in which a library does a task, an empty name where it chooses by itself.

    There are none for what it cannot do: only convcore and PyTorch train.
    """
    assert task in TASKS
    if peer == OURS or (peer == "convcore_bfloat16" and task != TRAIN):
        return FORMATS if task == TRAIN else ("",)
    if peer == "convcore_bfloat16":
        return (*FORMATS, "channels_last" + _AUTOCAST)
    if peer in READERS:
        return () if task == TRAIN else ("",)
    if peer != "torch":
        return FORMATS
    return FORMATS + tuple(format + _COMPILED for format in FORMATS) if compiled else FORMATS


def make_net(library: Any, net: Net) -> Any:
    """Make a net with random weights, the same at every call."""
    library.manual_seed(0)
    return getattr(convcore.models, net.function)(library=library, **net.options)


def pictures(net: Net, task: str) -> np.ndarray:
    """Return the input, (N, C, H, W), the same at every call."""
    rng = np.random.default_rng(1)
    return rng.standard_normal(net.input_shape(task), dtype=np.float32)


def save_weights(model: Any, file: Path) -> None:
    """Save a net's parameters and buffers, by their names."""
    np.savez(file, **{name: value.numpy() for name, value in model.state_dict().items()})


def loaded(library: Any, net: Net, weights: Path) -> Any:
    """Make a net with saved parameters and buffers."""
    model = make_net(library, net)
    with np.load(weights) as saved:
        model.load_state_dict({name: library.from_numpy(saved[name]) for name in saved.files})
    return model


def export(net: Net, task: str, weights: Path, file: Path) -> None:
    """Write a net, in evaluation mode and for one shape of inputs, as ONNX."""
    from convcore import onnx  # an extra's

    x = convcore.from_numpy(pictures(net, task))
    model = loaded(convcore, net, weights)
    onnx.export(model, x, file, input_names=["input"], output_names=["output"])


def net_call(
    peer: Peer, net: Net | FileNet, task: str, format: str, folder: Path
) -> Callable[[], Any]:
    """Return what is timed, of a net whose weights or ONNX file lies in a folder."""
    if isinstance(net, FileNet):
        return net.call(peer, format)
    if peer.library is None:
        return peer.net_call(folder / "net.onnx", pictures(net, task))
    plain = format.removesuffix(_COMPILED).removesuffix(_AUTOCAST)
    weights = folder / "weights.npz"
    precision = peer.autocast if format.endswith(_AUTOCAST) else peer.precision
    how = format.endswith(_COMPILED), precision, peer.optimization
    return task_call(peer.library, net, task, plain, weights, *how)


def task_call(
    library: Any,
    net: Net,
    task: str,
    format: str,
    weights: Path,
    compiled: bool = False,
    precision: Precision = nullcontext,
    optimization: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[[], Any]:
    """Return a function that does a task; it returns the outputs, or the loss before the step.

    compiled : whether the library's ``compile`` has made the net faster
    precision : makes the context of the forward pass and the loss
    optimization : options of the library's ``optimize_for_inference``, if it has one
    """
    model = loaded(library, net, weights)
    x = library.from_numpy(pictures(net, task))
    if format == "channels_last":
        model = model.to(memory_format=library.channels_last)
        x = x.to(memory_format=library.channels_last)
    model.train(task == TRAIN)
    if compiled:
        model = library.compile(model)
    if task == TRAIN:
        return training_step(library, net, model, x, precision)
    return _inference(library, model, x, precision, optimization)


def training_step(
    library: Any, net: Net, model: Any, x: Any, precision: Precision = nullcontext
) -> Callable[[], Any]:
    """Return a function that learns from a batch and returns the loss before that."""
    loss_of = getattr(library.nn.functional, net.loss)
    optimizer = library.optim.SGD(model.parameters(), **_STEP)
    library.manual_seed(0)
    if net.loss == "binary_cross_entropy":
        n, _, h, w = x.shape
        target = library.rand(n, 1, h, w)
    else:
        target = library.randint(0, net.classes, (x.shape[0],))

    def step() -> Any:
        optimizer.zero_grad()
        with precision():
            loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    return step


def _inference(
    library: Any, model: Any, x: Any, precision: Precision, optimization: Mapping[str, Any]
) -> Callable[[], Any]:
    optimize = getattr(library, "optimize_for_inference", None)
    if optimize is not None:
        model = optimize(model, x, **optimization)

    def run() -> Any:
        with library.no_grad(), precision():
            return model(x)

    return run


@dataclass
class NetCell:
    """One net, one task: seconds, results and memory, by library and format."""

    net: Net | FileNet
    task: str
    threads: int
    seconds: dict[Variant, list[float]] = field(default_factory=dict)
    results: dict[Variant, np.ndarray] = field(default_factory=dict)
    peak_bytes: dict[Variant, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def best(self, peer: str) -> Variant | None:
        """Return the variant of a library with the lowest median."""
        variants = [variant for variant in self.seconds if variant[0] == peer]
        return min(variants, key=lambda v: quartiles(self.seconds[v]).median, default=None)

    def median(self, peer: str) -> float:
        """Return a library's seconds in its better format; 0 where it was not timed."""
        variant = self.best(peer)
        return quartiles(self.seconds[variant]).median if variant else 0.0

    def ratio(self, peer: str) -> Quartiles | None:
        """Return a peer's time over ours, each side's better format, round by round."""
        return self.speed(OURS, peer)

    def speed(self, library: str, base: str) -> Quartiles | None:
        """Return a library's speed over another's; None where either was not timed."""
        mine, other = self.best(library), self.best(base)
        if mine is None or other is None:
            return None
        rounds = min(len(self.seconds[mine]), len(self.seconds[other]))  # after Ctrl-C
        return quartiles(paired_ratios(self.seconds[mine], self.seconds[other][:rounds]))

    def error(self, bfloat16: bool = False) -> float:
        """Return how far results lie apart, over the largest element; 0 for fewer than two.

        bfloat16 : of those computed in bfloat16, from the first; otherwise of all others
        """
        first = next(iter(self.results.values()), None)
        if first is None:
            return math.nan
        others = [r for (peer, _), r in self.results.items() if (peer in BFLOAT16) == bfloat16]
        scale = float(np.abs(first).max(initial=1e-30))
        apart = (float(np.abs(other - first).max(initial=0)) for other in others)
        return max(apart, default=0.0) / scale

    @property
    def wrong(self) -> bool:
        """Whether a library computed something else."""
        # A training step draws what dropout leaves out: its loss is compared by the tests.
        if self.task == TRAIN:
            return False
        near = self.error(bfloat16=True) <= _BFLOAT16_TOLERANCE
        return not (near and self.error() <= _TOLERANCE)

    def as_data(self) -> dict[str, Any]:
        """Return the cell for a JSON file."""
        variants = {
            f"{peer}/{format}" if format else peer: {
                "seconds": seconds,
                "peak_bytes": self.peak_bytes[peer, format],
            }
            for (peer, format), seconds in self.seconds.items()
        }
        return {
            "net": self.net.name,
            "task": self.task,
            "threads": self.threads,
            "input": self.net.input_shape(self.task),
            "difference": self.error(),
            "difference_in_bfloat16": self.error(bfloat16=True),
            "failed": self.failed,
            "variants": variants,
        }


@dataclass
class Effort(Guess):
    """Benchmark size: nets, libraries, thread counts and rounds, and its estimated time."""

    nets: Sequence[Net | FileNet]
    peers: Sequence[str]
    threads: Sequence[int]
    rounds: int
    compiled: bool = False

    @property
    def whole(self) -> float:
        """Return about how many seconds all tasks take, on each number of threads."""
        return sum(
            len(self.variants(net, task)) * self.of_variant(net, task, threads)
            for net, task, threads in itertools.product(self.nets, TASKS, self.threads)
        )

    def variants(self, net: Net | FileNet, task: str) -> list[Variant]:
        """Return what does a task: every library in every format."""
        return [(p, f) for p in (OURS, *self.peers) for f in net.formats(p, task, self.compiled)]

    def of_variant(self, net: Net | FileNet, task: str, threads: int) -> float:
        """About seconds: a library starts, calls twice, calibrates, and has its rounds."""
        call = SECONDS_A_MULTIPLY_ADD / threads * net.multiply_adds * net.input_shape(task)[0]
        call /= 1 if task == TRAIN else 3
        return STARTING_SECONDS + (4 + self.rounds) * max(call, 0.02)


def measure(
    environment: Mapping[str, str], threads: int, effort: Effort, cells: list[NetCell]
) -> Iterator[Step]:
    """Measure every task of every net; yield progress, and fill ``cells`` as they come.

    Parameters
    ----------
    environment : mapping
        The workers', for that many threads.
    threads : int
    effort : Effort
        The nets; peers out of `PEERS`; rounds; and whether PyTorch also has its turns with
        ``torch.compile``, which takes a minute a net and a C++ compiler.
    cells : list of NetCell

    Raises
    ------
    WorkerError
        Our own worker failed; a peer that fails is left out, and its cell says why.
    """

    def start(peer: str) -> WorkerProcess:
        return WorkerProcess(peer, threads, environment)

    for net in effort.nets:
        with tempfile.TemporaryDirectory() as folder:
            weights = str(Path(folder, "weights.npz"))
            if isinstance(net, Net):
                with start(OURS) as worker:
                    worker.ask("save_net_weights", net=net.key, file=weights)
            for task in TASKS:
                variants = effort.variants(net, task)
                if isinstance(net, Net) and any(peer in READERS for peer, _ in variants):
                    file = str(Path(folder, "net.onnx"))
                    with start(OURS) as worker:
                        worker.ask("export_net", net=net.key, task=task, weights=weights, file=file)
                if variants:
                    cell = NetCell(net, task, threads)
                    yield from _measure(cell, effort, folder, start)
                    cells.append(cell)


def _measure(
    cell: NetCell, effort: Effort, folder: str, start: Callable[[str], WorkerProcess]
) -> Iterator[Step]:
    """Run each variant once, then time them in turn; leave out a peer if one of its fails."""
    # Here, not above: it loads the kernels, which a worker has not before its peer.
    from convcore.bench.results import counted

    variants = effort.variants(cell.net, cell.task)
    each = effort.of_variant(cell.net, cell.task, cell.threads)
    name = f"{cell.net.name}, {cell.task}, {counted(cell.threads)}"
    with ExitStack() as stack:
        workers: dict[Variant, WorkerProcess] = {}
        for peer, format in variants:
            yield effort.step(f"{name}: {title(peer)} {format}".rstrip(), each / 2)
            if peer in cell.failed:
                continue
            worker = stack.enter_context(start(peer))
            try:
                _prepare(cell, worker, (peer, format), folder)
            except WorkerError as error:
                if peer == OURS:
                    raise
                cell.failed[peer] = str(error)
            else:
                workers[peer, format] = worker
        timed = {variant: partial(worker.ask, "time") for variant, worker in workers.items()}
        rounds = effort.rounds
        for variant, seconds in take_turns(timed, dict.fromkeys(workers, rounds), rounds):
            cell.seconds.setdefault(variant, []).append(seconds)
            text = f"{name}: round {len(cell.seconds[variant])} of {rounds}"
            yield effort.step(text, each / 2 / rounds)


def _prepare(cell: NetCell, worker: WorkerProcess, variant: Variant, folder: str) -> None:
    result = Path(folder, "result.npy")
    cell.peak_bytes[variant] = worker.ask(
        "prepare_net",
        net=cell.net.key,
        task=cell.task,
        format=variant[1],
        folder=folder,
        result=str(result),
    )
    cell.results[variant] = np.load(result)
    worker.ask("calibrate")
