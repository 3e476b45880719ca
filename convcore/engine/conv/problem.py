"""The types of algorithm selection: Problem (a pass on given arrays), PassPlan, Algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from convcore.engine.conv.struct_fields import three
from convcore.engine.geometry import Geometry
from convcore.engine.runtime.layout import Layout, dense

FORWARD, INPUT_GRAD, WEIGHT_GRAD = PASSES = ("forward", "input_grad", "weight_grad")

# What memory that all threads share may hold; blocks.py has the bounds.
PACKED_WEIGHTS, TRANSFORMED_WEIGHTS = "packed weights", "transformed weights"
PARTIAL_SUMS = "partial sums"
TRANSFORMED_DATA = "transformed data"


class Problem(NamedTuple):
    """One of a convolution's three passes, on arrays that lie in memory in a given way.

    ``left`` and ``right`` are the arrays as the pass's function takes them: input and weight, or
    grad_output and weight, or input and grad_output.  ``channels_last`` is the result's format.
    ``prepacked`` says that the weights stay as they are, and the caller keeps them packed.
    ``narrow_left`` and ``narrow_output`` say that ``left`` and the result are bfloat16 in memory;
    of a weight gradient ``left`` and ``right`` are.  Products and sums are of ``dtype`` all the
    same, and each result is rounded once.
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
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def c(self) -> int:
        """Input channels of one group."""
        return self.geometry.c_in // self.geometry.groups

    @property
    def o(self) -> int:
        """Output channels of one group."""
        return self.geometry.c_out // self.geometry.groups

    @property
    def reduction_channels(self) -> int:
        """Channels of one group that a forward pass or input gradient sums over."""
        return self.o if self.pass_name == INPUT_GRAD else self.c

    @property
    def output_channels(self) -> int:
        """Channels of one group of the result of a forward pass or input gradient."""
        return self.c if self.pass_name == INPUT_GRAD else self.o

    def job(self, plan: PassPlan) -> dict[str, Any]:
        """Return what the Job structs of the kernels have in common: the plan's sizes, and more.

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
        """How the result will lie in memory."""
        return shapes_of(self.geometry, self.channels_last)[self.pass_name]


class PassPlan(NamedTuple):
    """How one of the three passes is computed: what `convcore plan` prints.

    ``items`` independent pieces of work are shared among the threads.  Each thread needs
    ``scratch`` elements of its own, of which ``patches`` hold patches; ``shared`` elements serve
    all threads, and ``shared_contents`` says what they are.  ``prepacked`` elements are of
    packed or transformed weights, which the caller keeps from call to call.  With
    ``supports_epilogue`` the kernel takes a bias and an activation in every pass, with
    ``supports_accumulate`` it can add to what the output holds (``add=``).

    Where the algorithm works by blocks, a block is ``block`` ``units`` (pixels, or tiles) by
    ``o_block`` output channels, and its K-blocks, cuts of the reduction, are ``part_taps`` by
    ``part_channels``; ``partials`` sums are added in index order; ``tile`` input indices are made
    at a time.

    ``multiply_adds`` are those done, with the zeros of the padding where they are multiplied, but
    without those of transforms.  ``refused`` has (algorithm, why not) for every other algorithm of
    the pass.
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
        """Bytes of scratch that each thread needs."""
        return self.scratch * self.itemsize

    @property
    def shared_bytes(self) -> int:
        """Bytes that all threads need together."""
        return self.shared * self.itemsize

    @property
    def prepacked_bytes(self) -> int:
        """Bytes of weights, as the kernel reads them, that the caller keeps."""
        return self.prepacked * self.itemsize


def never(problem: Problem) -> str | None:
    """Return None: the algorithm can do, or pays for, every problem."""
    return None


def reads_float32(problem: Problem) -> str | None:
    """Return why most algorithms do no problem with bfloat16 in memory."""
    return "it knows no bfloat16 in memory"


def not_by_pixel(problem: Problem) -> str | None:
    """Return why channels in bfloat16 do not lie side by side, or None if they do."""
    if problem.pass_name == WEIGHT_GRAD:
        if problem.left.strides[1] == problem.right.strides[1] == 1:
            return None
    elif problem.channels_last and (not problem.narrow_left or problem.left.strides[1] == 1):
        return None
    return "its channels do not lie side by side in memory"


class Algorithm(NamedTuple):
    """One way to compute some of the passes.

    Parameters
    ----------
    name : str
        What users call it.
    passes : tuple of str, out of PASSES
    prepare : function from a problem to (kernel, PassPlan)
        A kernel is an object with ``threads()``, how many threads it may use now, and
        ``run(left, right, output, workspace, threads, *extra)``; the workspace has the plan's
        shared bytes and the scratch bytes of so many threads, aligned to 64 bytes.  Where the plan
        has ``prepacked`` weights, ``pack(right, block)`` writes them, and ``run`` gets them as
        ``prepacked=``.
    impossible : function from a problem to a reason why it cannot do it, or None
    unprofitable : function from a problem to a reason why another is faster, or None
    direct : bool
        Whether it adds up the products themselves; strict mode refuses all others.
    rounds : bool
        Whether it rounds the factors of float32 products, which a user has to allow.
    not_narrow : function from a problem with bfloat16 in memory to why it cannot do it, or None
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
    # Each pass takes the two arrays that the other two make, in this order.
    others = (name for name in (INPUT_GRAD, FORWARD, WEIGHT_GRAD) if name != pass_name)
    left, right = (arrays[name] for name in others)
    return Problem(pass_name, geometry, dtype, left, right, channels_last)


def shapes_of(geometry: Geometry, channels_last: bool) -> dict[str, Layout]:
    """Return how each pass's result lies in memory: (N, C, D, H, W), or (O, C, D, H, W)."""
    g, axes = geometry, three(geometry.axes)
    shapes = {
        FORWARD: (g.n, g.c_out, *(a.out for a in axes)),
        INPUT_GRAD: (g.n, g.c_in, *(a.size for a in axes)),
        WEIGHT_GRAD: (g.c_out, g.c_in // g.groups, *(a.kernel for a in axes)),
    }
    return {name: dense(shape, channels_last) for name, shape in shapes.items()}
