"""What the tests of pools draw and compare: every parameter different from axis to axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from draws import LAYOUTS, is_channels_last, is_dense, lay_out, shortest
from hypothesis import strategies as st
from properties import examples

from convcore.engine import reference

SOME = examples(120)

FLOATS = ("float16", "float32", "float64")

X = np.ones((2, 3, 4, 4))


@dataclass(frozen=True)
class Case:
    """A pool with everything that may differ about its arguments."""

    n: int
    c: int
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    outs: tuple[int, ...]
    ceil_mode: bool
    count_include_pad: bool
    divisor: int | None
    unbatched: bool
    dtype: str
    layout: str
    draw: int

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def max_steps(self) -> dict[str, Any]:
        """The keywords of max_pool, each in the shortest form that says it."""
        return {
            "stride": None if self.stride == self.kernel else shortest(list(self.stride)),
            "padding": shortest(list(self.padding)),
            "dilation": shortest(list(self.dilation)),
            "ceil_mode": self.ceil_mode,
        }

    @property
    def avg_steps(self) -> dict[str, Any]:
        """The keywords of avg_pool, which has no dilation."""
        return {
            "stride": self.stride,
            "padding": tuple(
                min(p, k // 2) for p, k in zip(self.padding, self.kernel, strict=True)
            ),
            "ceil_mode": self.ceil_mode,
            "count_include_pad": self.count_include_pad,
        }

    def windows(self, steps: dict[str, Any]) -> list[reference.Window]:
        return reference.pool_windows(self.sizes, self.kernel, **steps)

    def numbers(self, seed: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
        """Draw an array of small integers, so that maxima tie and sums are exact."""
        rng = np.random.default_rng([seed, self.draw])
        shape = (self.n, self.c, *self.sizes) if shape is None else shape
        array = lay_out(rng.integers(-4, 5, shape).astype(self.dtype), self.layout, rng)
        return array[0] if self.unbatched else array

    def batch(self, array: np.ndarray) -> np.ndarray:
        return array[np.newaxis] if self.unbatched else array


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = FLOATS) -> Case:
    """Draw a pool of rank 1 to 3 with every parameter different from axis to axis."""
    rank = draw(st.integers(1, 3))
    axes = []
    for _ in range(rank):
        dilation = draw(st.sampled_from((1, 1, 2, 3)))
        kernel = draw(st.sampled_from((1, 2, 2, 3, 3, 4, 5)))
        extent = dilation * (kernel - 1) + 1
        padding = draw(st.integers(0, extent // 2))
        # An average has no dilation, hence less padding; both pools must fit.
        least = max(1, extent - 2 * padding, kernel - 2 * min(padding, kernel // 2))
        size = least + draw(st.integers(0, 5 if rank < 3 else 3))
        stride = draw(st.sampled_from((kernel, 1, 2, 3, 4)))
        axes.append((size, kernel, stride, padding, dilation, draw(st.integers(1, 6))))
    sizes, kernels, strides, paddings, dilations, outs = zip(*axes, strict=True)
    unbatched = draw(st.sampled_from((False, False, True)))
    return Case(
        n=1 if unbatched else draw(st.sampled_from((1, 2, 3, 0))),
        c=draw(st.integers(1, 4)),
        sizes=sizes,
        kernel=kernels,
        stride=strides,
        padding=paddings,
        dilation=dilations,
        outs=outs,
        ceil_mode=draw(st.booleans()),
        count_include_pad=draw(st.booleans()),
        divisor=draw(st.sampled_from((None, None, 3, -2))),
        unbatched=unbatched,
        dtype=draw(st.sampled_from(dtypes)),
        layout=draw(st.sampled_from(("contiguous", "channels_last", *LAYOUTS))),
        draw=draw(st.integers(0, 2**32 - 1)),
    )


def with_nonfinite(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the array with some elements NaN and some -inf, in the same memory order."""
    kinds = rng.integers(0, 12, array.shape)
    result = array.copy(order="K")
    result[kinds == 0], result[kinds <= 2] = np.nan, -np.inf
    result[kinds == 1] = np.nan
    return result


def assert_format_kept(input: np.ndarray, *results: np.ndarray) -> None:
    for result in results:
        assert is_dense(result, is_channels_last(input))


def assert_close(result: np.ndarray, exact: np.ndarray, dtype: str, terms: int = 1) -> None:
    """Compare means of small integers: their sums are exact, what is left is the division."""
    assert result.dtype == dtype and result.shape == exact.shape
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(result, exact, rtol=4 * eps, atol=32 * terms * eps)


def as_torch(torch, array):
    """Return the array as a PyTorch tensor of the same strides, which must not be negative."""
    return torch.from_numpy(array.copy(order="K")).requires_grad_()
