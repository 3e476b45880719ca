"""Executables: the plan and kernel of one pass for arrays of one kind, made once and cached.

The key is the arrays' shapes, strides and dtypes, the selection of algorithms in force and the
convolution's parameters: a second call with the like costs a look-up, an allocation and the
kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.conv.algorithms import choose, narrowest
from convcore.engine.conv.algorithms.problem import (
    FORWARD,
    INPUT_GRAD,
    WEIGHT_GRAD,
    PassPlan,
    Problem,
)
from convcore.engine.conv.algorithms.selection import Selection, current, selected
from convcore.engine.geometry import (
    Geometry,
    Spatial,
    Steps,
    index,
    make_geometry,
    per_axis,
    transposed_geometry,
    weight_rank,
)
from convcore.engine.runtime import memory
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
from convcore.kernels.conv._kernel import FloatCorrelation
from convcore.kernels.runtime._plain import is_plain

# Executables of each pass that are cached: a net of a few hundred layers, in a few shapes.  One
# of a 3x3 kernel takes less than 8 KB, however large the maps: four full caches of such hold less
# than 32 MB (tests/engine/conv/test_executables.py).  It grows with the kernel's taps.
_MOST_CACHED = 1024


# Whether the array that is read, and the result, are bfloat16 in memory, as uint16.
Narrow = tuple[bool, bool]
WIDE: Narrow = (False, False)
NARROW_DTYPE = np.dtype(np.uint16)
_SINGLE = np.dtype(np.float32)


class Executable:
    """A kernel with the plan of its memory: allocate, run, return."""

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
        """Whether the kernel's ``run`` takes ``later=True``."""
        return isinstance(self.kernel, FloatCorrelation)

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Run the pass on two arrays; `extra` and `prepacked` are what else the kernel takes."""
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


class TransposedExecutable(Executable):
    """The executable of a transposed convolution, whose bias, if any, is all of ``extra``."""

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Run the input gradient's kernel and add the bias, in the kernel if it can."""
        if not extra:
            return super().__call__(left, right, extra)
        bias = checked_bias(extra[0], right.dtype, self.shape[1])
        if self.plan.supports_epilogue:
            return super().__call__(left, right, (bias,))
        output = super().__call__(left, right, ())
        output += bias.reshape(-1, *(1,) * (right.ndim - 2))
        return output


