"""Layers of an optimised net: convolutions with prepacked weights, and shared activations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from convcore._errors import hinted
from convcore._errors.hints import no_batch
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import describe, record
from convcore.engine.conv.epilogue import Activation, activation_parameters
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.geometry import Steps
from convcore.engine.runtime.checks import Array
from convcore.functions._support.conv_checks import conv_error
from convcore.inference.batch_norm_folding import channels_last
from convcore.nn import Module

# Attribute of a result to which a shared activation layer has been applied: that layer, and the
# result's version at that time. The layer returns such a result unchanged.
_ACTIVATED = "_activated"

_NOT_SAVED = (
    "an optimized model has no state to save: its weights are folded and prepacked. Save the "
    "state_dict() of the model that it was made of, before optimize_for_inference with inplace=True"
)

_NOT_CONVERTED = (
    "an optimized model keeps its dtype and device: its weights are folded and prepacked. Convert "
    "the model that it was made of, before optimize_for_inference"
)


class PrepackedConv(Module):
    """A convolution with prepacked weights, the batch norm after it folded in, and an activation.

    Parameters
    ----------
    weight : (C_out, C_in/G, *kernel)
    bias : (C_out,), or None
    steps : dict
        stride, padding, dilation, groups.
    activation : 'relu', 'relu6', ('leaky_relu', slope) or None
    shared : Module, optional
        The activation's layer, if the net calls it elsewhere, too.

    Attributes
    ----------
    needs_batch : bool
        Whether one picture without the axis of a batch is refused, as by the batch norm before.
    """

    needs_batch = False

    def __init__(
        self,
        weight: Array,
        bias: Array | None,
        steps: dict[str, Any],
        activation: Activation,
        shared: Module | None = None,
    ) -> None:
        super().__init__()
        self._shared = (shared,)  # in a tuple, so that it is not registered as a child
        self.steps, self.activation = steps, activation
        self.prepacked = PrepackedConvolution(weight, bias, activation=activation, **steps)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Unpickled arrays are contiguous.
        self.prepacked.weight = channels_last(self.prepacked.weight)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        refuse_to_save()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> PrepackedConv:
        refuse_to_convert(fn, [self.prepacked.weight.dtype])
        return super()._apply(fn, recurse)

    def forward(self, input: Tensor) -> Tensor:
        """Return the activated convolution: (N, C_in, *sizes) to (N, C_out, *outs)."""
        rank = getattr(input, "ndim", None)
        if self.needs_batch and rank == self.prepacked.weight.ndim - 1:
            allowed = f"{rank + 1}D"
            error = ValueError(f"expected {allowed} input (got {rank}D input)")
            raise hinted(error, no_batch(rank, allowed))
        # Not with NumPy's warnings off: that is another context, with other algorithms selected.
        try:
            result = wrap(self.prepacked(input._array))
        except (AttributeError, TypeError, ValueError) as error:
            raise self._error(error, input) from None
        if mode.enabled:
            record("PrepackedConvolutionBackward0", (input,), result, _no_backward)
            describe(result, layer=self)
        (shared,) = self._shared
        if shared is not None:
            setattr(result, _ACTIVATED, (shared, result._counter[0]))
        return result

    def _error(self, cause: Exception, input: Any) -> Exception:
        """Return the error that a convolution raises for this input."""
        weight, bias = self.prepacked.weight, self.prepacked.bias
        names = ("stride", "padding", "dilation", "groups")
        return conv_error(
            f"conv{weight.ndim - 2}d",
            cause,
            input,
            wrap(weight),
            None if bias is None else wrap(bias),
            Steps(**{name: self.steps[name] for name in names}),
        )

    @property
    def activation_params(self) -> tuple[int, float, float, float]:
        """The activation as kernels take it: (kind, low, high, slope)."""
        dtype = self.prepacked.weight.dtype
        return activation_parameters(self.activation, dtype) or (0, 0.0, 0.0, 0.0)

    def extra_repr(self) -> str:
        """Return the settings that `repr` shows."""
        o, c, *kernel = self.prepacked.weight.shape
        parts = [f"{c * self.steps['groups']}, {o}, kernel_size={tuple(kernel)}"]
        parts += [f"{name}={value}" for name, value in self.steps.items()]
        return ", ".join([*parts, f"activation={self.activation}"])


def refuse_to_save() -> NoReturn:
    """Raise the error of a state_dict, which would lack the weights that are prepacked."""
    raise RuntimeError(_NOT_SAVED)


def refuse_to_convert(fn: Callable[[Tensor], Tensor], dtypes: Iterable[np.dtype]) -> None:
    """Raise RuntimeError if ``fn`` makes other tensors of those of the dtypes.

    A conversion would reach parameters, but neither prepacked weights nor plans.
    """
    for dtype in dtypes:
        # Of one axis, as a memory format changes only how those of four lie.
        sample = wrap(np.zeros(1, dtype))
        if fn(sample) is not sample:
            raise RuntimeError(_NOT_CONVERTED)


def _no_backward(needs: tuple[bool, ...], grad: Tensor) -> None:
    raise RuntimeError("an optimized model only runs; train the model that it was made of")


class Activated(Module):
    """An activation that skips inputs to which the convolution before it has applied it.

    For a layer that a net calls in several places, not all of them after a convolution.
    """

    def __init__(self, activation: Module) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, input: Tensor) -> Tensor:
        """Return the activation of each element, or ``input`` itself if it is already activated."""
        layer, version = getattr(input, _ACTIVATED, (None, None))
        if layer is self.activation and version == input._counter[0]:
            delattr(input, _ACTIVATED)  # once: the layer may be called on its own result
            return input
        return self.activation(input)


def forget_packed(model: Module) -> None:
    """Drop the packed weights of a net's convolutions; those that a plan reads stay with it."""
    for layer in model.modules():
        if isinstance(layer, PrepackedConv):
            layer.prepacked.forget()
