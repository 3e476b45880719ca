"""A prepared call: everything that one of the maps needs besides its arrays, made once and kept.

It is remembered by the arrays' shapes, strides and dtypes and by the parameters, so a second call
with the like costs a look-up, an allocation and the kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore.engine.conv.algorithms import choose
from convcore.engine.conv.algorithms.problem import (
    FORWARD,
    INPUT_GRAD,
    WEIGHT_GRAD,
    PassPlan,
    Problem,
)
from convcore.engine.conv.algorithms.selection import Selection, current
from convcore.engine.conv.geometry import (
    Geometry,
    Padding,
    Spatial,
    index,
    make_geometry,
    per_axis,
    transposed_geometry,
)
from convcore.engine.runtime import memory
from convcore.engine.runtime.checks import (
    Array,
    batched,
    check_memory,
    check_output,
    checked_array,
    checked_bias,
    common_itemsize,
    hashable,
    weight_rank,
    whole_elements,
)
from convcore.engine.runtime.layout import SplitElementsError, empty, is_channels_last, layout

# A net of a few hundred layers, each with its three maps, in a few shapes.
_REMEMBERED = 4096


class Executable:
    """A kernel with the plan of its memory: allocate, run, return."""

    __slots__ = ("channels_last", "kernel", "plan", "shape", "squeeze")

    def __init__(
        self, kernel: Any, plan: PassPlan, shape: Sequence[int], channels_last: bool, squeeze: bool
    ) -> None:
        self.kernel, self.plan, self.shape = kernel, plan, tuple(shape)
        self.channels_last, self.squeeze = channels_last, squeeze

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Return the pass of the two arrays; `extra`, `prepacked`: what else the kernel takes."""
        plan = self.plan
        # Everything is allocated before BLAS is held and threads start: nothing there can fail.
        output = empty(self.shape, left.dtype, self.channels_last)
        threads = self.kernel.threads()
        block = memory.take(plan.shared_bytes + threads * plan.scratch_bytes)
        try:
            self.kernel.run(left, right, output, block, threads, *extra, **prepacked)
        finally:
            memory.give(block)
        return output[0] if self.squeeze else output


class TransposedExecutable(Executable):
    """The call of a transposed convolution, whose bias, if any, is all of ``extra``."""

    def __call__(
        self, left: Array, right: Array, extra: tuple[Any, ...], **prepacked: memory.Block
    ) -> Array:
        """Return the transposed convolution, the bias added by the kernel if it can."""
        if not extra:
            return super().__call__(left, right, extra)
        bias = checked_bias(extra[0], right.dtype, self.shape[1])
        if self.plan.ends:
            return super().__call__(left, right, (bias,))
        output = super().__call__(left, right, ())
        output += bias.reshape(-1, *(1,) * (right.ndim - 2))
        return output


def apply(
    make: Callable[..., Executable],
    names: tuple[str, str],
    left: Array,
    right: Array,
    parameters: tuple[Any, ...],
    extra: tuple[Any, ...] = (),
) -> Array:
    """Make or remember the call for these arrays and parameters, and call it."""
    if type(left) is not np.ndarray or type(right) is not np.ndarray:
        left, right = checked_array(names[0], left), checked_array(names[1], right)
    if not (left.flags.aligned and right.flags.aligned):
        left, right = whole_elements(left), whole_elements(right)
    arrays = (left.shape, left.strides, left.dtype, right.shape, right.strides, right.dtype)
    selection = current()
    try:
        call = make(*arrays, *parameters, selection)
    except SplitElementsError:
        left, right = whole_elements(left), whole_elements(right)
        return apply(make, names, left, right, parameters, extra)
    except TypeError:
        call = _make_slowly(make, arrays, (*parameters, selection))
    return call(left, right, extra)


def _make_slowly(make: Any, arrays: tuple[Any, ...], parameters: tuple[Any, ...]) -> Executable:
    """Make the call from parameters that cannot be remembered as they are, or say what is wrong."""
    parameters = tuple(map(hashable, parameters))
    try:
        hash(parameters)
    except TypeError:
        return make.__wrapped__(*arrays, *parameters)
    return make(*arrays, *parameters)


_remembered = functools.lru_cache(maxsize=_REMEMBERED, typed=True)


@_remembered
def forward_executable(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
    selection: Selection,
    prepacked: bool = False,
) -> Executable:
    """Return the call of the forward pass; prepacked: for weights that stay as they are."""
    size = common_itemsize(("input", x_dtype), ("weight", w_dtype))
    squeeze, x_shape, x_strides = batched(x_shape, x_strides, weight_rank(w_shape) + 2)
    g = make_geometry(x_shape, w_shape, stride, padding, dilation, groups)
    check_memory(g.output_shape, size)
    last = is_channels_last(x_shape, x_strides) or is_channels_last(w_shape, w_strides)
    x, w = layout(x_shape, x_strides, size), layout(w_shape, w_strides, size)
    kernel, plan = choose(Problem(FORWARD, g, x_dtype, x, w, last, prepacked), selection)
    return Executable(kernel, plan, g.output_shape, last, squeeze)


