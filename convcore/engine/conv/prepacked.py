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

# Input shapes for which packed weights are cached; the oldest is dropped first.
MOST_SHAPES = 4

# The plan for inputs of one shape, strides and dtype, and the weights packed for it.
_Prepared = tuple[CallPlan, memory.Block | None]


class PrepackedConvolution:
    """Forward pass with a constant weight array, packed once in the kernel's format.

    The weights are packed, or transformed, once per shape and memory format of the input; later
    calls read the packed copy.  This matters where there are many weights and few pixels.

    Parameters
    ----------
    weight : (C_out, C_in/G, *kernel); float32, float64, complex64 or complex128
        Not copied: later changes affect some calls and not others.
    bias : (C_out,), the same dtype, or None
    stride, padding, dilation, groups, activation
        As for `conv_forward`.

    Raises
    ------
    TypeError, ValueError
        As for `conv_forward`; errors that depend on the input's shape are raised at the first call.

    Notes
    -----
    Caches up to four times the weight's bytes for each of at most four input shapes.  Thread-safe.

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
        """Compute the convolution; equals `conv_forward` up to rounding.

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
        """Return the plan for inputs of this shape, strides and dtype, and the packed weights.

        The input must have whole, aligned elements.  It and the result are stored in bfloat16 where
        ``narrow`` asks for it and the plan supports it: see the plan's ``narrow``.  The weights are
        None where the kernel reads them unpacked.
        """
        key = (shape, strides, dtype, narrow, current())
        return self._plans.get(key) or self._cache(key)

    def plan(
        self, shape: Sequence[int], strides: Sequence[int], dtype: Any, narrow: Narrow = WIDE
    ) -> CallPlan:
        """Return the plan without packing any weights."""
        return self._plan(shape, strides, dtype, narrow, current())

    def forget(self) -> None:
        """Drop the cached plans and packed weights; blocks held by callers stay valid."""
        with self._lock:
            self._plans = {}

    def _cache(self, key: tuple[Any, ...]) -> _Prepared:
        """Prepare for an input of a new shape; drop the oldest if there are too many."""
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
