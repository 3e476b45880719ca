"""Performance promises: each figure, its limit, and whether it is kept.

A mean is the geometric mean of median ratios.  A single layer or net counts as below a limit only
if its upper quartile is: noise alone is no broken promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from convcore.bench.layers import PASSES
from convcore.bench.measuring import Quartiles, geometric_mean
from convcore.bench.nets import RUN, RUN_ONE, TRAIN, NetCell
from convcore.bench.peers import OURS, title
from convcore.bench.results import (
    BETTER,
    Cell,
    Outcome,
    Ratio,
    Request,
    better_ratios,
    counted,
    errors_by_algorithm,
    ratios,
)
from convcore.bench.suites import SUITES

# By what the run was held to: the least geometric mean against PyTorch held to the same.
_LEAST_MEAN = {"native": 1.5, "avx512": 1.5, "avx2": 1.2}
_LEAST_STRICT_MEAN = 0.9
_LEAST_CELL = 0.9
# 3x3, stride 1, 64 to 256 channels: where Winograd is at home.
_LEAST_3X3 = {"forward": 1.6, "input_grad": 1.4, "weight_grad": 1.4}
# Of small cells: the most times PyTorch's time.
_MOST_TIMES = {"forward": 2.0, "input_grad": 2.5, "weight_grad": 2.5}
_INFERENCE_PEERS, _LEAST_INFERENCE_MEAN = ("onnxruntime", "openvino"), 1.2

# Geometric means of a layer's three passes on one thread beside a NumPy notebook, in the contiguous
# format: about the lower of what two of OpenBLAS's kernels gave,
#
#     convcore bench --quick --peers numpy --threads 1
#     convcore bench --quick --peers numpy --threads 1 --isa avx2
#
# A ratio to NumPy needs no idle machine and no particular one, as long as the margin is wide.
MARGIN = 2.0
EXPECTED = {
    "ResNet-50 conv1": 4.0,
    "ResNet-50 layer1.0.conv2": 10.0,
    "ResNet-50 layer1.0.conv3": 1.2,
    "ResNet-50 layer2.0.conv2": 2.4,
    "ResNet-50 layer3.0.downsample": 1.5,
    "ResNet-50 layer4.1.conv2": 1.2,
    "VGG-16 features.2": 8.0,
    "VGG-16 features.24": 1.5,
    "MobileNetV2 features.3 expand": 1.1,
    "MobileNetV2 features.3 depthwise": 3.8,
    "LeNet conv1": 4.0,
    "LeNet conv2": 2.4,
}

# Whole nets.  Runs that take less than _SHORT_SECONDS are mostly calls.
_LEAST_TRAINING_MEAN, _LEAST_TRAINING = 1.3, 1.0
_LEAST_RUN_MEAN, _LEAST_RUN, _LEAST_SHORT_RUN = 1.2, 0.9, 0.5
_SHORT_SECONDS = 1e-3
_PRECISIONS = (OURS, "convcore_bfloat16")
# Beside PyTorch under autocast in bfloat16.
_LEAST_AUTOCAST_TRAINING_MEAN, _LEAST_AUTOCAST_RUN_MEAN, _LEAST_AUTOCAST = 1.3, 1.5, 1.0


@dataclass(frozen=True, slots=True)
class Promise:
    """One figure, its limit, and whether it is kept."""

    text: str
    value: str
    limit: str
    kept: bool
    worst: str = ""
    """The layer or net that is furthest from keeping it."""


def promises(outcome: Outcome, request: Request) -> list[Promise]:
    """Return all promises that a run of layers can tell about.

    Of an algorithm that the user chose, only errors are promised.
    """
    if request.algorithm is not None:
        return list(_of_errors(outcome))
    found: list[Promise] = []
    if "table" in request.suites:
        found += _of_table(outcome, request)
    if "torch" in request.peers:
        found += _of_small_cells(outcome)
    if "numpy" in request.peers:
        found += _beside_numpy(outcome)
    return found + list(_of_errors(outcome))


def _of_table(outcome: Outcome, request: Request) -> Iterator[Promise]:
    """Yield the promises on the layers of the suite ``table``."""
    layers = {layer.spec for layer in SUITES["table"]}

    def of(found: Iterable[Ratio]) -> list[Ratio]:
        return [r for r in found if r.ours.layer.spec in layers and r.ours.dtype == "float32"]

    if "torch" in request.peers:
        same, better = of(ratios(outcome, "torch")), of(better_ratios(outcome, "torch"))
        least = _LEAST_STRICT_MEAN if request.strict else _LEAST_MEAN.get(request.isa)
        if least is not None:
            yield from _mean("PyTorch, same format", "cells", _named(same, least))
            yield from _mean(f"PyTorch, {BETTER}", "cells", _named(better, least))
        if least == _LEAST_MEAN["native"]:
            yield from _each("PyTorch, every cell", "cells", _named(same, _LEAST_CELL))
            for name, limit in _LEAST_3X3.items():
                mine = [r for r in same if r.ours.pass_name == name and _is_plain_3x3(r.ours)]
                text = f"PyTorch, {name} of 3x3, stride 1, 64 to 256 channels"
                yield from _each(text, "cells", _named(mine, limit))
        for threads in request.threads:
            ours, theirs = (
                outcome.workers.get(f"{peer}@{threads}", {}).get("peak_bytes")
                for peer in (OURS, "torch")
            )
            if ours and theirs:
                yield _memory(f"of the suite, {counted(threads)}", ours, theirs)
    if request.isa in ("native", "avx512") and not request.strict:
        for peer in _INFERENCE_PEERS:
            if peer in request.peers:
                found = _named(of(better_ratios(outcome, peer)), _LEAST_INFERENCE_MEAN)
                yield from _mean(f"{title(peer)}, forward, {BETTER}", "cells", found)


def _of_small_cells(outcome: Outcome) -> Iterator[Promise]:
    """Yield the promise on cells in which a call costs more than its arithmetic."""
    small = [cell for cell in outcome.cells if cell.small]
    found = [Ratio(cell, cell, r) for cell in small if (r := cell.ratio("torch")) is not None]
    for name, most in _MOST_TIMES.items():
        mine = [ratio for ratio in found if ratio.ours.pass_name == name]
        yield from _each(f"PyTorch, small cells, {name}", "cells", _named(mine, 1 / most))


def _beside_numpy(outcome: Outcome) -> Iterator[Promise]:
    """Yield a promise a layer: half of the ratio to NumPy that was measured, or more.

    On one thread only: a busy machine, as CI's may be, says little about more.
    """
    found = [r for r in ratios(outcome, "numpy") if r.ours.threads == 1]
    found = [ratio for ratio in found if ratio.ours.dtype == "float32"]
    for layer in SUITES["quick"]:
        mine = [ratio for ratio in found if ratio.ours.layer.spec == layer.spec]
        if len(mine) == len(PASSES):
            value = geometric_mean(ratio.quartiles.median for ratio in mine)
            least = EXPECTED[layer.name] / MARGIN
            text = f"NumPy, {layer.name}: geometric mean of its passes on 1 thread"
            yield Promise(text, f"{value:.2f}", f"{least:.2f}", value >= least)


def _of_errors(outcome: Outcome) -> Iterator[Promise]:
    for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items():
        text = f"error of {algorithm or 'unknown algorithm'}, {dtype}, in eps (at most)"
        yield Promise(text, f"{error:.2f}", f"{allowed:g}", error <= allowed)


def _is_plain_3x3(cell: Cell) -> bool:
    layer = cell.layer
    fits = min(layer.c_in, layer.c_out) >= 64 and max(layer.c_in, layer.c_out) <= 256
    return fits and layer.dense and layer.kernel == (3, 3) and layer.stride == (1, 1)


def net_promises(cells: Sequence[NetCell], peers: Sequence[str]) -> list[Promise]:
    """Return all promises that a run of whole nets can tell about."""
    found: list[Promise] = []
    training = [cell for cell in cells if cell.task == TRAIN]
    if "torch" in peers:
        text = f"PyTorch, {TRAIN}"
        found += _mean(text, "", _of_nets("torch", training, _LEAST_TRAINING_MEAN))
        found += _each(text, "nets", _of_nets("torch", training, _LEAST_TRAINING))
        found += _net_memory(training)
    runs = [cell for cell in cells if cell.task in (RUN, RUN_ONE)]
    if "torch_bfloat16" in peers:
        found += _beside_autocast(training, runs)
    if "onnxruntime" in peers:
        long = [cell for cell in runs if not 0 < cell.median(OURS) < _SHORT_SECONDS]
        short = [cell for cell in runs if 0 < cell.median(OURS) < _SHORT_SECONDS]
        text = "ONNX Runtime, inference"
        found += _mean(text, "", _of_nets("onnxruntime", long, _LEAST_RUN_MEAN))
        limited = _of_nets("onnxruntime", long, _LEAST_RUN)
        limited += _of_nets("onnxruntime", short, _LEAST_SHORT_RUN)
        found += _each(text, "nets", limited)
    return found


def _beside_autocast(training: list[NetCell], runs: list[NetCell]) -> Iterator[Promise]:
    """Yield the promises on convcore, in its faster precision, beside PyTorch's bfloat16."""
    for text, cells, mean in (
        (TRAIN, training, _LEAST_AUTOCAST_TRAINING_MEAN),
        (RUN, runs, _LEAST_AUTOCAST_RUN_MEAN),
    ):
        text = f"{title('torch_bfloat16')}, {text}"
        yield from _mean(text, "", _of_nets("torch_bfloat16", cells, mean, _PRECISIONS))
        yield from _each(
            text, "nets", _of_nets("torch_bfloat16", cells, _LEAST_AUTOCAST, _PRECISIONS)
        )


