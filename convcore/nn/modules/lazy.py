"""Lazy layers: the number of input channels is taken from the first input."""

from __future__ import annotations

import inspect
from typing import Any

from convcore._tensor import Tensor
from convcore._tensor.creation import tensor
from convcore._tensor.dtypes import long
from convcore.autograd.grad_mode import no_grad
from convcore.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from convcore.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    _ConvNd,
)
from convcore.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from convcore.nn.modules.linear import Linear
from convcore.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
]


class LazyModuleMixin:
    """What lazy modules have in common: hooks that give the parameters a shape.

    A module derives from this class first. It registers `UninitializedParameter` in ``__init__``,
    materializes them in ``initialize_parameters``, which takes the arguments of ``forward``, and
    becomes an instance of ``cls_to_become`` then.
    """

    cls_to_become: type | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(_materialize_to_load, True)
        self._initialize_hook = self.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters by the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Return whether a parameter or buffer of the module has no shape yet."""
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))


def _infer_parameters(module: Any, args: tuple, kwargs: dict) -> None:
    """Give the parameters a shape before the first forward pass; make the module a plain one."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _materialize_to_load(module: Any, state_dict: dict, prefix: str, *args: Any) -> None:
    """Give parameters the shapes that they have in a state that is loaded."""
    for name, param in (*module._parameters.items(), *module._buffers.items()):
        value = state_dict.get(prefix + name)
        if is_lazy(param) and isinstance(value, Tensor) and not is_lazy(value):
            with no_grad():
                param.materialize(value.shape)


class _Lazy(LazyModuleMixin):
    """A lazy layer of this library."""

    _size: str  # the attribute that is taken from the first input

    def reset_parameters(self: Any) -> None:
        """Set parameters and statistics to their first values, if they have a shape."""
        if not self.has_uninitialized_params() and getattr(self, self._size):
            super().reset_parameters()  # type: ignore[misc]


class LazyLinear(_Lazy, Linear):
    """A `Linear` whose ``in_features`` are those of its first input.

    Examples
    --------
    >>> import convcore
    >>> layer = LazyLinear(3)
    >>> layer(convcore.ones(2, 5)).shape, layer
    (torch.Size([2, 3]), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear
    _size = "in_features"
    weight: Any
    bias: Any

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters the shapes that go with ``input``."""
        self.in_features = self.in_features or input.shape[-1]  # a loaded state does not say it
        if not self.has_uninitialized_params():
            return
        with no_grad():
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class _LazyConvNd(_Lazy, _ConvNd):
    """A convolution whose ``in_channels`` are those of its first input."""

    _size = "in_channels"
    weight: Any
    bias: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take the arguments of the convolution that it becomes, but for in_channels."""
        super().__init_subclass__(**kwargs)
        _, *rest = inspect.signature(cls.cls_to_become).parameters.values()  # type: ignore[arg-type]
        signature = inspect.Signature(rest)

        def initialize(self: _LazyConvNd, *args: Any, **kwargs: Any) -> None:
            self._initialize(**signature.bind(*args, **kwargs).arguments)

        one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        initialize.__signature__ = inspect.Signature([one, *rest])  # type: ignore[attr-defined]
        cls.__init__ = initialize  # type: ignore[method-assign]

    def _initialize(self, out_channels: int, **options: Any) -> None:
        made: dict[str, Any] = {name: options.get(name) for name in ("device", "dtype")}
        bias = options.pop("bias", True)
        super().__init__(0, 0, **options, bias=False)
        self.weight = UninitializedParameter(**made)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(**made)

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give the parameters the shapes that go with ``input``."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        channels = self.in_channels, self.out_channels
        first, second = channels if self.transposed else channels[::-1]
        with no_grad():
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        if input.dim() not in (self.rank + 1, self.rank + 2):
            raise RuntimeError(
                f"Expected {self.rank + 1}D (unbatched) or {self.rank + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-self.rank - 1]


class LazyConv1d(_LazyConvNd, Conv1d):
    """A `Conv1d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvNd, Conv2d):
    """A `Conv2d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvNd, Conv3d):
    """A `Conv3d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvNd, ConvTranspose1d):
    """A `ConvTranspose1d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvNd, ConvTranspose2d):
    """A `ConvTranspose2d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvNd, ConvTranspose3d):
    """A `ConvTranspose3d` without the argument ``in_channels``: those of the first input."""

    cls_to_become = ConvTranspose3d


class _LazyNormBase(_Lazy, _NormBase):
    """A normalization whose ``num_features`` are the channels of its first input."""

    _size = "num_features"

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**made)
            self.bias = UninitializedParameter(**made) if bias else None
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**made)
            self.running_var = UninitializedBuffer(**made)
            self.num_batches_tracked = tensor(0, dtype=long)

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and statistics the shape that goes with ``input``."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        members: Any = (self.weight, self.bias, self.running_mean, self.running_var)
        for member in members:
            if is_lazy(member):
                member.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A `BatchNorm1d` without the argument ``num_features``: those of the first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A `BatchNorm2d` without the argument ``num_features``: those of the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A `BatchNorm3d` without the argument ``num_features``: those of the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An `InstanceNorm1d` without the argument ``num_features``: those of the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An `InstanceNorm2d` without the argument ``num_features``: those of the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An `InstanceNorm3d` without the argument ``num_features``: those of the first input."""

    cls_to_become = InstanceNorm3d
