"""A convolution whose weights stay as they are, for nets that are run and no longer trained."""

from __future__ import annotations

import threading
from typing import Any

from convcore.engine.conv.algorithms.selection import current
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.conv.executables import Executable, forward_executable
from convcore.engine.conv.geometry import Padding, Spatial
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import (
    Array,
    checked_array,
    checked_bias,
    hashable,
    whole_elements,
)

# Shapes of inputs for which prepared weights are kept; the oldest goes first.
MOST_SHAPES = 4

# The call for one kind of inputs, and the weights that are kept for it.
_Prepared = tuple[Executable, memory.Block | None]


class PrepackedConvolution:
    """The forward map of one weight array, in the order in which its kernels read it.

    For each shape and memory format of inputs the weights are packed, or transformed, once; calls
    after that read them as they are.  Packing counts where weights are many and pixels few.

    Parameters
    ----------
    weight : (C_out, C_in/G, *kernel); float32, float64, complex64 or complex128
        Not copied: changes made to it later are seen by some calls and not by others.
    bias : (C_out,), the same dtype, or None
    stride, padding, dilation, groups, activation
        As for `conv_forward`.

    Raises
    ------
    TypeError, ValueError
        As for `conv_forward`; what depends on the input's shape, at the first call.

    Notes
    -----
    Keeps up to four times the weight's bytes for each of at most four shapes of inputs.  Safe to
    call from several threads.

    Examples
    --------
    >>> import numpy as np
    >>> blur = PrepackedConvolution(np.full((1, 1, 2, 2), 0.25))
    >>> blur(np.arange(9.0).reshape(1, 1, 3, 3))[0, 0]
    array([[2., 3.],
           [5., 6.]])
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None = None,
        *,
        stride: Spatial = 1,
        padding: Padding = 0,
        dilation: Spatial = 1,
        groups: int = 1,
        activation: Activation = None,
    ) -> None:
        self.weight = whole_elements(checked_array("weight", weight))
        self.bias = None
        if bias is not None:
            channels = weight.shape[0] if weight.ndim else 0
            self.bias = checked_bias(bias, self.weight.dtype, channels)
        self._extra: tuple[Any, ...] = (self.bias,)
        if activation is not None:
            self._extra += activation_parameters(activation, self.weight.dtype)
        self._parameters = tuple(map(hashable, (stride, padding, dilation, groups)))
        self._calls: dict[Any, _Prepared] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_calls": {}, "_lock": None}  # a copy prepares anew

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __call__(self, input: Array) -> Array:
        """Return what `conv_forward` returns, to rounding."""
        input = whole_elements(checked_array("input", input))
        call, block = self.prepared(input.shape, input.strides, input.dtype)
        prepacked = {} if block is None else {"prepacked": block}
        return call(input, self.weight, self._extra, **prepacked)

    def prepared(self, *like: Any) -> _Prepared:
        """Return the call for inputs of one kind, and the weights as its kernel reads them.

        like : shape, strides and dtype of the input; whole elements, aligned

        The weights are None where the kernel reads them as they are.
        """
        key = (*like, current())
        return self._calls.get(key) or self._remember(key)

    def _remember(self, key: tuple[Any, ...]) -> _Prepared:
        """Prepare for an input of a new shape, and forget the oldest where there are too many."""
        with self._lock:
            if key not in self._calls:
                made = self._prepare(*key)
                if len(self._calls) == MOST_SHAPES:
                    del self._calls[next(iter(self._calls))]
                self._calls[key] = made
            return self._calls[key]

    def _prepare(self, *like: Any) -> _Prepared:
        w, selection = self.weight, like[3]
        arrays = *like[:3], w.shape, w.strides, w.dtype
        call = forward_executable(*arrays, *self._parameters, selection, prepacked=True)
        if not call.plan.prepacked:
            return call, None
        block = memory.Block(call.plan.prepacked_bytes)
        call.kernel.pack(w, block)
        return call, block