def _net_memory(cells: Sequence[NetCell]) -> Iterator[Promise]:
    """Yield whether a training step's peak memory is at most PyTorch's, in the leanest format."""
    for cell in cells:
        ours, theirs = (
            min((n for (one, _), n in cell.peak_bytes.items() if one == peer), default=None)
            for peer in (OURS, "torch")
        )
        if ours is not None and theirs is not None:
            yield _memory(f"of a training step, {cell.net.name}", ours, theirs)


@dataclass(frozen=True, slots=True)
class _Limited:
    """A ratio to a peer and the least that it is to be."""

    name: str
    ratio: Quartiles
    least: float


def _named(found: Sequence[Ratio], least: float) -> list[_Limited]:
    return [_Limited(ratio.name, ratio.quartiles, least) for ratio in found]


def _of_nets(
    peer: str, cells: Sequence[NetCell], least: float, ways: Sequence[str] = (OURS,)
) -> list[_Limited]:
    """Return the speed over a peer's of the fastest of our ways, net by net."""
    pairs = []
    for cell in cells:
        timed = [way for way in ways if cell.best(way)]
        ours = min(timed, key=cell.median, default=OURS)
        pairs.append((f"{cell.net.name}, {cell.task}", cell.speed(ours, peer)))
    return [_Limited(name, ratio, least) for name, ratio in pairs if ratio is not None]


