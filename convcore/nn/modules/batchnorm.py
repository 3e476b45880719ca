"""Batch normalization layers, and the base classes that all normalization layers share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from convcore import distributed
from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore._tensor.creation import ones, tensor, zeros
from convcore._tensor.dtypes import long
from convcore.distributed.group import resolve
from convcore.nn import functional, init
from convcore.nn.modules._synced import synced_batch_norm
from convcore.nn.modules.module import Module
from convcore.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class AffineNorm(Module):
    """A normalization layer with a weight of ones and a bias of zeros, or None."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(
        self, shape: Any, affine: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        weight = Parameter(ones(shape, dtype=dtype, device=device)) if affine else None
        self.register_parameter("weight", weight)
        offset = Parameter(zeros(shape, dtype=dtype, device=device)) if affine and bias else None
        self.register_parameter("bias", offset)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _NormBase(AffineNorm):
    """Weight, bias and running statistics of a number of channels.

    Attributes
    ----------
    weight, bias : Parameter, (num_features,), or None
    running_mean, running_var : Tensor, (num_features,), or None
    num_batches_tracked : Tensor of one int, or None
    """

    _version = 2
    ranks: tuple[int, ...]  # numbers of axes that an input may have
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    _printed_values = ("num_features",)
    _printed_attributes = ("eps", "momentum", "affine", "bias", "track_running_stats")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(num_features, affine, bias, device, dtype)
        self._make_statistics(dtype, device)
        self.reset_parameters()

    def _make_statistics(self, dtype: Any, device: Any) -> None:
        mean = var = count = None
        if self.track_running_stats:
            mean = zeros(self.num_features, dtype=dtype, device=device)
            var = ones(self.num_features, dtype=dtype, device=device)
            count = tensor(0, dtype=long, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Set the means to 0, the variances to 1 and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Reset the running statistics; set the weight to ones and the bias to zeros."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self.ranks:
            allowed = " or ".join(f"{rank}D" for rank in self.ranks)
            raise hinted(
                ValueError(f"expected {allowed} input (got {input.dim()}D input)"),
                hints.no_batch(input.dim(), allowed),
            )

    def _load_from_state_dict(
        self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any, **kwargs: Any
    ) -> None:
        # States of version 1 did not count batches.
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", self.num_batches_tracked)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args, **kwargs)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel of ``input``; in training, with the batch's own statistics."""
        return self._by(functional.batch_norm, input)

    def _by(self, function: Callable[..., Any], input: Tensor, *more: Any) -> Any:
        """Call `functional.batch_norm`, or a function with ``more`` arguments, on a batch.

        In training, the batch is counted; not if it is refused.
        """
        self._check_input_dim(input)
        follows = self.training and self.track_running_stats
        count = self.num_batches_tracked if follows else None
        momentum = self.momentum
        if momentum is None:
            momentum = 0.0 if count is None else 1.0 / max(float(count) + 1, 1)
        own = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        if count is not None:
            count.add_(1)
        try:
            return function(
                input,
                self.running_mean if tracked else None,
                self.running_var if tracked else None,
                self.weight,
                self.bias,
                own,
                momentum,
                self.eps,
                *more,
            )
        except BaseException:
            if count is not None:
                count.sub_(1)
            raise


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L); the rest as `BatchNorm2d`."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W): each channel over the batch and all pixels.

    y = (x - mean) / sqrt(variance + eps) * weight + bias, with the batch's mean and variance in
    training, and the running ones in evaluation.

    Parameters
    ----------
    num_features : int
        C.
    eps : float
        Added to the variance.
    momentum : float or None
        running = (1 - momentum) * running + momentum * batch's; None averages all batches.
    affine : bool
        Whether there are a weight and a bias.
    track_running_stats : bool
        Whether there are running statistics; without them, the batch's are used in evaluation too.
    device, dtype
        Of parameters and statistics.
    bias : bool
        Whether there is a bias.

    Raises
    ------
    ValueError
        In forward: an input of another rank, or of one value a channel in training.

    References
    ----------
    S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing
    internal covariate shift", ICML 2015.

    Examples
    --------
    >>> import convcore
    >>> layer = BatchNorm2d(2)
    >>> [*layer.state_dict()]
    ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W); the rest as `BatchNorm2d`."""

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes, in training; else of its own batch.

    Mean and variance are of all elements of a channel, wherever they are: with
    `DistributedDataParallel`, outputs and gradients are those of `BatchNorm2d` on the joined batch,
    also where parts differ in size or are empty. Where the wrapper trains in shards, statistics
    are a shard's.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        As in `BatchNorm2d`.
    process_group : ProcessGroup
        The processes; those of the default group by default.

    Raises
    ------
    ValueError
        In forward: an input of fewer than two axes, or of another number of channels; one value a
        channel in all processes, in training.

    Notes
    -----
    A forward pass in training gathers 2 num_features + 1 numbers of each process, a backward pass
    adds up as many. It is composed of elementwise functions, which take longer than `BatchNorm2d`.

    Examples
    --------
    >>> from convcore import nn
    >>> SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(2)))[0]
    SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    # What DistributedDataParallel says of its training: whether losses are weighed by the sizes of
    # batches, and whether a batch is a shard, which is computed as if alone.
    _weighed = False
    _alone = False

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = eps, momentum, affine, track_running_stats, device, dtype
        super().__init__(num_features, *options, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel; in training, with the statistics of all processes' batches."""
        if not self.training or self._alone or not distributed.is_initialized():
            return super().forward(input)
        group = resolve(self.process_group)
        if group.size() == 1:
            return super().forward(input)
        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"input must have {self.num_features} channels in axis 1, but has {input.shape[1]}"
            )
        return self._by(partial(synced_batch_norm, group, self._weighed), input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the module with all batch normalizations in it replaced by this class.

        Parameters and statistics stay the same objects.
        """
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            result = cls.__new__(cls)
            result.__dict__.update(module.__dict__)
            result.process_group = process_group
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
