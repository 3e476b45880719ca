"""Pooling: maxima, means and norms of windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import (
    TRANSLATIONS,
    Translation,
    as_list,
    translates,
)

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
    if return_indices:
        raise OnnxError("with indices")
    return r.node(
        "MaxPool",
        [r.name(input)],
        kernel_shape=as_list(kernel_size, rank),
        strides=as_list(kernel_size if stride in (None, ()) else stride, rank),
        pads=as_list(padding, rank) * 2,
        dilations=as_list(dilation, rank),
        ceil_mode=int(ceil_mode),
    )


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
    if divisor_override is not None:
        raise OnnxError(f"divisor_override={divisor_override}")
    return r.node(
        "AveragePool",
        [r.name(input)],
        kernel_shape=as_list(kernel_size, rank),
        strides=as_list(kernel_size if stride in (None, ()) else stride, rank),
        pads=as_list(padding, rank) * 2,
        ceil_mode=int(ceil_mode),
        count_include_pad=int(count_include_pad),
    )


def _adaptive(r: Recorder, y: Any, input: Any, ops: tuple[str, str]) -> list[str]:
    sizes, outs = input.shape[2:], y.shape[2:]
    if all(o == 1 for o in outs):
        return r.node(ops[0], [r.name(input)])
    if r.sizes_are_free or any(n % o for n, o in zip(sizes, outs, strict=True)):
        raise OnnxError(f"{tuple(sizes)} to {tuple(outs)}: windows of one size do not give that")
    kernel = [n // o for n, o in zip(sizes, outs, strict=True)]
    return r.node(ops[1], [r.name(input)], kernel_shape=kernel, strides=kernel)


@_of_ranks("adaptive_avg_pool")
def _adaptive_avg(rank: int, r: Recorder, y: Any, *, input: Any, output_size: Any) -> list[str]:
    return _adaptive(r, y, input, ("GlobalAveragePool", "AveragePool"))


@_of_ranks("adaptive_max_pool")
def _adaptive_max(
    rank: int,
    r: Recorder,
    y: Any,
    *,
    input: Any,
    output_size: Any,
    return_indices: bool = False,
) -> list[str]:
    if return_indices:
        raise OnnxError("with indices")
    return _adaptive(r, y, input, ("GlobalMaxPool", "MaxPool"))


def _lp_pool(rank: int) -> Translation:
    """Return the translation of the p-norm of windows over some axes."""

    def lp_pool(
        r: Recorder,
        y: Any,
        *,
        input: Any,
        norm_type: float,
        kernel_size: Any,
        stride: Any,
        ceil_mode: bool,
    ) -> list[str]:
        if norm_type % 2 or ceil_mode or input.ndim != rank + 2:
            # LpPool takes the absolute values, and lp_pool does not.
            raise OnnxError(f"norm_type={norm_type}, ceil_mode={ceil_mode}, {input.ndim} axes")
        sizes, steps = (
            list(each) if isinstance(each, tuple | list) else [each] * rank
            for each in (kernel_size, kernel_size if stride in (None, ()) else stride)
        )
        names = [r.name(input)]
        return r.node("LpPool", names, kernel_shape=sizes, strides=steps, p=int(norm_type))

    return lp_pool


for _rank in (1, 2, 3):
    translates(f"lp_pool{_rank}d")(_lp_pool(_rank))
