"""Run the passes: a `ConvCall` holds everything a pass's plan depends on, and is its cache key.

A repeated call (same shapes, strides, dtypes, parameters and selection of algorithms) costs one
look-up, one allocation and the kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.conv._kernel import FloatCorrelation
from convcore.engine.conv.algorithms import choose, narrowest
from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, WEIGHT_GRAD, PassPlan, Problem
from convcore.engine.conv.selection import Selection, current, selected
from convcore.engine.geometry import (
    Geometry,
    Padding,
    Spatial,
    Steps,
    index,
    make_geometry,
    per_axis,
    transposed_geometry,
    weight_rank,
)
from convcore.engine.runtime import memory
from convcore.engine.runtime._plain import is_plain
from convcore.engine.runtime.casts import astype, bits
from convcore.engine.runtime.checks import (
    Array,
    check_memory,
    check_output,
    checked_array,
    checked_bias,
    common_itemsize,
    plain_parameter,
    whole_elements,
)
from convcore.engine.runtime.layout import (
    SplitElementsError,
    empty,
    is_channels_last,
    is_dense,
    layout,
)

# Maximum number of cached plans: enough for a net of a few hundred layers in a few shapes.  Plans
# of 3x3 kernels take less than 8 KB each, however large the maps: a full cache is below 32 MB
# (tests/engine/conv/test_call.py).  Plans grow with the kernel's taps.
_MAX_CACHED = 4096
TRANSPOSE = "transpose"


# Whether the left array, and the result, are stored in bfloat16 (as uint16).
Narrow = tuple[bool, bool]
WIDE: Narrow = (False, False)
NARROW_DTYPE = np.dtype(np.uint16)
_SINGLE = np.dtype(np.float32)


class CallPlan:
    """A kernel with its memory plan: allocates, runs the kernel and returns the result."""

    __slots__ = ("channels_last", "dtype", "kernel", "narrow", "plan", "shape", "squeeze")

    def __init__(
        self,
        kernel: Any,
        plan: PassPlan,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        channels_last: bool,
        squeeze: bool,
        narrow: Narrow = WIDE,
    ) -> None:
        self.kernel, self.plan, self.shape = kernel, plan, tuple(shape)
        self.dtype = NARROW_DTYPE if narrow[1] else dtype
        self.channels_last, self.squeeze, self.narrow = channels_last, squeeze, narrow

    @property
    def binds(self) -> bool:
        """Return whether the kernel's ``run`` accepts ``later=True``."""
        return isinstance(self.kernel, FloatCorrelation)

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Run the pass on two arrays; pass `extra` and `prepacked` on to the kernel."""
        plan = self.plan
        # All memory is allocated before the BLAS limit and the threads: nothing there can fail.
        output = empty(self.shape, self.dtype, self.channels_last)
        threads = self.kernel.threads()
        block = memory.take(plan.shared_bytes + threads * plan.scratch_bytes)
        try:
            self.kernel.run(left, right, output, block, threads, *extra, **prepacked)
        finally:
            memory.give(block)
        return output[0] if self.squeeze else output


class _TransposedPlan(CallPlan):
    """Plan of a transposed convolution; ``extra`` holds its bias, or is empty."""

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Run the input gradient's kernel and add the bias, in the kernel if supported."""
        if not extra:
            return super().__call__(left, right, extra)
        bias = checked_bias(extra[0], right.dtype, self.shape[1])
        if self.plan.supports_epilogue:
            return super().__call__(left, right, (bias,))
        output = super().__call__(left, right, ())
        output += bias.reshape(-1, *(1,) * (right.ndim - 2))
        return output


