"""Instance normalization layers."""

from __future__ import annotations

import warnings
from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int | float,  # of a float nothing is made, unless affine or tracking
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features,  # type: ignore[arg-type]
            eps,
            momentum,
            affine,
            track_running_stats,
            device,
            dtype,
            bias=bias,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel of each sample of ``input``."""
        self._check_input_dim(input)
        axis = input.dim() - self._get_no_batch_dim()  # 0 without a batch
        if input.size(axis) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={axis} to match num_features "
                    f"({self.num_features}), but got: {input.size(axis)}."
                )
            warnings.warn(
                f"input's size at dim={axis} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if axis == 0:
            return self._normalized(input.unsqueeze(0)).squeeze(0)
        return self._normalized(input)

    def _get_no_batch_dim(self) -> int:
        """Return how many axes an input without a batch has; subclasses may override it."""
        return self.ranks[0]

    def _normalized(self, input: Tensor) -> Tensor:
        return functional.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L); the rest as `InstanceNorm2d`."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W): each channel of each image.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As for `BatchNorm2d`, but affine and track_running_stats are False by default.

    Raises
    ------
    ValueError
        In forward: an input of another rank, of another number of channels where there is a weight,
        or of one pixel.

    References
    ----------
    D. Ulyanov, A. Vedaldi, V. Lempitsky, "Instance normalization: the missing ingredient for fast
    stylization", 2016.

    Examples
    --------
    >>> import convcore
    >>> InstanceNorm2d(1, eps=1e-12)(convcore.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.,  1.]]])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W); see `InstanceNorm2d`."""

    ranks = (4, 5)