class Operand(NamedTuple):
    """One of a pass's two arrays, as far as an executable depends on it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def batched(
        self, rank: int, name: str = "input", function: str = "conv"
    ) -> tuple[bool, Operand]:
        """Return (whether it was unbatched, the operand with a batch axis)."""
        if len(self.shape) == rank + 1:
            return True, Operand((1, *self.shape), (0, *self.strides), self.dtype)
        if len(self.shape) != rank + 2:
            raise ValueError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) {name} "
                f"to {function}{rank}d, but got {name} of size: {list(self.shape)}"
            )
        return False, self


def apply(
    make: Callable[..., Executable],
    left: Array,
    right: Array,
    parameters: tuple[Any, ...],
    extra: tuple[Any, ...] = (),
    names: tuple[str, str] = ("input", "weight"),
) -> Array:
    """Run a pass on two arrays; executables are cached by shapes, strides and dtypes.

    parameters : the steps, then what else the maker takes
    extra : what the executable takes besides the arrays
    names : the arrays' names in errors
    """
    if type(left) is not np.ndarray or type(right) is not np.ndarray:
        left, right = checked_array(names[0], left), checked_array(names[1], right)
    if left.dtype.char == "E":
        return _apply_bfloat16(make, left, right, parameters, extra, names)
    if not (left.flags.aligned and right.flags.aligned):
        left, right = whole_elements(left), whole_elements(right)
    arrays = (left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype)
    selection = current()
    try:
        if is_plain(parameters):
            executable = make(*arrays, selection, *parameters)
        else:
            executable = executable_of(make, (*arrays, selection), parameters)
    except SplitElementsError:
        left, right = whole_elements(left), whole_elements(right)
        return apply(make, left, right, parameters, extra, names)
    return executable(left, right, extra)


def _apply_bfloat16(
    make: Callable[..., Executable],
    left: Array,
    right: Array,
    parameters: tuple[Any, ...],
    extra: tuple[Any, ...],
    names: tuple[str, str],
) -> Array:
    """Run a pass on pixels of bfloat16: new ones are rounded once, a weight gradient is not.

    They stay so in memory where the kernel reads and writes it; weights are few.
    """
    dtype = left.dtype
    gradients = make is weight_grad_executable
    if right.dtype != dtype and (gradients or right.dtype != _SINGLE):
        raise TypeError(f"{names[1]} must be bfloat16 as {names[0]} is, got {right.dtype.name}")
    left, right = given = [one if _is_readable(one) else one.copy("K") for one in (left, right)]
    extra = tuple([astype(one, _SINGLE) if isinstance(one, np.ndarray) else one for one in extra])
    right = bits(right) if gradients or right.dtype == _SINGLE else astype(right, _SINGLE)
    left = bits(left)
    # Factors that are bfloat16 are not rounded again.
    with selected(precision="bf16"):
        arrays = left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype
        executable = executable_of(make, (*arrays, current()), parameters, (True, True))
        if not executable.narrow[0]:
            if not all(map(is_dense, given)):  # a float32 copy would not lie as these do
                left, right = (one.copy("K") for one in given)
                return _apply_bfloat16(make, left, right, parameters, extra, names)
            left = astype(left.view(dtype), _SINGLE)
            right = astype(right.view(dtype), _SINGLE) if gradients else right
        made = executable(left, right, extra)
    if executable.narrow[1]:
        return made.view(dtype)
    return made if gradients else astype(made, dtype)


def _is_readable(array: Array) -> bool:
    """Return whether kernels may read bfloat16 there: it has no gaps, or none between channels.

    The latter are gradients of channels that were joined by `cat`.
    """
    if is_dense(array):
        return True
    steps = array.strides
    beside = len(steps) > 1 and steps[1] == array.itemsize
    return beside and array.flags.aligned and min(steps) > 0


def executable_of(
    make: Any, key: tuple[Any, ...], parameters: Sequence[Any], *rest: Any
) -> Executable:
    """Return the executable for parameters of any form, or say what is wrong with them.

    key : shape, strides and dtype of each array, and the selection
    rest : what the maker takes besides, and no caller of convcore's gives
    """
    found = parameters if is_plain(parameters) else tuple(map(plain_parameter, parameters))
    if is_plain(found):
        return make(*key, *found, *rest)
    return make.__wrapped__(*key, *parameters, *rest)


def _cached(make: Callable[..., Executable]) -> Callable[..., Executable]:
    """Cache a maker of executables by its arguments one by one.

    It is called with shape, strides and dtype of each array, the selection, the steps one by one,
    and what else it takes.  The parameters are plain: (1.0, 1) would get what (1, 1) has got.
    """

    @functools.lru_cache(maxsize=_MOST_CACHED)
    def executable(*key: Any) -> Executable:
        left, right = Operand(*key[:3]), Operand(*key[3:6])
        return make(left, right, key[6], Steps(*key[7:11]), *key[11:])

    return executable


@_cached
def forward_executable(
    x: Operand,
    w: Operand,
    selection: Selection,
    steps: Steps,
    narrow: Narrow = WIDE,
    prepacked: bool = False,
) -> Executable:
    """Make the forward pass; prepacked: for weights that stay as they are."""
    size = common_itemsize(("input", w.dtype if narrow[0] else x.dtype), ("weight", w.dtype))
    squeeze, x = x.batched(weight_rank(w.shape))
    g = make_geometry(x.shape, w.shape, *steps)
    check_memory(g.output_shape, size)
    return _chosen(FORWARD, g, g.output_shape, x, w, selection, squeeze, prepacked, narrow)


@_cached
def input_grad_executable(
    y: Operand,
    w: Operand,
    selection: Selection,
    steps: Steps,
    input_size: Spatial,
    narrow: Narrow = WIDE,
) -> Executable:
    """Make the input gradient."""
    rank = weight_rank(w.shape)
    squeeze, y = y.batched(rank, "grad_output")
    sizes = per_axis("input_size", input_size, rank, least=0)
    groups = index("groups", steps.groups)
    x_shape = (y.shape[0], w.shape[1] * max(groups, 1), *sizes)
    g = make_geometry(x_shape, w.shape, *steps)
    check_output("grad_output", y.shape, g)
    return _input_grad(g, "grad_output", y, w, selection, squeeze, narrow)


@_cached
def transpose_executable(
    x: Operand,
    w: Operand,
    selection: Selection,
    steps: Steps,
    output_padding: Spatial,
    narrow: Narrow = WIDE,
) -> Executable:
    """Make the transposed convolution: the input gradient, and a bias."""
    squeeze, x = x.batched(weight_rank(w.shape), function="conv_transpose")
    stride, padding, dilation, groups = steps
    g = transposed_geometry(x.shape, w.shape, stride, padding, output_padding, dilation, groups)
    made = _input_grad(g, "input", x, w, selection, squeeze, narrow)
    parts = made.kernel, made.plan, made.shape, made.dtype, made.channels_last
    return TransposedExecutable(*parts, squeeze, made.narrow)


def _input_grad(
    g: Geometry,
    name: str,
    y: Operand,
    w: Operand,
    selection: Selection,
    squeeze: bool,
    narrow: Narrow = WIDE,
) -> Executable:
    size = common_itemsize((name, w.dtype if narrow[0] else y.dtype), ("weight", w.dtype))
    check_memory(g.input_shape, size)
    return _chosen(INPUT_GRAD, g, g.input_shape, y, w, selection, squeeze, narrow=narrow)


@_cached
def weight_grad_executable(
    x: Operand,
    y: Operand,
    selection: Selection,
    steps: Steps,
    kernel_size: Spatial,
    narrow: Narrow = WIDE,
) -> Executable:
    """Make the weight gradient; narrow: both arrays, and never the gradient."""
    dtypes = [_SINGLE if narrow[0] else one.dtype for one in (x, y)]
    size = common_itemsize(("input", dtypes[0]), ("grad_output", dtypes[1]))
    if len(x.shape) != len(y.shape):
        raise ValueError(
            "input and grad_output must have as many axes as each other, "
            f"got shapes {list(x.shape)} and {list(y.shape)}"
        )
    # The kernel's length tells the rank where it is a sequence; an int leaves the input batched.
    rank = len(kernel_size) if isinstance(kernel_size, tuple) else len(x.shape) - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            "kernel_size must have one to three ints, one a spatial axis of input, "
            f"got {kernel_size} for input of size: {list(x.shape)}"
        )
    _, x = x.batched(rank)
    _, y = y.batched(rank, "grad_output")
    kernel = per_axis("kernel_size", kernel_size, rank)
    groups = index("groups", steps.groups)
    g = make_geometry(x.shape, (y.shape[1], x.shape[1] // max(groups, 1), *kernel), *steps)
    check_output("grad_output", y.shape, g)
    check_memory(g.weight_shape, size)
    return _chosen(WEIGHT_GRAD, g, g.weight_shape, x, y, selection, narrow=(narrow[0], False))


def _chosen(
    pass_name: str,
    g: Geometry,
    shape: Sequence[int],
    left: Operand,
    right: Operand,
    selection: Selection,
    squeeze: bool = False,
    prepacked: bool = False,
    narrow: Narrow = WIDE,
) -> Executable:
    """Choose the algorithm of a pass, whose result has the shape; channels_last as an operand.

    What shall be narrow is, as far as the algorithm can: the executable's ``narrow`` tells.
    """
    last = any(is_channels_last(one.shape, one.strides) for one in (left, right))
    a, b = (layout(one.shape, one.strides, one.dtype.itemsize) for one in (left, right))
    dtype = _SINGLE if right.dtype == NARROW_DTYPE else right.dtype
    problem = Problem(pass_name, g, dtype, a, b, last, prepacked)
    if narrow != WIDE:
        narrow = narrowest(problem, selection, narrow)
        problem = problem._replace(narrow_left=narrow[0], narrow_output=narrow[1])
    kernel, plan = choose(problem, selection)
    return Executable(kernel, plan, shape, problem.dtype, last, squeeze, narrow)
