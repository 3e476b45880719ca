"""What convcore is held to: every figure beside its limit, and whether it is kept.

A mean is the geometric mean of the cells' median ratios.  A single cell counts as below a limit
only if its upper quartile is: noise alone is no broken promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from convcore.bench.cell import OURS, Cell, Outcome
from convcore.bench.expected import EXPECTED, MARGIN
from convcore.bench.layer import MAPS
from convcore.bench.pairing import geometric_mean
from convcore.bench.peers import title
from convcore.bench.record import BETTER, Ratio, better_ratios, errors_by_algorithm, mean_of, ratios
from convcore.bench.request import Request
from convcore.bench.suites import SUITES
from convcore.bench.text import counted

# By what the run was held to: the least geometric mean against PyTorch held to the same.
_LEAST_MEAN = {"native": 1.5, "avx512": 1.5, "avx2": 1.2}
_LEAST_STRICT_MEAN = 0.9
_LEAST_CELL = 0.9
# 3x3, stride 1, 64 to 256 channels: where Winograd is at home.
_LEAST_3X3 = {"forward": 1.6, "input_grad": 1.4, "weight_grad": 1.4}
# Of small cells: the most times PyTorch's time.
_MOST_TIMES = {"forward": 2.0, "input_grad": 2.5, "weight_grad": 2.5}
_INFERENCE_PEERS, _LEAST_INFERENCE_MEAN = ("onnxruntime", "openvino"), 1.2


@dataclass(frozen=True, slots=True)
class Promise:
    """One figure, its limit, and whether it is kept."""

    text: str
    value: str
    limit: str
    kept: bool
    worst: str = ""
    """The cell that is furthest from keeping it."""


def promises(outcome: Outcome, request: Request) -> list[Promise]:
    """Return all promises that a run can tell about."""
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
            yield from _mean("torch", "same format", same, least)
            yield from _mean("torch", BETTER, better, least)
        if least == _LEAST_MEAN["native"]:
            yield from _each("PyTorch, every cell", same, lambda cell: _LEAST_CELL)
            plain = [ratio for ratio in same if _is_plain_3x3(ratio.ours)]
            for name, limit in _LEAST_3X3.items():
                mine = [ratio for ratio in plain if ratio.ours.map == name]
                yield from _each(
                    f"PyTorch, {name} of 3x3, stride 1, 64 to 256 channels",
                    mine,
                    lambda cell, least=limit: least,
                )
        yield from _of_memory(outcome, request)
    if request.isa in ("native", "avx512") and not request.strict:
        for peer in _INFERENCE_PEERS:
            if peer in request.peers:
                found = of(better_ratios(outcome, peer))
                yield from _mean(peer, f"forward, {BETTER}", found, _LEAST_INFERENCE_MEAN)


def _of_small_cells(outcome: Outcome) -> Iterator[Promise]:
    """Yield the promise on cells in which a call costs more than its arithmetic."""
    small = [cell for cell in outcome.cells if cell.small]
    found = [Ratio(cell, cell, r) for cell in small if (r := cell.ratio("torch")) is not None]
    for name, most in _MOST_TIMES.items():
        mine = [ratio for ratio in found if ratio.ours.map == name]
        yield from _each(f"PyTorch, small cells, {name}", mine, lambda cell, most=most: 1 / most)


def _beside_numpy(outcome: Outcome) -> Iterator[Promise]:
    """Yield a promise a layer: half of the ratio to NumPy that was measured, or more.

    On one thread only: a busy machine, as CI's may be, says little about more.
    """
    found = [r for r in ratios(outcome, "numpy") if r.ours.threads == 1]
    found = [ratio for ratio in found if ratio.ours.dtype == "float32"]
    for layer in SUITES["quick"]:
        mine = [ratio for ratio in found if ratio.ours.layer.spec == layer.spec]
        if len(mine) == len(MAPS):
            value = geometric_mean(ratio.spread.median for ratio in mine)
            least = EXPECTED[layer.name] / MARGIN
            yield Promise(
                f"NumPy, {layer.name}: geometric mean of its maps on 1 thread",
                *(f"{value:.2f}", f"{least:.2f}", value >= least),
            )


def _of_errors(outcome: Outcome) -> Iterator[Promise]:
    for (algorithm, dtype), (error, allowed) in errors_by_algorithm(outcome).items():
        text = f"error of {algorithm or 'unknown algorithm'}, {dtype}, in eps (at most)"
        yield Promise(text, f"{error:.2f}", f"{allowed:g}", error <= allowed)


def _of_memory(outcome: Outcome, request: Request) -> Iterator[Promise]:
    """Yield whether convcore's peak memory of the suite is at most PyTorch's."""
    for threads in request.threads:
        ours, theirs = (
            outcome.workers.get(f"{peer}@{threads}", {}).get("peak_bytes")
            for peer in (OURS, "torch")
        )
        if ours and theirs:
            yield Promise(
                f"peak memory of the suite, {counted(threads)}, MiB (at most PyTorch's)",
                *(f"{ours / 2**20:.0f}", f"{theirs / 2**20:.0f}", ours <= theirs),
            )


def _mean(peer: str, kind: str, found: list[Ratio], least: float) -> Iterator[Promise]:
    mean = mean_of(peer, kind, found)
    if mean is not None:
        text = f"{title(peer)}, {kind}: geometric mean of {mean.cells} cells"
        lowest = f"{mean.worst_cell}: {mean.worst:.2f}"
        yield Promise(text, f"{mean.value:.2f}", f"{least:g}", mean.value >= least, lowest)


def _each(text: str, found: list[Ratio], least: Callable[[Cell], float]) -> Iterator[Promise]:
    """Yield whether each of the ratios is at least its limit."""
    if not found:
        return
    below = [ratio for ratio in found if ratio.spread.high < least(ratio.ours)]
    lowest = min(found, key=lambda ratio: ratio.spread.high)
    limits = sorted({f"{least(ratio.ours):g}" for ratio in found})
    yield Promise(
        f"{text}: cells below, of {len(found)}",
        *(f"{len(below)}", f"0 below {' or '.join(limits)}", not below),
        f"{lowest.name}: {lowest.spread.median:.2f} (upper quartile {lowest.spread.high:.2f})",
    )


def _is_plain_3x3(cell: Cell) -> bool:
    layer = cell.layer
    fits = min(layer.c_in, layer.c_out) >= 64 and max(layer.c_in, layer.c_out) <= 256
    return fits and layer.dense and layer.kernel == (3, 3) and layer.stride == (1, 1)
