"""Convolutions with prepacked weights, for inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convcore.engine.conv.call import WIDE, CallPlan, Narrow, plan_of
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.conv.problem import FORWARD
from convcore.engine.conv.selection import current
from convcore.engine.geometry import Padding, Spatial
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import Array, checked_array, checked_bias, whole_elements
from convcore.engine.runtime.locks import process_lock

# Shapes of inputs for which weights stay packed; the oldest goes first.
MOST_SHAPES = 4

# The plan for one kind of inputs, and the weights packed for it.
_Prepared = tuple[CallPlan, memory.Block | None]


class PrepackedConvolution:
    """The forward pass with one weight array, packed once in the order in which kernels read it.

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
        self._parameters = stride, padding, dilation, groups
        self._plans: dict[Any, _Prepared] = {}
        self._lock = process_lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plans": None, "_lock": None}  # a copy prepares anew

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._plans, self._lock = {}, process_lock()

    def __call__(self, input: Array, activated: bool = True) -> Array:
        """Return what `conv_forward` returns, to rounding.

        activated : whether the activation is applied
        """
        input = whole_elements(checked_array("input", input))
        plan, block = self.prepared(input.shape, input.strides, input.dtype)
        packed = {} if block is None else {"prepacked": block}
        extra = self._extra if activated else self._extra[:1]
        return plan(input, self.weight, extra, **packed)

    def prepared(
        self, shape: Sequence[int], strides: Sequence[int], dtype: Any, narrow: Narrow = WIDE
    ) -> _Prepared:
        """Return the plan for inputs of one kind, and the weights as its kernel reads them.

        The input has whole elements, aligned.  It, and the result, are bfloat16 in memory where
        ``narrow`` says so and the plan can: its own ``narrow`` tells.  The weights are None
        where the kernel reads them as they are.
        """
        key = (shape, strides, dtype, narrow, current())
        return self._plans.get(key) or self._cache(key)

    def plan(
        self, shape: Sequence[int], strides: Sequence[int], dtype: Any, narrow: Narrow = WIDE
    ) -> CallPlan:
        """Return the plan alone: nothing is packed."""
        return self._plan(shape, strides, dtype, narrow, current())

    def forget(self) -> None:
        """Drop what is prepared; who holds a block keeps it, and later calls pack anew."""
        with self._lock:
            self._plans = {}

    def _cache(self, key: tuple[Any, ...]) -> _Prepared:
        """Prepare for an input of a new shape; drop the oldest where there are too many."""
        with self._lock:
            if key not in self._plans:
                made = self._prepare(*key)
                if len(self._plans) == MOST_SHAPES:
                    del self._plans[next(iter(self._plans))]
                self._plans[key] = made
            return self._plans[key]

    def _plan(self, *key: Any) -> CallPlan:
        w, (*array, narrow, selection) = self.weight, key
        arrays = *array, w.shape, w.strides, w.dtype, selection
        return plan_of(FORWARD, arrays, self._parameters, narrow=narrow, prepacked=True)

    def _prepare(self, *key: Any) -> _Prepared:
        w, plan = self.weight, self._plan(*key)
        if not plan.plan.prepacked:
            return plan, None
        block = memory.Block(plan.plan.prepacked_bytes)
        plan.kernel.pack(w, block)
        return plan, block
