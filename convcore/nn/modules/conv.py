"""Convolutions and transposed convolutions as modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from convcore._errors import hinted
from convcore._tensor import Tensor
from convcore._tensor.creation import empty
from convcore.engine.geometry import Steps
from convcore.engine.integers import is_int
from convcore.nn import functional, init
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import _ntuple, at_call
from convcore.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of all convolutions: channels, sizes, a weight and maybe a bias.

    Attributes
    ----------
    weight : Parameter, (C_out, C_in/G, *kernel), transposed (C_in, C_out/G, *kernel)
    bias : Parameter, (C_out,), or None
    """

    rank: int  # number of spatial axes
    transposed = False
    _convolve: Callable[..., Tensor]

    def __init__(
        self,
        channels: tuple[int, int],
        kernel_size: Any,
        steps: Steps,
        output_padding: Any,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        stride, padding, dilation, groups = steps
        _check_channels(*channels, groups)
        self.in_channels, self.out_channels = channels
        self.kernel_size = self._sizes("kernel_size", kernel_size)
        self.stride = self._sizes("stride", stride)
        named = isinstance(padding, str)
        self.padding: Any = padding if named else self._sizes("padding", padding)
        self.dilation = self._sizes("dilation", dilation)
        self.output_padding = self._sizes("output_padding", output_padding)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check_padding()
        # (C_out, C_in/G, *kernel); transposed (C_in, C_out/G, *kernel)
        first, second = channels if self.transposed else channels[::-1]
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(*shape, dtype=dtype, device=device))
        if bias:
            self.bias = Parameter(empty(self.out_channels, dtype=dtype, device=device))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _sizes(self, name: str, given: Any) -> tuple[int, ...]:
        """Return an argument as one int an axis."""
        sizes = _ntuple(self.rank)(given)
        # PyTorch takes True for a kernel of one tap, and for nothing else.
        if not all(is_int(size) or (name == "kernel_size" and size is True) for size in sizes):
            raise TypeError(
                f"{type(self).__name__}(): argument '{name}' must be an int or a tuple of ints, "
                f"got {given!r}"
            )
        return sizes

    def _check_padding(self) -> None:
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {self.padding!r}, should be one of {{'valid', 'same'}}"
                )
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _PADDING_MODES:
            modes = ", ".join(map(repr, _PADDING_MODES))
            raise ValueError(
                f"padding_mode must be one of {{{modes}}}, but got padding_mode="
                f"'{self.padding_mode}'"
            )

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform within 1 / sqrt(C_in/G * kernel's size) of 0."""
        # With this slope the bound of the weight is that of the bias, in PyTorch's way of drawing.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)
            else:
                init.zeros_(self.bias)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self.rank, (1,) * self.rank
        defaults = {
            "padding": zeros,
            "dilation": ones,
            "output_padding": zeros,
            "groups": 1,
            "bias": True,
            "padding_mode": "zeros",
        }
        values = {name: getattr(self, name) for name in defaults} | {"bias": self.bias is not None}
        told = [f"{name}={value}" for name, value in values.items() if value != defaults[name]]
        sizes = [f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        return ", ".join([f"{self.in_channels}, {self.out_channels}", *sizes, *told])

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")  # states from before there were others


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise hinted(
                ValueError(f"{name} must be divisible by groups"),
                f"{name} is {channels}, groups is {groups}",
            )


class _Convolution(_ConvNd):
    """A convolution that is not transposed."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        channels = in_channels, out_channels
        steps = Steps(stride, padding, dilation, groups)
        super().__init__(channels, kernel_size, steps, 0, bias, padding_mode, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve ``input``, (N, C_in, *sizes) or (C_in, *sizes)."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with another weight and bias; subclasses that change them call this."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input = functional.pad(input, self._pads(), mode=self.padding_mode)
            padding = 0
        return self._convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def _pads(self) -> list[int]:
        """Return what is added before and after each axis, from the last axis to the first."""
        pads: list[int] = []
        for axis in reversed(range(self.rank)):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                pads += [total // 2, total - total // 2]
            else:
                pads += [0 if self.padding == "valid" else self.padding[axis]] * 2
        return pads


class Conv1d(_Convolution):
    """Convolve (N, C_in, L) or (C_in, L); parameters as for `Conv2d`, with one axis.

    Examples
    --------
    >>> import convcore
    >>> Conv1d(16, 33, 3, stride=2)(convcore.ones(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    rank = 1
    _convolve = at_call(functional.conv1d)


class Conv2d(_Convolution):
    """Convolve images: (N, C_in, H, W) to (N, C_out, OH, OW), or the same without N.

    OH = floor((H + 2*PH - DH*(KH - 1) - 1) / SH) + 1, with the kernel, stride, padding and
    dilation of the axis; OW likewise.

    Parameters
    ----------
    in_channels, out_channels : int
        Both multiples of ``groups``.
    kernel_size, stride, dilation : int, or one for H and one for W
    padding : int, one for H and one for W, 'same' or 'valid'
        What is added on both sides of an axis; 'same' keeps the size and needs a stride of 1.
    groups : int
        Into how many groups channels are divided that see nothing of each other.
    bias : bool
        Whether there is a number that is added to each output channel.
    padding_mode : 'zeros', 'reflect', 'replicate' or 'circular'
        What is added: zeros, the image mirrored, its last pixel, or the image from its other end.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, (C_out, C_in/G, KH, KW)
    bias : Parameter, (C_out,), or None

    Raises
    ------
    ValueError
        Channels are not divisible by groups, or padding or padding_mode is none of these.

    Examples
    --------
    >>> import convcore
    >>> layer = Conv2d(1, 4, kernel_size=1, bias=False)
    >>> layer
    Conv2d(1, 4, kernel_size=(1, 1), stride=(1, 1), bias=False)
    >>> layer(convcore.ones(1, 1, 5, 5)).shape
    torch.Size([1, 4, 5, 5])
    """

    rank = 2
    _convolve = at_call(functional.conv2d)


class Conv3d(_Convolution):
    """Convolve (N, C_in, D, H, W) or (C_in, D, H, W); parameters as for `Conv2d`, with three axes.

    Examples
    --------
    >>> import convcore
    >>> Conv3d(2, 3, (3, 1, 1), padding="same")(convcore.ones(1, 2, 4, 5, 6)).shape
    torch.Size([1, 3, 4, 5, 6])
    """

    rank = 3
    _convolve = at_call(functional.conv3d)


class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        if isinstance(padding, str):
            raise ValueError(f"padding of {type(self).__name__} must be numbers, got {padding!r}")
        channels = in_channels, out_channels
        steps = Steps(stride, padding, dilation, groups)
        super().__init__(
            channels, kernel_size, steps, output_padding, bias, padding_mode, device, dtype
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the layer to ``input``, (N, C_in, *sizes) or (C_in, *sizes).

        Parameters
        ----------
        input : Tensor
        output_size : sequence of int, optional
            The wanted sizes, with or without N and C_out; it takes the place of output_padding.

        Raises
        ------
        ValueError
            No output_padding gives ``output_size``.
        """
        output_padding = self.output_padding
        if output_size is not None:
            output_padding = self._output_padding(input, output_size)
        steps = self.stride, self.padding, output_padding, self.groups, self.dilation
        return self._convolve(input, self.weight, self.bias, *steps)

    def _output_padding(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output_padding that gives an output size."""
        rank = self.rank
        other_axes = 2 if input.dim() == rank + 2 else 1
        sizes = tuple(output_size)
        if len(sizes) == other_axes + rank:
            sizes = sizes[other_axes:]
        if len(sizes) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.dim()}D input, output_size must have {rank} or "
                f"{other_axes + rank} elements (got {len(sizes)})"
            )
        steps = self.stride, self.padding, self.dilation, self.kernel_size
        axes = zip(input.shape[other_axes:], *steps, strict=True)
        smallest = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in axes]
        largest = [size + s - 1 for size, s in zip(smallest, self.stride, strict=True)]
        missing = tuple(size - least for size, least in zip(sizes, smallest, strict=True))
        if any(not 0 <= m < s for m, s in zip(missing, self.stride, strict=True)):
            raise ValueError(
                f"requested an output size of {sizes}, but valid sizes range from {smallest} to "
                f"{largest} (for an input of {input.size()[2:]})"
            )
        return missing


class ConvTranspose1d(_ConvTransposeNd):
    """Transpose a convolution: (N, C_in, L) or (C_in, L); parameters as for `ConvTranspose2d`.

    Examples
    --------
    >>> import convcore
    >>> ConvTranspose1d(16, 33, 3, stride=2)(convcore.ones(20, 16, 50)).shape
    torch.Size([20, 33, 101])
    """

    rank = 1
    _convolve = at_call(functional.conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """Transpose a convolution: (N, C_in, H, W) to (N, C_out, OH, OW), or the same without N.

    OH = (H - 1)*SH - 2*PH + DH*(KH - 1) + OPH + 1, with the kernel, stride, padding, dilation and
    output padding of the axis; OW likewise. It is the pass that a `Conv2d` with the same sizes,
    from C_out to C_in channels, applies to gradients on their way back.

    Parameters
    ----------
    in_channels, out_channels, groups, bias, device, dtype
        As for `Conv2d`.
    kernel_size, stride, padding, dilation : int, or one for H and one for W
        Of the convolution that is transposed.
    output_padding : int, or one for H and one for W
        Rows and columns that are added at the end, fewer than the stride or the dilation: a
        convolution with a stride maps several sizes to one, and this says which it was.
    padding_mode : 'zeros'

    Attributes
    ----------
    weight : Parameter, (C_in, C_out/G, KH, KW)
    bias : Parameter, (C_out,), or None

    Raises
    ------
    ValueError
        Channels are not divisible by groups, or padding is no number or mode not 'zeros'.

    Examples
    --------
    >>> import convcore
    >>> layer = ConvTranspose2d(2, 3, 3, stride=2)
    >>> layer(convcore.ones(1, 2, 5, 5), output_size=(12, 11)).shape
    torch.Size([1, 3, 12, 11])
    """

    rank = 2
    _convolve = at_call(functional.conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """Transpose a convolution: (N, C_in, D, H, W); parameters as for `ConvTranspose2d`.

    Examples
    --------
    >>> import convcore
    >>> ConvTranspose3d(2, 3, 2)(convcore.ones(1, 2, 4, 5, 6)).shape
    torch.Size([1, 3, 5, 6, 7])
    """

    rank = 3
    _convolve = at_call(functional.conv_transpose3d)