def _mean(text: str, unit: str, found: Sequence[_Limited]) -> Iterator[Promise]:
    """Yield whether the geometric mean of the ratios is at least their common limit."""
    if found:
        value, least = geometric_mean(one.ratio.median for one in found), found[0].least
        lowest = min(found, key=lambda one: one.ratio.median)
        yield Promise(
            f"{text}: geometric mean of {len(found)} {unit}".rstrip(),
            *(f"{value:.2f}", f"{least:g}", value >= least),
            f"{lowest.name}: {lowest.ratio.median:.2f}",
        )


def _each(text: str, unit: str, found: Sequence[_Limited]) -> Iterator[Promise]:
    """Yield whether each of the ratios is at least its limit."""
    if found:
        below = [one for one in found if one.ratio.high < one.least]
        lowest = min(found, key=lambda one: one.ratio.high / one.least)
        limits = sorted({f"{one.least:g}" for one in found})
        ratio = lowest.ratio
        yield Promise(
            f"{text}: {unit} below, of {len(found)}",
            *(f"{len(below)}", f"0 below {' or '.join(limits)}", not below),
            f"{lowest.name}: {ratio.median:.2f} (upper quartile {ratio.high:.2f})",
        )


def _memory(text: str, ours: int, theirs: int) -> Promise:
    text = f"peak memory {text}, MiB (at most PyTorch's)"
    return Promise(text, f"{ours / 2**20:.0f}", f"{theirs / 2**20:.0f}", ours <= theirs)
