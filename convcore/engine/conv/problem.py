"""Types of algorithm selection: Problem (a pass on given arrays), PassPlan, Algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.conv.struct_fields import three
from convcore.engine.geometry import Geometry
from convcore.engine.runtime.layout import Layout, dense

FORWARD, INPUT_GRAD, WEIGHT_GRAD = PASSES = ("forward", "input_grad", "weight_grad")

# Possible contents of memory shared by all threads; blocks.py has the bounds.
PACKED_WEIGHTS, TRANSFORMED_WEIGHTS = "packed weights", "transformed weights"
PARTIAL_SUMS = "partial sums"
TRANSFORMED_DATA = "transformed data"


class Problem(NamedTuple):
    """One of a convolution's three passes, on arrays of given memory layouts.

    ``left`` and ``right`` are the arrays as the pass's function takes them: input and weight, or
    grad_output and weight, or input and grad_output.  ``channels_last`` is the result's format.
    ``prepacked``: the weights are constant, and the caller caches them in packed form.
    ``narrow_left`` and ``narrow_output``: ``left`` and the result are bfloat16 in memory; for a
    weight gradient, ``left`` and ``right`` are.  Products and sums still use ``dtype``, and each
    result is rounded once.
    """

    pass_name: str
    geometry: Geometry
    dtype: np.dtype[Any]
    left: Layout
    right: Layout
    channels_last: bool
    prepacked: bool = False
    narrow_left: bool = False
    narrow_output: bool = False

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return self.dtype.itemsize

    @property
    def c(self) -> int:
        """Return the input channels of one group."""
        return self.geometry.c_in // self.geometry.groups

    @property
    def o(self) -> int:
        """Return the output channels of one group."""
        return self.geometry.c_out // self.geometry.groups

    @property
    def reduction_channels(self) -> int:
        """Return the channels per group that a forward pass or input gradient sums over."""
        return self.o if self.pass_name == INPUT_GRAD else self.c

    @property
    def output_channels(self) -> int:
        """Return the channels per group of the result of a forward pass or input gradient."""
        return self.c if self.pass_name == INPUT_GRAD else self.o

    def job(self, plan: PassPlan) -> dict[str, Any]:
        """Return the fields shared by the kernels' Job structs: the plan's sizes and more.

        ``size`` and ``row`` are the elements of a weight gradient, and of one of its rows.
        """
        g = self.geometry
        return plan._asdict() | {
            "channels_last": self.channels_last,
            "narrow_y": self.narrow_output,
            "groups": g.groups,
            "c": self.c,
            "o": self.o,
            "o_blocks": -(-self.o // max(plan.o_block, 1)),
            "size": g.c_out * g.columns,
            "row": g.columns,
            "work": float(g.multiply_adds),
        }

    @property
    def output(self) -> Layout:
        """Return the memory layout of the result."""
        return shapes_of(self.geometry, self.channels_last)[self.pass_name]


class PassPlan(NamedTuple):
    """The plan of one of the three passes; `convcore plan` prints it.

    ``items`` independent work items are shared among the threads.  Each thread needs ``scratch``
    elements of its own, of which ``patches`` hold patches; ``shared`` elements are used by all
    threads, and ``shared_contents`` says what they hold.  ``prepacked`` is the number of elements
    of packed or transformed weights, which the caller caches from call to call.  If
    ``supports_epilogue``, the kernel takes a bias and an activation in every pass; if
    ``supports_accumulate``, it can add to the output's old contents (``add=``).

    Where the algorithm works by blocks, a block is ``block`` ``units`` (pixels, or tiles) by
    ``o_block`` output channels, and its K-blocks, parts of the reduction, are ``part_taps`` by
    ``part_channels``; ``partials`` sums are added in index order; ``tile`` input indices are
    computed at a time.

    ``multiply_adds`` counts the computed ones, including products with padding zeros where they are
    computed, without those of transforms.  ``refused`` has (algorithm, reason) for every other
    algorithm of the pass.
    """

    algorithm: str
    reason: str
    itemsize: int
    items: int
    scratch: int
    shared: int = 0
    shared_contents: str = ""
    prepacked: int = 0
    supports_epilogue: bool = False
    supports_accumulate: bool = False
    block: int = 0
    units: str = "pixels"
    o_block: int = 0
    part_taps: int = 0
    part_channels: int = 0
    patches: int = 0
    partials: int = 1
    tile: int = 0
    multiply_adds: int = 0
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of scratch memory that each thread needs."""
        return self.scratch * self.itemsize

    @property
    def shared_bytes(self) -> int:
        """Return the bytes of memory that all threads share."""
        return self.shared * self.itemsize

    @property
    def prepacked_bytes(self) -> int:
        """Return the bytes of packed weights that the caller caches."""
        return self.prepacked * self.itemsize


