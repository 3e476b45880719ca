"""L_p pooling layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import at_call

__all__ = ["LPPool1d", "LPPool2d", "LPPool3d"]


class _LPPoolNd(Module):
    _pool: Callable[..., Tensor]
    _printed_attributes = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the p-norm of each window of ``input``."""
        return self._pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd):
    """1-D L_p pooling of (N, C, L) or (C, L); parameters as for `LPPool2d`."""

    _pool = at_call(functional.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """2-D L_p pooling, (sum of x^p)^(1/p) of each window, of (N, C, H, W) or (C, H, W).

    Parameters
    ----------
    norm_type : float
        p.
    kernel_size : int, or one for H and one for W
    stride : the same, optional
        Distance between windows; the kernel's size by default.
    ceil_mode : bool
        Whether a last window that is only partly inside counts.
    """

    _pool = at_call(functional.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """3-D L_p pooling of (N, C, D, H, W) or (C, D, H, W); parameters as for `LPPool2d`."""

    _pool = at_call(functional.lp_pool3d)
