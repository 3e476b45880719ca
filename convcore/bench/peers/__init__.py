"""What computes in a benchmark, a file each, under one small interface.

A peer is imported in a worker process of its own only.  `PEERS` says which module has to be
installed for it; nothing here imports any of them.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from convcore.bench.layer import Layer

# name: (what it needs installed, what a table calls it)
PEERS = {
    "convcore": ("convcore", "convcore"),
    "numpy": ("numpy", "NumPy"),
    "torch": ("torch", "PyTorch"),
}
_MODULES = {"convcore": "own", "numpy": "numpy_im2col", "torch": "torch_cpu"}
# float32's eps by which a result may be off.  Ours is a promise; a peer only has to be computing
# the same thing, by whatever algorithm, for its time to be comparable.
ALLOWED_EPS = {"convcore": 4.0, "numpy": 100.0, "torch": 100.0}


class Peer(Protocol):
    """What a worker asks of a peer."""

    formats: tuple[str, ...]
    """Memory formats that it computes in."""

    module: str
    """What to import for PyTorch's names: `convcore.bench.operations` is written in them."""

    most_rounds: int
    """Rounds after which it sits out, so that a slow peer does not take the user's time."""

    def set_threads(self, threads: int) -> None:
        """Compute with that many threads from now on, by the library's own setter."""

    def describe(self) -> dict[str, str]:
        """Return versions and what was loaded: the BLAS kernel, the instruction set."""

    def convert(self, array: np.ndarray, channels_last: bool) -> Any:
        """Return an operand in the peer's own type and in the memory format asked for."""

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        """Return a function of no arguments that computes one map of the converted operands."""

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return a call's result as an array, (N, C, H, W) in any strides."""


def is_installed(name: str) -> bool:
    """Return whether what a peer needs can be found; nothing is imported."""
    return importlib.util.find_spec(PEERS[name][0]) is not None


def load_peer(name: str) -> Peer:
    """Import a peer and return it."""
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return module.make_peer()


def title(name: str) -> str:
    """Return what a table calls a peer."""
    return PEERS[name][1]


def in_format(array: np.ndarray, channels_last: bool) -> np.ndarray:
    """Return (N, C, H, W) with memory NCHW, or NHWC if ``channels_last``."""
    if not channels_last:
        return np.ascontiguousarray(array)
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
