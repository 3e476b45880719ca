"""Pooling: maxima, means and norms of windows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore.nn import functional as F
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import TRANSLATIONS, as_list, ints, like
from convcore.onnx.translations.resizing import by_matrices

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _of_ranks(name: str) -> Callable[[Callable[..., list[str]]], Callable[..., list[str]]]:
    """Enter a translation for one, two and three axes, which it gets first."""

    def enter(function: Callable[..., list[str]]) -> Callable[..., list[str]]:
        for rank in (1, 2, 3):
            TRANSLATIONS[f"{name}{rank}d"] = partial(_batched, function, rank)
        return function

    return enter


def _batched(
    function: Callable[..., list[str]], rank: int, r: Recorder, y: Any, *, input: Any, **rest: Any
) -> list[str]:
    if input.ndim != rank + 2:
        raise OnnxError("without a batch")
    return function(rank, r, y, input=input, **rest)


class _Windows:
    """The attributes of a pool's windows, written so that floors give as many as there are.

    What ceil_mode reads beyond the image becomes pads, for the standard's shapes have windows that
    begin there, which neither PyTorch nor ONNX Runtime has.  Where sizes are free, it is left.
    """

    def __init__(
        self,
        rank: int,
        r: Recorder,
        input: Any,
        y: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.rank, self.kernel = rank, as_list(kernel_size, rank)
        self.strides = as_list(kernel_size if stride in (None, ()) else stride, rank)
        self.before, self.dilations = as_list(padding, rank), as_list(dilation, rank)
        self.ceil_mode = int(ceil_mode and r.sizes_are_free)
        self.after = self.before
        if ceil_mode and not r.sizes_are_free:
            ends = [
                (o - 1) * s + d * (k - 1) + 1 - n - b
                for o, s, d, k, n, b in zip(
                    y.shape[2:],
                    *(self.strides, self.dilations, self.kernel),
                    *(input.shape[2:], self.before),
                    strict=True,
                )
            ]
            self.after = list(map(max, ends, self.before))

    @property
    def are_pads_short(self) -> bool:
        """Whether pads are less than windows, as ONNX Runtime needs them."""
        return all(a < k for a, k in zip(self.after, self.kernel, strict=True))

    def options(self, before: list[int] | None = None, after: list[int] | None = None) -> dict:
        """Return the attributes, with other pads if they are given."""
        found = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": (before or self.before) + (after or self.after),
            "ceil_mode": self.ceil_mode,
        }
        return found if self.dilations == [1] * self.rank else found | {"dilations": self.dilations}


def _padded(r: Recorder, input: Any, before: list[int], after: list[int], fill: float) -> list[str]:
    pads = ints(r, [0, 0, *before, 0, 0, *after])
    return r.node("Pad", [r.name(input), pads, r.constant(like(input, fill))])


@_of_ranks("max_pool")
def _max_pool(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
) -> list[str]:
    first = y[0] if return_indices else y
    windows = _Windows(
        rank, r, input, first, kernel_size, stride, padding, dilation, ceil_mode
    )  # fmt: skip
    names, options = [r.name(input)], windows.options()
    if not windows.are_pads_short:
        if return_indices:
            raise OnnxError("with indices, and pads as long as windows")
        names = _padded(r, input, windows.before, windows.after, -math.inf)
        options = windows.options([0] * rank, [0] * rank)
    if not return_indices:
        return r.node("MaxPool", names, **options)
    values, places = r.node("MaxPool", names, count=2, **options)
    # ONNX counts through the whole tensor, PyTorch through each plane.
    plane = r.constant(math.prod(r.sizes(input)[2:]), np.int64)
    return [values, *r.node("Mod", [places, plane])]


@_of_ranks("avg_pool")
def _avg_pool(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any = None,
) -> list[str]:
    windows = _Windows(rank, r, input, y, kernel_size, stride, padding, 1, ceil_mode)
    names, options = [r.name(input)], windows.options()
    before, after = windows.before, windows.after
    if divisor_override is not None:
        if windows.ceil_mode:
            raise OnnxError("divisor_override and ceil_mode where sizes are free")
        means = r.node("AveragePool", names, count_include_pad=1, **options)
        share = like(input, math.prod(windows.kernel) / divisor_override)
        return r.node("Mul", [*means, r.constant(share)])
    if count_include_pad and after != before and any(before):
        # The padding counts, and what ceil_mode reads beyond it does not.
        names = _padded(r, input, before, before, 0.0)
        beyond = [a - b for a, b in zip(after, before, strict=True)]
        options, count_include_pad = windows.options([0] * rank, beyond), False
    elif after != before:
        count_include_pad = False
    return r.node("AveragePool", names, count_include_pad=int(count_include_pad), **options)


def _adaptive(
    r: Recorder, y: Any, input: Any, ops: tuple[str, str], otherwise: Callable[[], list[str]]
) -> list[str]:
    sizes, outs = input.shape[2:], y.shape[2:]
    if all(o == 1 for o in outs):
        return r.node(ops[0], [r.name(input)])
    if r.sizes_are_free or not all(outs):
        raise OnnxError(f"{tuple(sizes)} to {tuple(outs)} where sizes are free, or to nothing")
    if any(n % o for n, o in zip(sizes, outs, strict=True)):
        return otherwise()
    kernel = [n // o for n, o in zip(sizes, outs, strict=True)]
    return r.node(ops[1], [r.name(input)], kernel_shape=kernel, strides=kernel)


@_of_ranks("adaptive_avg_pool")
def _adaptive_avg(rank: int, r: Recorder, y: Any, *, input: Any, output_size: Any) -> list[str]:
    pool = getattr(F, f"adaptive_avg_pool{rank}d")

    def along(axis: int, line: Any) -> Any:
        return pool(line, [y.shape[2 + axis] if a == axis else 1 for a in range(rank)])

    ops = ("GlobalAveragePool", "AveragePool")
    return _adaptive(r, y, input, ops, lambda: by_matrices(r, input, along))


@_of_ranks("adaptive_max_pool")
def _adaptive_max(
    rank: int, r: Recorder, y: Any, *, input: Any, output_size: Any, return_indices: bool = False
) -> list[str]:
    if return_indices:
        raise OnnxError("return_indices=True is not supported")

    def by_axes() -> list[str]:
        """Take the windows along each axis, the last pixel repeated to one length; their maxima."""
        names = [r.name(input)]
        for axis, (n, o) in enumerate(zip(input.shape[2:], y.shape[2:], strict=True), 2):
            start, end = np.arange(o) * n // o, -(-np.arange(1, o + 1) * n // o)
            taps = start[:, None] + np.arange((end - start).max())
            index = r.constant(np.minimum(taps, end[:, None] - 1))
            names = _maxima(r, r.node("Gather", [*names, index], axis=axis), axis + 1)
        return names

    return _adaptive(r, y, input, ("GlobalMaxPool", "MaxPool"), by_axes)


def _maxima(r: Recorder, names: list[str], axis: int) -> list[str]:
    if r.opset < 18:
        return r.node("ReduceMax", names, axes=[axis], keepdims=0)
    return r.node("ReduceMax", [*names, ints(r, [axis])], keepdims=0)