class Operand(NamedTuple):
    """Shape, strides and dtype of one of a pass's two arrays."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def batched(
        self, rank: int, name: str = "input", function: str = "conv"
    ) -> tuple[bool, Operand]:
        """Return (whether the batch axis was missing, the operand with a batch axis)."""
        if len(self.shape) == rank + 1:
            return True, Operand((1, *self.shape), (0, *self.strides), self.dtype)
        if len(self.shape) != rank + 2:
            raise ValueError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) {name} "
                f"to {function}{rank}d, but got {name} of size: {list(self.shape)}"
            )
        return False, self


# Names of a pass's two arrays in error messages.
_NAMES = {
    FORWARD: ("input", "weight"),
    INPUT_GRAD: ("grad_output", "weight"),
    TRANSPOSE: ("input", "weight"),
    WEIGHT_GRAD: ("input", "grad_output"),
}


def run(
    pass_name: str,
    left: Array,
    right: Array,
    parameters: tuple[Any, ...],
    extra: tuple[Any, ...] = (),
) -> Array:
    """Run a pass on two arrays.

    parameters : stride, padding, dilation, groups, and the ``sizes`` of `ConvCall` for some passes
    extra : further arguments of the kernel, such as a bias
    """
    if type(left) is not np.ndarray or type(right) is not np.ndarray:
        names = _NAMES[pass_name]
        left, right = checked_array(names[0], left), checked_array(names[1], right)
    if left.dtype.char == "E":
        return _run_bfloat16(pass_name, left, right, parameters, extra)
    if not (left.flags.aligned and right.flags.aligned):
        left, right = whole_elements(left), whole_elements(right)
    arrays = (left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype)
    selection = current()
    try:
        if is_plain(parameters):
            plan = cached_plan(pass_name, *arrays, selection, *parameters)
        else:
            plan = plan_of(pass_name, (*arrays, selection), parameters)
    except SplitElementsError:
        return run(pass_name, whole_elements(left), whole_elements(right), parameters, extra)
    return plan(left, right, extra)


def _run_bfloat16(
    pass_name: str, left: Array, right: Array, parameters: tuple[Any, ...], extra: tuple[Any, ...]
) -> Array:
    """Run a pass on bfloat16 pixels; results other than weight gradients are rounded to bfloat16.

    Pixels stay bfloat16 in memory where the kernel supports it; weights are converted to float32.
    """
    dtype = left.dtype
    names = _NAMES[pass_name]
    gradients = pass_name == WEIGHT_GRAD
    if right.dtype != dtype and (gradients or right.dtype != _SINGLE):
        raise TypeError(f"{names[1]} must be bfloat16 as {names[0]} is, got {right.dtype.name}")
    left, right = given = [one if _is_readable(one) else one.copy("K") for one in (left, right)]
    extra = tuple([astype(one, _SINGLE) if isinstance(one, np.ndarray) else one for one in extra])
    right = bits(right) if gradients or right.dtype == _SINGLE else astype(right, _SINGLE)
    left = bits(left)
    # Factors that are bfloat16 already are not rounded again.
    with selected(precision="bf16"):
        arrays = left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype
        plan = plan_of(pass_name, (*arrays, current()), parameters, narrow=(True, True))
        if not plan.narrow[0]:
            if not all(map(is_dense, given)):  # a float32 copy would not lie as these do
                left, right = (one.copy("K") for one in given)
                return _run_bfloat16(pass_name, left, right, parameters, extra)
            left = astype(left.view(dtype), _SINGLE)
            right = astype(right.view(dtype), _SINGLE) if gradients else right
        made = plan(left, right, extra)
    if plan.narrow[1]:
        return made.view(dtype)
    return made if gradients else astype(made, dtype)


def _is_readable(array: Array) -> bool:
    """Return whether kernels can read a bfloat16 array: dense, or channels contiguous with gaps.

    The latter are gradients of channels concatenated by `cat`.
    """
    if is_dense(array):
        return True
    steps = array.strides
    beside = len(steps) > 1 and steps[1] == array.itemsize
    return beside and array.flags.aligned and min(steps) > 0


def plan_of(
    pass_name: str, arrays: tuple[Any, ...], parameters: Sequence[Any], **options: Any
) -> CallPlan:
    """Return the plan for parameters of any form; raise ValueError or TypeError if invalid.

    arrays : shape, strides and dtype of each array, and the selection
    options : ``narrow`` and ``prepacked`` of `ConvCall`
    """
    plain = parameters if is_plain(parameters) else tuple(map(plain_parameter, parameters))
    if is_plain(plain):
        return cached_plan(pass_name, *arrays, *plain, **options)
    return ConvCall(pass_name, *arrays, *parameters, **options).plan()


@functools.lru_cache(maxsize=_MAX_CACHED)
def cached_plan(*fields: Any, **options: Any) -> CallPlan:
    """Return the cached plan of a `ConvCall` whose fields are plain ints (1.0 would equal 1)."""
    return ConvCall(*fields, **options).plan()


class ConvCall(NamedTuple):
    """Everything that the plan of one call of a pass depends on; hashable."""

    pass_name: str  # FORWARD, INPUT_GRAD, WEIGHT_GRAD or TRANSPOSE
    left_shape: tuple[int, ...]
    left_strides: tuple[int, ...]
    left_dtype: np.dtype[Any]
    right_shape: tuple[int, ...]
    right_strides: tuple[int, ...]
    right_dtype: np.dtype[Any]
    selection: Selection
    stride: Spatial
    padding: Padding
    dilation: Spatial
    groups: int
    sizes: Spatial = ()  # the input's, the kernel's, or the output padding; none of FORWARD
    narrow: Narrow = WIDE
    prepacked: bool = False  # whether the weights are constant and may be packed in advance

    def plan(self) -> CallPlan:
        """Check the call and compute its plan.

        Raises
        ------
        TypeError, ValueError
            Operands or parameters do not match.
        """
        return _PLANNERS[self.pass_name](self, Operand(*self[1:4]), Operand(*self[4:7]))

    @property
    def steps(self) -> Steps:
        """Return stride, padding, dilation and groups."""
        return Steps(*self[8:12])


def _forward(call: ConvCall, x: Operand, w: Operand) -> CallPlan:
    size = common_itemsize(("input", w.dtype if call.narrow[0] else x.dtype), ("weight", w.dtype))
    squeeze, x = x.batched(weight_rank(w.shape))
    g = make_geometry(x.shape, w.shape, *call.steps)
    check_memory(g.output_shape, size)
    return _chosen(call, FORWARD, g, g.output_shape, x, w, squeeze)


def _input_gradient(call: ConvCall, y: Operand, w: Operand) -> CallPlan:
    rank = weight_rank(w.shape)
    squeeze, y = y.batched(rank, "grad_output")
    sizes = per_axis("input_size", call.sizes, rank, least=0)
    groups = index("groups", call.groups)
    x_shape = (y.shape[0], w.shape[1] * max(groups, 1), *sizes)
    g = make_geometry(x_shape, w.shape, *call.steps)
    check_output("grad_output", y.shape, g)
    return _input_grad(call, g, "grad_output", y, w, squeeze)


def _transpose(call: ConvCall, x: Operand, w: Operand) -> CallPlan:
    """Plan a transposed convolution: the input gradient and a bias."""
    squeeze, x = x.batched(weight_rank(w.shape), function="conv_transpose")
    stride, padding, dilation, groups = call.steps
    g = transposed_geometry(x.shape, w.shape, stride, padding, call.sizes, dilation, groups)
    made = _input_grad(call, g, "input", x, w, squeeze)
    parts = made.kernel, made.plan, made.shape, made.dtype, made.channels_last
    return _TransposedPlan(*parts, squeeze, made.narrow)


def _input_grad(
    call: ConvCall, g: Geometry, name: str, y: Operand, w: Operand, squeeze: bool
) -> CallPlan:
    size = common_itemsize((name, w.dtype if call.narrow[0] else y.dtype), ("weight", w.dtype))
    check_memory(g.input_shape, size)
    return _chosen(call, INPUT_GRAD, g, g.input_shape, y, w, squeeze)


def _weight_gradient(call: ConvCall, x: Operand, y: Operand) -> CallPlan:
    """Plan a weight gradient; the result is float32 even where both arrays are bfloat16."""
    dtypes = [_SINGLE if call.narrow[0] else one.dtype for one in (x, y)]
    size = common_itemsize(("input", dtypes[0]), ("grad_output", dtypes[1]))
    if len(x.shape) != len(y.shape):
        raise ValueError(
            "input and grad_output must have as many axes as each other, "
            f"got shapes {list(x.shape)} and {list(y.shape)}"
        )
    # The length of a kernel_size sequence gives the rank; an int means that input is batched.
    rank = len(call.sizes) if isinstance(call.sizes, tuple) else len(x.shape) - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            "kernel_size must have one to three ints, one a spatial axis of input, "
            f"got {call.sizes} for input of size: {list(x.shape)}"
        )
    _, x = x.batched(rank)
    _, y = y.batched(rank, "grad_output")
    kernel = per_axis("kernel_size", call.sizes, rank)
    groups = index("groups", call.groups)
    weight = (y.shape[1], x.shape[1] // max(groups, 1), *kernel)
    g = make_geometry(x.shape, weight, *call.steps)
    check_output("grad_output", y.shape, g)
    check_memory(g.weight_shape, size)
    call = call._replace(narrow=(call.narrow[0], False))
    return _chosen(call, WEIGHT_GRAD, g, g.weight_shape, x, y)


_PLANNERS = {
    FORWARD: _forward,
    INPUT_GRAD: _input_gradient,
    TRANSPOSE: _transpose,
    WEIGHT_GRAD: _weight_gradient,
}


def _chosen(
    call: ConvCall,
    pass_name: str,
    g: Geometry,
    shape: Sequence[int],
    left: Operand,
    right: Operand,
    squeeze: bool = False,
) -> CallPlan:
    """Return the plan of the best algorithm for a pass with a result of the given shape.

    Stores in bfloat16 what the algorithm supports (``narrow`` of the plan says so).
    """
    last = any(is_channels_last(one.shape, one.strides) for one in (left, right))
    a, b = (layout(one.shape, one.strides, one.dtype.itemsize) for one in (left, right))
    dtype = _SINGLE if right.dtype == NARROW_DTYPE else right.dtype
    problem = Problem(pass_name, g, dtype, a, b, last, call.prepacked)
    narrow = call.narrow
    if narrow != WIDE:
        narrow = narrowest(problem, call.selection, narrow)
        problem = problem._replace(narrow_left=narrow[0], narrow_output=narrow[1])
    kernel, plan = choose(problem, call.selection)
    return CallPlan(kernel, plan, shape, problem.dtype, last, squeeze, narrow)
