"""ONNX models beside ONNX Runtime: equal results, and CPU time on one thread.

    python benchmarks/onnx_models.py model.onnx other.onnx:1x3x48x320 --size 96 --size 128

Each model runs as `convcore.onnx.load` makes it and as `convcore.optimize_for_inference` makes it
of that, at each size where the heights and widths of its inputs are free (once where they are not,
or where the path says the sizes).  An error is the largest difference over the largest magnitude of
ONNX Runtime's output, or over 1e-2 where that is smaller.  Times are CPU times of the whole
process, the least of several runs taken in turn; ``convcore bench --nets model.onnx`` has times by
the clock, on any number of threads, each library in a process of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnxruntime as ort

import convcore
from convcore import onnx

TOLERANCE = 1e-4
# Magnitude below which an output counts as that large: a sigmoid of -16 is 1e-7, and its rounding.
LEAST = 1e-2
HEADER = ("model", "input", "error", "error, opt.", "ms", "ms, opt.", "ms, ORT", "ORT / opt.")
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


def session_of(path: Path) -> ort.InferenceSession:
    """Return ONNX Runtime's session of a model, on one thread and without its warnings."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def shape_of(sizes: Sequence[Any], size: int) -> tuple[int, ...]:
    """Return an input's shape: 1 for a free batch or channel axis, a size for other free axes."""
    # Channels come last where the last axis is fixed and the second is not.
    last = len(sizes) > 2 and isinstance(sizes[-1], int) and not isinstance(sizes[1], int)
    ones = (0,) if last else (0, 1)
    return tuple(n if isinstance(n, int) else 1 if k in ones else size for k, n in enumerate(sizes))


def path_and_shape(text: str) -> tuple[Path, tuple[int, ...] | None]:
    """Return the path of a model, and the sizes that follow it: ``net.onnx:1x3x48x320``."""
    path, _, sizes = text.partition(".onnx:")
    if not sizes:
        return Path(text), None
    return Path(f"{path}.onnx"), tuple(map(int, sizes.split("x")))


def inputs_of(session: ort.InferenceSession, size: int | tuple[int, ...]) -> list[np.ndarray]:
    """Return an array for each input: of that shape, or of that height and width."""
    rng = np.random.default_rng(0)
    arrays = []
    for each in session.get_inputs():
        if each.type not in _TYPES:
            raise ValueError(f"input {each.name!r} is {each.type}; allowed: {', '.join(_TYPES)}")
        # From 0 to 1, as pictures are; integers are 0.
        shape = size if isinstance(size, tuple) else shape_of(each.shape, size)
        arrays.append(rng.random(shape).astype(_TYPES[each.type]))
    return arrays


def error_of(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """Return the largest difference over the wanted output's largest magnitude, of all outputs."""
    errors = [0.0]
    for a, b in zip(found, wanted, strict=True):
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return float("inf")
        known = np.isfinite(b)
        a, b = a[known].astype(np.float64), b[known].astype(np.float64)
        scale = max(np.abs(b).max(initial=0.0), LEAST)
        errors.append(float(np.abs(a - b).max(initial=0.0) / scale))
    return max(errors)


def least_times(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """Return the least CPU time of each call in ms; they run in turn, three times or more."""
    least = [float("inf")] * len(calls)
    end, rounds = time.process_time() + seconds, 0
    while rounds < 3 or time.process_time() < end:
        for k, call in enumerate(calls):
            start = time.process_time()
            call()
            least[k] = min(least[k], 1e3 * (time.process_time() - start))
        rounds += 1
    return least


def _arrays(results: Any) -> list[np.ndarray]:
    return [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]


Row = tuple[str, ...]


def compare(path: Path, size: int | tuple[int, ...], seconds: float) -> tuple[Row, bool]:
    """Return a row of the table, and whether both forms of the model are equal to the peer's."""
    session = session_of(path)
    arrays = inputs_of(session, size)
    feed = {each.name: x for each, x in zip(session.get_inputs(), arrays, strict=True)}
    nets = [onnx.load(path)]
    tensors = [convcore.from_numpy(x) for x in arrays]
    with convcore.no_grad():
        nets.append(convcore.optimize_for_inference(onnx.load(path), *tensors))
        wanted = session.run(None, feed)
        errors = [error_of(_arrays(net(*tensors)), wanted) for net in nets]
        calls: list[Callable[[], Any]] = [lambda net=net: net(*tensors) for net in nets]
        calls.append(lambda: session.run(None, feed))
        times = least_times(calls, seconds)
    shape = " ".join("x".join(map(str, x.shape)) for x in arrays)
    figures = [f"{e:.1e}" for e in errors] + [f"{t:.2f}" for t in times]
    row = (path.stem, shape, *figures, f"{times[2] / times[1]:.2f}")
    return row, max(errors) <= TOLERANCE


def rows_of(text: str, sizes: Sequence[int], seconds: float) -> tuple[list[Row], bool]:
    """Return a model's rows: one for each size, one where none of its axes is free."""
    path, shape = path_and_shape(text)
    if shape is not None:
        row, equal = compare(path, shape, seconds)
        return [row], equal
    shapes = {
        tuple(shape_of(each.shape, n) for each in session_of(path).get_inputs()): n for n in sizes
    }
    results = [compare(path, size, seconds) for size in shapes.values()]
    return [row for row, _ in results], all(equal for _, equal in results)


def main() -> int:
    """Compare the models that are named; exit with 1 if one differs or does not run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="paths of .onnx files, perhaps :1x3x48x320")
    parser.add_argument("--size", type=int, action="append", help="free heights and widths")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU time for each row")
    options = parser.parse_args()
    convcore.set_num_threads(1)
    print("|", " | ".join(HEADER), "|")
    print("|---" * len(HEADER) + "|")
    failed, means = False, []
    for text in options.models:
        try:
            rows, equal = rows_of(text, options.size or [224, 256], options.seconds)
            means.append(geometric_mean(float(row[-1]) for row in rows))
        except Exception as error:  # One model's fault must not hide the others' rows.
            rows, equal = [(text, f"{type(error).__name__}: {error}".splitlines()[0])], False
        failed |= not equal
        for row in rows:
            print("|", " | ".join((*row, *[""] * (len(HEADER) - len(row)))), "|", flush=True)
    if means:
        print(f"geometric mean of {len(means)} models: {geometric_mean(means):.2f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
