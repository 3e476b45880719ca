"""What computes in a benchmark, under one small interface.

``libraries``    convcore and PyTorch: both formats, every pass, nets by PyTorch's names
``runtimes``     ONNX Runtime and OpenVINO: forward only, nets from a file
``numpy_scipy``  NumPy as a notebook uses it, and scipy.signal

A peer's libraries are imported when one is made, in a worker process of its own.  `PEERS` says
which modules have to be installed for it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from convcore.bench.layers import DTYPES, FORMATS, PASSES, Layer

OURS = "convcore"
# name: (what it needs installed, what a table calls it, its file here)
PEERS = {
    OURS: (("convcore",), "convcore", "libraries"),
    "convcore_bfloat16": (("convcore",), "convcore bfloat16", "libraries"),
    "torch": (("torch",), "PyTorch", "libraries"),
    "torch_bfloat16": (("torch",), "PyTorch bfloat16", "libraries"),
    "onnxruntime": (("onnxruntime", "onnx"), "ONNX Runtime", "runtimes"),
    "openvino": (("openvino", "onnx"), "OpenVINO", "runtimes"),
    "numpy": (("numpy",), "NumPy", "numpy_scipy"),
    "scipy": (("scipy",), "scipy.signal", "numpy_scipy"),
}
# Not asked unless by name: whole seconds for most layers, and nobody would choose it for them.
SLOW = ("scipy",)
# Of whole nets only: a layer is checked in float32's eps, and bfloat16's is 65,536 times that.
NETS_ONLY = BFLOAT16 = ("convcore_bfloat16", "torch_bfloat16")
# Asked by a run that has a minute for everything.
QUICK = ("torch", "numpy")

# Eps by which a result may be off.  Ours are promises, by algorithm; a peer only has to be
# computing the same thing, by whatever algorithm, for its time to be comparable.
_DIRECT_EPS, _WINOGRAD_EPS, _PEER_EPS = 4.0, 12.0, 100.0


class Peer:
    """What a worker asks of a peer; one is made in each worker."""

    formats: tuple[str, ...] = FORMATS
    """Memory formats that it computes in."""

    passes: tuple[str, ...] = PASSES
    dtypes: tuple[str, ...] = DTYPES

    most_rounds: int = 1_000_000
    """Rounds after which it sits out, so that a slow peer does not take the user's time."""

    rounds_to_bfloat16: bool = False
    """Whether its nets compute in bfloat16, with 8 bits of precision, wherever it sees fit."""

    optimization: Mapping[str, Any] = MappingProxyType({})
    """Options of its ``optimize_for_inference``, if it has one."""

    library: Any = None
    """The module, of those with PyTorch's names: small operations and nets are written in them."""

    def set_threads(self, threads: int) -> None:
        """Compute with that many threads from now on, by the library's own setter."""
        raise NotImplementedError

    def describe(self) -> dict[str, str]:
        """Return versions and what was loaded: the BLAS kernel, the instruction set."""
        raise NotImplementedError

    def can(self, layer: Layer) -> bool:
        """Return whether it has such a convolution at all."""
        return True

    def algorithm(self, layer: Layer, pass_name: str, dtype: str, channels_last: bool) -> str:
        """Return what it would compute by, if it tells; an empty text if it does not."""
        return ""

    def convert(self, array: np.ndarray, channels_last: bool) -> Any:
        """Return an operand in the peer's own type and in the memory format asked for."""
        return in_format(array, channels_last)

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        """Return a function of no arguments that computes one pass of the converted operands."""
        raise NotImplementedError

    def to_numpy(self, result: Any) -> np.ndarray:
        """Return a call's result as an array, (N, C, *sizes) in any strides."""
        return result

    def precision(self) -> AbstractContextManager[Any]:
        """Return a context in which its nets compute forward."""
        return nullcontext()

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context of mixed precision, of a library that has one."""
        return self.library.autocast("cpu", dtype=self.library.bfloat16)

    def net_call(self, file: Path, x: np.ndarray) -> Callable[[], Any]:
        """Return a run of a net in an ONNX file, of those peers that read one."""
        raise NotImplementedError


def is_installed(name: str) -> bool:
    """Return whether what a peer needs can be found; nothing is imported."""
    return all(importlib.util.find_spec(module) is not None for module in PEERS[name][0])


def load_peer(name: str) -> Peer:
    """Import a peer and return it."""
    return importlib.import_module(f"{__name__}.{PEERS[name][2]}").MAKERS[name]()


def title(name: str) -> str:
    """Return what a table calls a peer."""
    return PEERS[name][1]


def allowed_eps(name: str, algorithm: str = "") -> float:
    """Return by how many eps of its dtype a peer's result may be off.

    Parameters
    ----------
    name : str
        The peer.
    algorithm : str
        What convcore computed by, as its plan calls it.
    """
    if name != OURS:
        return _PEER_EPS
    return _WINOGRAD_EPS if "winograd" in algorithm.lower() else _DIRECT_EPS


def loaded_blas(beside: str) -> dict[str, str]:
    """Return the version and the kernel of the BLAS loaded, of several the one beside a package."""
    import threadpoolctl

    loaded = [d for d in threadpoolctl.threadpool_info() if d["user_api"] == "blas"]
    mine = [d for d in loaded if beside in d["filepath"]] or loaded
    kernels = {f"{d.get('architecture', '?')}" for d in mine}
    versions = {f"{d['internal_api']} {d['version']}" for d in mine}
    return {
        "BLAS": " or ".join(sorted(versions)) or "none",
        "kernel": " or ".join(sorted(kernels)) or "none",
    }


def in_format(array: np.ndarray, channels_last: bool) -> np.ndarray:
    """Return (N, C, *sizes) with memory in that order, or C last if ``channels_last``."""
    if not channels_last:
        return np.ascontiguousarray(array)
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