def never(problem: Problem) -> str | None:
    """Return None: every problem is supported or profitable (default for an algorithm)."""
    return None


def reads_float32(problem: Problem) -> str | None:
    """Reject problems stored in bfloat16 (the default for an algorithm)."""
    return "it knows no bfloat16 in memory"


def not_by_pixel(problem: Problem) -> str | None:
    """Return a reason if bfloat16 arrays have non-contiguous channels, else None."""
    if problem.pass_name == WEIGHT_GRAD:
        if problem.left.strides[1] == problem.right.strides[1] == 1:
            return None
    elif problem.channels_last and (not problem.narrow_left or problem.left.strides[1] == 1):
        return None
    return "its channels do not lie side by side in memory"


class Algorithm(NamedTuple):
    """An algorithm for some of the passes.

    Parameters
    ----------
    name : str
        The name that users see.
    passes : tuple of str, out of PASSES
    prepare : function from a problem to (kernel, PassPlan)
        A kernel is an object with ``threads()``, the number of threads it may use now, and
        ``run(left, right, output, workspace, threads, *extra)``; the workspace has the plan's
        shared bytes and the scratch bytes of all threads, aligned to 64 bytes.  If the plan has
        ``prepacked`` weights, ``pack(right, block)`` writes them, and ``run`` receives them as
        ``prepacked=``.
    impossible : function from a problem to the reason why it is not supported, or None
    unprofitable : function from a problem to the reason why another is faster, or None
    direct : bool
        Whether it sums the products directly; strict mode refuses all others.
    rounds : bool
        Whether it rounds the factors of float32 products, which a user must allow.
    not_narrow : function from a problem with bfloat16 storage to why it is unsupported, or None
    """

    name: str
    passes: tuple[str, ...]
    prepare: Callable[[Problem], tuple[Any, PassPlan]]
    impossible: Callable[[Problem], str | None] = never
    unprofitable: Callable[[Problem], str | None] = never
    direct: bool = True
    rounds: bool = False
    not_narrow: Callable[[Problem], str | None] = reads_float32


def dense_problem(
    pass_name: str, geometry: Geometry, dtype: np.dtype[Any], channels_last: bool
) -> Problem:
    """Return the problem of a pass on new arrays of one memory format."""
    arrays = shapes_of(geometry, channels_last)
    # The operands of each pass are the results of the other two passes, in this order.
    others = (name for name in (INPUT_GRAD, FORWARD, WEIGHT_GRAD) if name != pass_name)
    left, right = (arrays[name] for name in others)
    return Problem(pass_name, geometry, dtype, left, right, channels_last)


def shapes_of(geometry: Geometry, channels_last: bool) -> dict[str, Layout]:
    """Return the layout of each pass's result: (N, C, D, H, W), or (O, C, D, H, W)."""
    g, axes = geometry, three(geometry.axes)
    shapes = {
        FORWARD: (g.n, g.c_out, *(a.out for a in axes)),
        INPUT_GRAD: (g.n, g.c_in, *(a.size for a in axes)),
        WEIGHT_GRAD: (g.c_out, g.c_in // g.groups, *(a.kernel for a in axes)),
    }
    return {name: dense(shape, channels_last) for name, shape in shapes.items()}
