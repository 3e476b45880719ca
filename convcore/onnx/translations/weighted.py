"""Convolutions, linear layers and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import as_list, ints, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _pads(input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any) -> list[int]:
    rank = weight.ndim - 2
    if padding == "valid":
        return [0] * (2 * rank)
    if padding == "same":
        total = [
            d * (k - 1) for d, k in zip(as_list(dilation, rank), weight.shape[2:], strict=True)
        ]
        return [t // 2 for t in total] + [t - t // 2 for t in total]
    return as_list(padding, rank) * 2


@translates("conv1d", "conv2d", "conv3d")
def _conv(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
) -> list[str]:
    rank = weight.ndim - 2
    if input.ndim != weight.ndim:
        raise OnnxError("without a batch")
    return r.node(
        "Conv",
        [r.name(each) for each in (input, weight, bias) if each is not None],
        kernel_shape=list(weight.shape[2:]),
        strides=as_list(stride, rank),
        pads=_pads(input, weight, stride, padding, dilation),
        dilations=as_list(dilation, rank),
        group=groups,
    )


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    r: Recorder,
    y: Any,
    *,
    input: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> list[str]:
    rank = weight.ndim - 2
    if input.ndim != weight.ndim:
        raise OnnxError("without a batch")
    strides, before = as_list(stride, rank), as_list(padding, rank)
    extra = as_list(output_padding, rank)
    image, after = r.name(input), before
    if any(e >= s for e, s in zip(extra, strides, strict=True)):
        # ONNX Runtime takes no such output_padding: less is cut off, of an image padded with 0.
        cut = [b - e for b, e in zip(before, extra, strict=True)]
        more = [max(-(c // s), 0) for c, s in zip(cut, strides, strict=True)]
        after = [c + m * s for c, m, s in zip(cut, more, strides, strict=True)]
        extra = [0] * rank
        if any(more):
            (image,) = r.node("Pad", [image, ints(r, [0] * (rank + 4) + more)])
    return r.node(
        "ConvTranspose",
        [image, *(r.name(each) for each in (weight, bias) if each is not None)],
        kernel_shape=list(weight.shape[2:]),
        strides=strides,
        pads=before + after,
        output_padding=extra,
        dilations=as_list(dilation, rank),
        group=groups,
    )


@translates("linear")
def _linear(r: Recorder, y: Any, *, input: Any, weight: Any, bias: Any) -> list[str]:
    if input.ndim == 2:
        names = [r.name(each) for each in (input, weight, bias) if each is not None]
        return r.node("Gemm", names, transB=1)
    turned = r.node("Transpose", [r.name(weight)], perm=[1, 0])
    product = r.node("MatMul", [r.name(input), *turned])
    return product if bias is None else r.node("Add", [*product, r.name(bias)])


@translates("embedding")
def _embedding(r: Recorder, y: Any, *, input: Any, weight: Any, **_: Any) -> list[str]:
    return r.node("Gather", [r.name(weight), r.name(input)], axis=0)