@_remembered
def input_grad_executable(
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    y_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    input_size: Spatial,
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
    selection: Selection,
) -> Executable:
    """Return the call of the input gradient."""
    rank = weight_rank(w_shape)
    squeeze, y_shape, y_strides = batched(y_shape, y_strides, rank + 2, "grad_output")
    sizes = per_axis("input_size", input_size, rank, least=0)
    groups = index("groups", groups)
    g = make_geometry(
        (y_shape[0], w_shape[1] * max(groups, 1), *sizes),
        w_shape,
        stride,
        padding,
        dilation,
        groups,
    )
    check_output("grad_output", y_shape, g)
    return _make_input_grad(
        g,
        "grad_output",
        y_dtype,
        y_shape,
        y_strides,
        w_dtype,
        w_shape,
        w_strides,
        squeeze,
        selection,
    )


@_remembered
def transpose_executable(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    stride: Spatial,
    padding: Padding,
    output_padding: Spatial,
    dilation: Spatial,
    groups: int,
    selection: Selection,
) -> Executable:
    """Return the call of the transposed convolution."""
    squeeze, x_shape, x_strides = batched(
        x_shape, x_strides, weight_rank(w_shape) + 2, function="conv_transpose"
    )
    g = transposed_geometry(x_shape, w_shape, stride, padding, output_padding, dilation, groups)
    call = _make_input_grad(
        g, "input", x_dtype, x_shape, x_strides, w_dtype, w_shape, w_strides, squeeze, selection
    )
    return TransposedExecutable(call.kernel, call.plan, call.shape, call.channels_last, squeeze)


def _make_input_grad(
    g: Geometry,
    name: str,
    y_dtype: np.dtype[Any],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    w_dtype: np.dtype[Any],
    w_shape: tuple[int, ...],
    w_strides: tuple[int, ...],
    squeeze: bool,
    selection: Selection,
) -> Executable:
    size = common_itemsize((name, y_dtype), ("weight", w_dtype))
    check_memory(g.input_shape, size)
    last = is_channels_last(y_shape, y_strides) or is_channels_last(w_shape, w_strides)
    y, w = layout(y_shape, y_strides, size), layout(w_shape, w_strides, size)
    kernel, plan = choose(Problem(INPUT_GRAD, g, y_dtype, y, w, last), selection)
    return Executable(kernel, plan, g.input_shape, last, squeeze)


@_remembered
def weight_grad_executable(
    x_shape: tuple[int, ...],
    x_strides: tuple[int, ...],
    x_dtype: np.dtype[Any],
    y_shape: tuple[int, ...],
    y_strides: tuple[int, ...],
    y_dtype: np.dtype[Any],
    kernel_size: Spatial,
    stride: Spatial,
    padding: Padding,
    dilation: Spatial,
    groups: int,
    selection: Selection,
) -> Executable:
    """Return the call of the weight gradient."""
    size = common_itemsize(("input", x_dtype), ("grad_output", y_dtype))
    if len(x_shape) != len(y_shape):
        raise ValueError(
            "input and grad_output must have as many axes as each other, "
            f"got shapes {list(x_shape)} and {list(y_shape)}"
        )
    # The kernel's length tells the rank where it is a sequence; an int leaves the input batched.
    rank = len(kernel_size) if isinstance(kernel_size, tuple) else len(x_shape) - 2
    if not 1 <= rank <= 3:
        raise ValueError(
            "kernel_size must have one to three ints, one a spatial axis of input, "
            f"got {kernel_size} for input of size: {list(x_shape)}"
        )
    _, x_shape, x_strides = batched(x_shape, x_strides, rank + 2)
    _, y_shape, y_strides = batched(y_shape, y_strides, rank + 2, "grad_output")
    kernel = per_axis("kernel_size", kernel_size, rank)
    groups = index("groups", groups)
    w_shape = (y_shape[1], x_shape[1] // max(groups, 1), *kernel)
    g = make_geometry(x_shape, w_shape, stride, padding, dilation, groups)
    check_output("grad_output", y_shape, g)
    last = is_channels_last(x_shape, x_strides) or is_channels_last(y_shape, y_strides)
    x, y = layout(x_shape, x_strides, size), layout(y_shape, y_strides, size)
    job, plan = choose(Problem(WEIGHT_GRAD, g, x_dtype, x, y, last), selection)
    return Executable(job, plan, g.weight_shape, last, squeeze=False)
