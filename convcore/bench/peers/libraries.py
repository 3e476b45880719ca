"""convcore and PyTorch as peers: layers without a graph, each gradient alone; and whole nets.

Nets also in bfloat16: convcore's with the factors of float32 convolutions and matrices rounded to
it, or trained under ``autocast("cpu", bfloat16)``, and in inference what lies between layers;
PyTorch's under autocast, which is faster there than ``fp32_precision = "bf16"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

import numpy as np

from convcore.bench.layers import Layer, pass_calls
from convcore.bench.peers import OURS, Peer, in_format

# Of PyTorch's convolution_backward: whether to compute input's, weight's and bias's gradient.
_MASKS = {"input_grad": [True, False, False], "weight_grad": [False, True, False]}


class _Convcore(Peer):
    def __init__(self) -> None:
        import convcore
        from convcore import engine

        self.library, self._engine = convcore, engine

    def set_threads(self, threads: int) -> None:
        self._engine.set_num_threads(threads)

    def describe(self) -> dict[str, str]:
        from convcore.engine.runtime import _isa, threads

        blas = threads.blas()
        return {
            "convcore": self.library.__version__,
            "instructions": _isa.name(),
            "BLAS": f"{blas.name} {blas.version}",
            "kernel": str(blas.architecture),
            "OpenMP": str(threads.openmp() or "none"),
        }

    def choose_algorithm(self, algorithm: str | None, strict: bool) -> None:
        """Hold this process to an algorithm where it is possible, or to direct summation."""
        conv = self.library.backends.conv
        conv.algorithm, conv.strict = algorithm, strict

    def algorithm(self, layer: Layer, pass_name: str, dtype: str, channels_last: bool) -> str:
        plan = self._engine.plan_conv(layer.geometry, np.dtype(dtype), channels_last)
        return getattr(plan, layer.pass_of_geometry(pass_name)).algorithm

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        return pass_calls(self._engine, layer, operands)[pass_name]


class _ConvcoreBfloat16(_Convcore):
    rounds_to_bfloat16 = True
    optimization = MappingProxyType({"precision": "bf16"})

    def __init__(self) -> None:
        super().__init__()
        self.library.backends.conv.fp32_precision = "bf16"
        self.library.set_float32_matmul_precision("medium")


class _PyTorch(Peer):
    def __init__(self) -> None:
        import torch

        self.library = torch

    def set_threads(self, threads: int) -> None:
        self.library.set_num_threads(threads)

    def describe(self) -> dict[str, str]:
        backends = self.library.backends
        return {
            "PyTorch": self.library.__version__,
            "kernel": backends.cpu.get_cpu_capability(),
            "oneDNN": "yes" if backends.mkldnn.is_available() else "no",
        }

    def convert(self, array: np.ndarray, channels_last: bool) -> Any:
        torch = self.library
        form = torch.contiguous_format
        if channels_last:  # of one axis there is no such format: the same bytes as strides
            if array.ndim == 3:
                return torch.from_numpy(in_format(array, channels_last))
            form = torch.channels_last if array.ndim == 4 else torch.channels_last_3d
        return torch.from_numpy(array).contiguous(memory_format=form)

    def call(self, layer: Layer, pass_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        # No operand requires a gradient, so nothing records a graph, in whatever grad mode.
        x, w, gy = (operands[name] for name in ("input", "weight", "grad_output"))
        steps = (layer.stride, layer.padding, layer.dilation)
        if pass_name == "forward":
            stride, padding, dilation = steps
            functional, groups = self.library.nn.functional, layer.groups
            if layer.transposed:
                conv = getattr(functional, f"conv_transpose{layer.rank}d")
                return lambda: conv(x, w, None, stride, padding, 0, groups, dilation)
            conv = getattr(functional, f"conv{layer.rank}d")
            return lambda: conv(x, w, None, *steps, groups)
        backward = self.library.ops.aten.convolution_backward.default
        mask, wanted = _MASKS[pass_name], _MASKS[pass_name].index(True)
        # (grad_output, input, weight, bias_sizes, *steps, transposed, output_padding, groups, mask)
        rest = (layer.transposed, [0] * layer.rank, layer.groups, mask)
        return lambda: backward(gy, x, w, None, *steps, *rest)[wanted]

    def to_numpy(self, result: Any) -> np.ndarray:
        return result.numpy()


class _PyTorchBfloat16(_PyTorch):
    rounds_to_bfloat16 = True

    def precision(self) -> AbstractContextManager[Any]:
        return self.autocast()


MAKERS = {
    OURS: _Convcore,
    "convcore_bfloat16": _ConvcoreBfloat16,
    "torch": _PyTorch,
    "torch_bfloat16": _PyTorchBfloat16,
}
