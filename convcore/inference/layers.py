"""The layers that an optimised net has in place of those that it was made of."""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.runtime.checks import Array
from convcore.functions._support.arguments import check_arguments, computed
from convcore.inference.fold import channels_last
from convcore.nn import Module

# The attribute of a result to which an activation was applied that others call, too: which layer
# is to pass it on, and the result's version at that time.
_ACTIVATED = "_activated"


class FixedConv(Module):
    """A convolution with what followed it: batch norm in its weights, an activation at its end.

    Parameters
    ----------
    weight : (C_out, C_in/G, *kernel)
    bias : (C_out,), or None
    steps : dict
        stride, padding, dilation, groups.
    activation : 'relu', 'relu6', ('leaky_relu', slope) or None
    shared : Module, optional
        The layer that the activation was, where it is called elsewhere, too.
    """

    def __init__(
        self,
        weight: Array,
        bias: Array | None,
        steps: dict[str, Any],
        activation: Activation,
        shared: Module | None = None,
    ) -> None:
        super().__init__()
        self._shared = (shared,)  # in a tuple it is no child
        self.steps, self.activation = steps, activation
        self.fixed = PrepackedConvolution(weight, bias, activation=activation, **steps)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.fixed.weight = channels_last(self.fixed.weight)  # pickles are contiguous

    def forward(self, input: Tensor) -> Tensor:
        """Return the activated convolution: (N, C_in, *sizes) to (N, C_out, *outs)."""
        check_arguments("conv", input=input)
        result = wrap(computed(self.fixed, input._array))
        if mode.enabled:
            record("PrepackedConvolutionBackward0", (input,), result, _no_backward)
            describe(result, layer=self)
        (shared,) = self._shared
        if shared is not None:
            setattr(result, _ACTIVATED, (shared, result._version))
        return result

    @property
    def terms(self) -> tuple[int, float, float, float]:
        """The activation, as kernels take it."""
        return activation_parameters(self.activation, self.fixed.weight.dtype) or (0, 0.0, 0.0, 0.0)

    def extra_repr(self) -> str:
        """Return what `repr` shows."""
        o, c, *kernel = self.fixed.weight.shape
        parts = [f"{c * self.steps['groups']}, {o}, kernel_size={tuple(kernel)}"]
        parts += [f"{name}={value}" for name, value in self.steps.items()]
        return ", ".join([*parts, f"activation={self.activation}"])


def _no_backward(needs: tuple[bool, ...], grad: Tensor) -> None:
    raise RuntimeError("an optimized model only runs; train the model that it was made of")


class Activated(Module):
    """An activation that passes on what was activated by the convolution before it.

    For one that a net calls in several places, not all of them after a convolution.
    """

    def __init__(self, activation: Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of each element."""
        layer, version = getattr(input, _ACTIVATED, (None, None))
        if layer is self.activation and version == input._version:
            delattr(input, _ACTIVATED)  # once: the layer may be called on its own result
            return input
        return self.activation(input)
