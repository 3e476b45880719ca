"""A layer's arrays and their exact results, on disk: every peer computes on the same bits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from convcore.bench.layer import Layer
from convcore.engine import reference

Arrays = dict[str, np.ndarray]
OPERANDS = ("input", "weight", "grad_output")


def draw_operands(layer: Layer, seed: int) -> Arrays:
    """Return normal deviates, float32, in the shapes of input, weight and grad_output."""
    geometry, generator = layer.geometry, np.random.default_rng(seed)
    shapes = (geometry.input_shape, geometry.weight_shape, geometry.output_shape)
    return {
        name: generator.standard_normal(shape, dtype=np.float32)
        for name, shape in zip(OPERANDS, shapes, strict=True)
    }


def exact_maps(layer: Layer, operands: Arrays) -> dict[str, Callable[[], np.ndarray]]:
    """Return the three maps of the operands as the oracle computes them, in float64."""
    x, w, gy = (operands[name] for name in OPERANDS)
    steps: dict[str, Any] = layer.steps
    return {
        "forward": lambda: reference.conv_forward(x, w, **steps),
        "input_grad": lambda: reference.conv_input_grad(gy, w, (layer.h, layer.w), **steps),
        "weight_grad": lambda: reference.conv_weight_grad(x, gy, layer.kernel, **steps),
    }


def write_problem(layer: Layer, maps: Iterable[str], folder: Path, seed: int = 0) -> None:
    """Draw a layer's arrays and save them, their exact maps, and the scale of each map's error.

    The scale is the largest element of the same map of the operands' absolute values: what an error
    is measured against, because it does not shrink where a sum cancels.
    """
    operands = draw_operands(layer, seed)
    magnitudes = {name: np.abs(array) for name, array in operands.items()}
    exact, bounds = exact_maps(layer, operands), exact_maps(layer, magnitudes)
    for name, array in operands.items():
        np.save(folder / f"{name}.npy", array)
    scales = {}
    for name in maps:
        np.save(folder / f"exact_{name}.npy", exact[name]())
        scales[name] = float(bounds[name]().max(initial=0.0))
    (folder / "scales.json").write_text(json.dumps(scales))


def read_operands(folder: Path) -> Arrays:
    """Return input, weight and grad_output, float32, contiguous."""
    return {name: np.load(folder / f"{name}.npy") for name in OPERANDS}


def measure_error(result: np.ndarray, folder: Path, map_name: str) -> float:
    """Return a result's error in float32's eps; inf for a wrong shape or type, or a NaN."""
    exact = np.load(folder / f"exact_{map_name}.npy", mmap_mode="r")
    scale = json.loads((folder / "scales.json").read_text())[map_name]
    return error_of(result, exact, scale)


def error_of(result: np.ndarray, exact: np.ndarray, scale: float) -> float:
    """Return max|result - exact| / scale / eps, or inf where the two cannot be compared."""
    if result.shape != exact.shape or result.dtype != np.float32:
        return float("inf")
    error = float(reference.error_in_eps(result, exact, np.float64(scale), np.float32))
    return error if error == error else float("inf")
