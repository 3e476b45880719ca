"""What convcore is held to with whole nets; as `convcore.bench.promises` has it for layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from convcore.bench.cell import OURS
from convcore.bench.nets.catalogue import RUN, RUN_ONE, TRAIN
from convcore.bench.nets.measure import NetCell
from convcore.bench.pairing import geometric_mean, spread
from convcore.bench.peers import title
from convcore.bench.promises import Promise

_LEAST_TRAINING_MEAN, _LEAST_TRAINING = 1.3, 1.0
_LEAST_INFERENCE_MEAN, _LEAST_INFERENCE, _LEAST_SHORT = 1.2, 0.9, 0.5
# Runs that take less are mostly calls.
_SHORT_SECONDS = 1e-3


def promises(cells: Sequence[NetCell], peers: Sequence[str]) -> list[Promise]:
    """Return all promises that the cells can tell about."""
    found: list[Promise] = []
    training = [cell for cell in cells if cell.task == TRAIN]
    inference = [cell for cell in cells if cell.task in (RUN, RUN_ONE)]
    if "torch" in peers:
        found += _mean("torch", TRAIN, training, _LEAST_TRAINING_MEAN)
        found += _each("torch", TRAIN, training, lambda cell: _LEAST_TRAINING)
        found += _memory(training)
    if "onnxruntime" in peers:
        long = [cell for cell in inference if not _is_short(cell)]
        found += _mean("onnxruntime", "inference", long, _LEAST_INFERENCE_MEAN)
        found += _each(
            "onnxruntime",
            "inference",
            inference,
            lambda cell: _LEAST_SHORT if _is_short(cell) else _LEAST_INFERENCE,
        )
    return found


def _is_short(cell: NetCell) -> bool:
    ours = cell.best(OURS)
    return ours is not None and spread(cell.seconds[ours]).median < _SHORT_SECONDS


def _mean(peer: str, kind: str, cells: Sequence[NetCell], least: float) -> Iterator[Promise]:
    ratios = [ratio.median for cell in cells if (ratio := cell.ratio(peer)) is not None]
    if ratios:
        value = geometric_mean(ratios)
        text = f"{title(peer)}, {kind}: geometric mean of {len(ratios)}"
        yield Promise(text, f"{value:.2f}", f"{least:g}", value >= least)


def _each(
    peer: str, kind: str, cells: Sequence[NetCell], least: Callable[[NetCell], float]
) -> Iterator[Promise]:
    """Yield whether each ratio is at least its limit; an upper quartile below it is below."""
    found = [(cell, ratio) for cell in cells if (ratio := cell.ratio(peer)) is not None]
    if not found:
        return
    below = [cell for cell, ratio in found if ratio.high < least(cell)]
    worst, lowest = min(found, key=lambda pair: pair[1].high / least(pair[0]))
    limits = sorted({f"{least(cell):g}" for cell, _ in found})
    yield Promise(
        f"{title(peer)}, {kind}: nets below, of {len(found)}",
        *(f"{len(below)}", f"0 below {' or '.join(limits)}", not below),
        f"{worst.net.name}, {worst.task}: {lowest.median:.2f}",
    )


def _memory(cells: Sequence[NetCell]) -> Iterator[Promise]:
    """Yield whether a training step's peak memory is at most PyTorch's, in the leanest format."""
    for cell in cells:
        ours, theirs = (
            min((n for (one, _), n in cell.peak_bytes.items() if one == peer), default=None)
            for peer in (OURS, "torch")
        )
        if ours is not None and theirs is not None:
            yield Promise(
                f"peak memory of a training step, {cell.net.name}, MiB (at most PyTorch's)",
                *(f"{ours / 2**20:.0f}", f"{theirs / 2**20:.0f}", ours <= theirs),
            )
