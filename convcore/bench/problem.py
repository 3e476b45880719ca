"""A layer's arrays and their exact results, on disk: every peer computes on the same bits.

Exact means far beyond the dtype that is measured.  For float32 the oracle's float64 is that.  For
float64 the operands are split in two, a high part on a coarse grid and a rest: a pass over the high
parts has no rounding error at all in float64 (its products and sums are multiples of the grid's
square, fewer than 2^53 of it), and what the rests add is small, so its own rounding is nothing.

References
----------
Ozaki, Ogita, Oishi & Rump 2012, "Error-free transformations of matrix multiplication by using fast
routines of matrix multiplication and its applications", section 3: the splitting.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from convcore.bench.layers import OPERANDS, Layer, pass_calls
from convcore.engine import reference

Arrays = dict[str, np.ndarray]
# Of each pass, the two operands that it multiplies.
_FACTORS = {
    "forward": ("input", "weight"),
    "input_grad": ("grad_output", "weight"),
    "weight_grad": ("input", "grad_output"),
}
# Steps of the coarse grid.  Sums up to 2^53 / _GRID^2 = 2^23 are exact on its square.
_GRID = 2.0**15
_LARGEST_SCALE = 2.0**53 / _GRID**2


def draw_operands(layer: Layer, seed: int, dtype: str = "float32") -> Arrays:
    """Return normal deviates in the shapes of input, weight and grad_output."""
    generator = np.random.default_rng(seed)
    return {
        name: generator.standard_normal(shape, dtype=np.dtype(dtype))
        for name, shape in layer.shapes.items()
    }


def exact_parts(layer: Layer, operands: Arrays, pass_name: str) -> list[np.ndarray]:
    """Return one pass of the operands, as float64 arrays whose sum is exact for the dtype.

    One array for float32, two for float64: each is subtracted by itself from what is measured.
    """
    if operands["input"].dtype == np.float32:
        return [pass_calls(reference, layer, operands)[pass_name]()]
    high = {name: np.round(array * _GRID) / _GRID for name, array in operands.items()}
    rest = {name: operands[name] - high[name] for name in OPERANDS}
    first, second = _FACTORS[pass_name]

    def of(**factors: np.ndarray) -> np.ndarray:
        return pass_calls(reference, layer, {**operands, **factors})[pass_name]()

    # a b = ha hb + (ra b + ha rb)
    small = of(**{first: rest[first]}) + of(**{first: high[first], second: rest[second]})
    return [of(**high), small]


def write_problem(
    layer: Layer, passes: Iterable[str], folder: Path, seed: int = 0, dtype: str = "float32"
) -> None:
    """Draw a layer's arrays and save them, their exact results, and the scale of each pass's error.

    The scale is the largest element of the same pass over the operands' absolute values: errors are
    measured against it, because it does not shrink where a sum cancels.
    """
    operands = draw_operands(layer, seed, dtype)
    magnitudes = {name: np.abs(array) for name, array in operands.items()}
    for name, array in operands.items():
        np.save(folder / f"{name}.npy", array)
    scales = {}
    for name in passes:
        scales[name] = float(pass_calls(reference, layer, magnitudes)[name]().max(initial=0.0))
        assert dtype == "float32" or scales[name] < _LARGEST_SCALE, "high parts' sums are not exact"
        for part, array in enumerate(exact_parts(layer, operands, name)):
            np.save(folder / f"exact_{name}_{part}.npy", array)
    (folder / "scales.json").write_text(json.dumps({"dtype": dtype, "scales": scales}))


def read_operands(folder: Path) -> Arrays:
    """Return input, weight and grad_output, contiguous."""
    return {name: np.load(folder / f"{name}.npy") for name in OPERANDS}


def measure_error(result: np.ndarray, folder: Path, pass_name: str) -> float:
    """Return a result's error in its dtype's eps; inf for a wrong shape or dtype, or a NaN."""
    about = json.loads((folder / "scales.json").read_text())
    parts = [np.load(file) for file in sorted(folder.glob(f"exact_{pass_name}_*.npy"))]
    return error_of(result, parts, about["scales"][pass_name], about["dtype"])


def error_of(
    result: np.ndarray, parts: list[np.ndarray], scale: float, dtype: str = "float32"
) -> float:
    """Return max|result - sum(parts)| / scale / eps, or inf where they cannot be compared."""
    if result.shape != parts[0].shape or result.dtype != np.dtype(dtype):
        return float("inf")
    *others, last = parts
    for part in others:  # close to one another, so that this difference is exact
        result = result - part
    error = float(reference.error_in_eps(result, last, np.float64(scale), dtype))
    return error if error == error else float("inf")
