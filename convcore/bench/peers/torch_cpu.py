"""PyTorch on the CPU: what its own layers call, forward without a graph and each gradient alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from convcore.bench.layer import Layer
from convcore.bench.peers import Peer

_BACKWARD = torch.ops.aten.convolution_backward.default
_MASKS = {"input_grad": [True, False, False], "weight_grad": [False, True, False]}


class _Torch(Peer):
    module = "torch"

    def set_threads(self, threads: int) -> None:
        torch.set_num_threads(threads)

    def describe(self) -> dict[str, str]:
        return {
            "PyTorch": torch.__version__,
            "kernel": torch.backends.cpu.get_cpu_capability(),
            "oneDNN": "yes" if torch.backends.mkldnn.is_available() else "no",
        }

    def convert(self, array: np.ndarray, channels_last: bool) -> torch.Tensor:
        form = torch.channels_last if channels_last else torch.contiguous_format
        return torch.from_numpy(array).contiguous(memory_format=form)

    def call(self, layer: Layer, map_name: str, operands: Mapping[str, Any]) -> Callable[[], Any]:
        # No operand requires a gradient, so nothing records a graph, in whatever grad mode.
        x, w, gy = (operands[name] for name in ("input", "weight", "grad_output"))
        steps = (layer.stride, layer.padding, layer.dilation)
        if map_name == "forward":
            conv2d, groups = torch.nn.functional.conv2d, layer.groups
            return lambda: conv2d(x, w, None, *steps, groups)
        mask, wanted = _MASKS[map_name], _MASKS[map_name].index(True)
        # (grad_output, input, weight, bias_sizes, *steps, transposed, output_padding, groups, mask)
        rest = (False, [0, 0], layer.groups, mask)
        return lambda: _BACKWARD(gy, x, w, None, *steps, *rest)[wanted]

    def to_numpy(self, result: torch.Tensor) -> np.ndarray:
        return result.numpy()


def make_peer() -> Peer:
    """Return the peer."""
    return _Torch()
