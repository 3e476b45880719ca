"""Sizes, strides, dilations and pads of windows that move over an image."""

from __future__ import annotations

from collections.abc import Sequence

from convcore.onnx.errors import OnnxError


class Windows:
    """Windows over an image of any rank, with ONNX's rules for pads.

    Parameters
    ----------
    sizes, kernel : sequence of int
    strides, dilations : list of int, or None for 1
    pads : list of int, or None
        Before each axis, and then after each.
    auto_pad : str
        NOTSET, VALID, SAME_UPPER or SAME_LOWER.

    Attributes
    ----------
    pads : (list of int, list of int)
        Before, and after.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        kernel: Sequence[int],
        strides: list[int] | None,
        dilations: list[int] | None,
        pads: list[int] | None,
        auto_pad: str,
    ) -> None:
        rank = self.rank = len(kernel)
        if len(sizes) != rank:
            raise OnnxError(f"an image of {len(sizes)} axes for windows of {rank}")
        self.sizes, self.kernel = list(sizes), list(kernel)
        self.strides, self.dilations = strides or [1] * rank, dilations or [1] * rank
        pads = pads or [0] * (2 * rank)
        if not len(self.strides) == len(self.dilations) == len(pads) // 2 == rank:
            raise OnnxError(f"strides, dilations and pads have to be of {rank} axes")
        self.pads = pads[:rank], pads[rank:]
        if auto_pad == "VALID":
            self.pads = [0] * rank, [0] * rank
        elif auto_pad.startswith("SAME"):
            total = [
                max((-(-n // s) - 1) * s + span - n, 0)
                for n, s, span in zip(self.sizes, self.strides, self.spans, strict=True)
            ]
            small, large = [t // 2 for t in total], [t - t // 2 for t in total]
            self.pads = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        elif auto_pad not in ("NOTSET", ""):
            raise OnnxError(f"auto_pad is {auto_pad!r}: NOTSET, VALID, SAME_UPPER or SAME_LOWER")

    @property
    def spans(self) -> list[int]:
        """How many pixels a window covers, along each axis."""
        return [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel, strict=True)]

    def outputs(self, ceil_mode: int = 0) -> list[int]:
        """Return the number of windows along each axis."""
        counts = []
        for n, s, span, b, a in zip(self.sizes, self.strides, self.spans, *self.pads, strict=True):
            room = n + b + a - span
            count = (-(-room // s) if ceil_mode else room // s) + 1
            if ceil_mode and (count - 1) * s >= n + b:
                count -= 1  # a window has to begin within the image or the pad before it
            counts.append(count)
        return counts
