"""Layers of an optimised net: convolutions with prepacked weights, and what is folded into them."""

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
from convcore.inference.batch_norm_folding import channels_last, lost_filters, unfolded
from convcore.nn import Module
from convcore.nn.modules._hooks import has_global_hooks, hook_tables, is_watched

# Attribute of a convolution's result to which layers after it have been applied: those layers, and
# the result's version at that time. `Folded` returns such a result unchanged.
_APPLIED = "_applied"

# What nodes of ONNX graphs say of themselves: see `convcore.onnx.nodes.Node`.
_NAMES = ("onnx_name", "op_type", "description")

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

    Where hooks watch what is between these layers, it computes only what comes before, and the
    layers after it, `Folded`, compute the rest.

    Parameters
    ----------
    weight : (C_out, C_in/G, *kernel)
        With the batch norm folded in.
    bias : (C_out,), or None
    steps : dict
        stride, padding, dilation, groups.
    activation : 'relu', 'relu6', ('leaky_relu', slope) or None

    Attributes
    ----------
    needs_batch : bool
        Whether one picture without the axis of a batch is refused, as by the batch norm before.
    onnx_name, op_type, description : str
        Of the node of an ONNX graph that it replaces.
    replaces : type
        The class of the convolution.
    """

    replaces: type[Module] = Module
    needs_batch = False
    onnx_name = op_type = description = ""

    def __init__(
        self, weight: Array, bias: Array | None, steps: dict[str, Any], activation: Activation
    ) -> None:
        super().__init__()
        self.steps, self.activation = steps, activation
        self.prepacked = PrepackedConvolution(weight, bias, activation=activation, **steps)
        # In a tuple, so that they are not registered as children.
        self._after: tuple[Folded | None, Folded | None] = None, None
        self._unfolding: _Unfolding | None = None

    def replace(self, conv: Module, norm: Folded | None, activation: Folded | None) -> None:
        """Note the layers that it stands for: a convolution, and those folded into it."""
        self._after = norm, activation
        if norm is not None:
            self._unfolding = _Unfolding(conv, norm.layer)
        _take_names(self, conv)

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
        norm, activation = applied = self._applicable()
        # Not with NumPy's warnings off: that is another context, with other algorithms selected.
        try:
            if norm is self._after[0]:
                result = wrap(self.prepacked(input._array, activation is self._after[1]))
            else:
                result = wrap(self.alone()(input._array))
        except (AttributeError, TypeError, ValueError) as error:
            raise self._error(error, input) from None
        if mode.enabled:
            record("PrepackedConvolutionBackward0", (input,), result, _no_backward)
            describe(result, layer=self if applied == self._after else ConvPart(self, norm))
        if norm is not None or activation is not None:
            setattr(result, _APPLIED, (applied, result._counter[0]))
        return result

    def _applicable(self) -> tuple[Folded | None, Folded | None]:
        """Return the layers after the convolution that are applied with it: no hook is between."""
        norm, activation = self._after
        own = hook_tables(self)
        seen = (own["_forward_hooks"] and not own.get("are_hidden")) or has_global_hooks()
        if norm is not None:
            if seen or is_watched(norm):
                return None, None
        elif seen:
            return None, None
        if activation is not None and activation.sees_input():
            return norm, None
        return norm, activation

    def layers(self) -> list[Module]:
        """Return itself, for the convolution, and the layers that are fused into it."""
        return [self, *(one for one in self._after if one is not None)]

    def unfused(self) -> list[Folded]:
        """Return the layers after it that are not applied with it, for hooks watch."""
        return [one for one in self._after if one is not None and one not in self._applicable()]

    def alone(self) -> PrepackedConvolution:
        """Return the convolution without the batch norm, with weights as they were before it."""
        unfolding = self._unfolding
        return self.prepacked if unfolding is None else unfolding.of(self.prepacked, self.steps)

    def forget(self) -> None:
        """Drop packed and unfolded weights; later calls make them anew."""
        self.prepacked.forget()
        if self._unfolding is not None:
            self._unfolding.made = None

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


class _Unfolding:
    """What a convolution was before a batch norm was folded into it.

    Attributes
    ----------
    made : PrepackedConvolution or None
        The convolution alone, as long as it is in use.
    """

    def __init__(self, conv: Module, norm: Module) -> None:
        layer: Any = conv
        self._norm = norm
        self._bias = None if layer.bias is None else np.array(layer.bias._array)
        self._lost = lost_filters(layer.weight._array, norm)
        self.made: PrepackedConvolution | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made": None}

    def of(self, folded: PrepackedConvolution, steps: dict[str, Any]) -> PrepackedConvolution:
        """Return the convolution alone."""
        made = self.made
        if made is None:
            weight = unfolded(folded.weight, self._norm, self._lost)
            made = self.made = PrepackedConvolution(weight, self._bias, **steps)
        return made


class ConvPart:
    """The layers of a `PrepackedConv` without its activation, and without its batch norm if told.

    Attributes
    ----------
    conv : PrepackedConv
    norm : Folded or None
        The batch norm, if it is part of it.
    """

    activation = None
    activation_params = (0, 0.0, 0.0, 0.0)

    def __init__(self, conv: PrepackedConv, norm: Folded | None) -> None:
        self.conv, self.norm = conv, norm
        self.steps = conv.steps

    @property
    def prepacked(self) -> PrepackedConvolution:
        """The convolution, which may have to be unfolded."""
        conv = self.conv
        return conv.prepacked if self.norm is conv._after[0] else conv.alone()

    def layers(self) -> list[Module]:
        """Return the convolution's module, and the batch norm if it is part of it."""
        return [self.conv, *([] if self.norm is None else [self.norm])]

    @property
    def is_followed(self) -> bool:
        """Whether the activation is fused into it, where nobody watches."""
        return self.conv._after[1] is not None

    def shape(self, x: Any) -> tuple[int, ...]:
        """Return the result's shape, for an input or something else with its layout."""
        return self.conv.prepacked.plan(x.shape, x.strides, x.dtype).shape

    def computed(self, x: Tensor) -> Tensor:
        """Return the result; packed and unfolded weights are dropped."""
        y = wrap(self.prepacked(x._array, activated=False))
        self.conv.forget()
        return y

    def with_norm(self, norm: Any) -> ConvPart | None:
        """Return the part with the batch norm that was folded into the convolution, if it is."""
        is_next = self.norm is None and self.conv._after[0] is norm
        return ConvPart(self.conv, norm) if is_next else None


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


class Folded(Module):
    """A batch norm or activation that skips inputs to which the convolution before it applied it.

    Parameters
    ----------
    layer : Module

    Attributes
    ----------
    onnx_name, op_type, description : str
        Of the node of an ONNX graph that the layer is.
    replaces : type
        The layer's class.
    is_tried : bool
        Whether it skips all inputs: where that changes the net's results, layers are not fused.
    """

    replaces: type[Module] = Module
    is_tried = False

    onnx_name = op_type = description = ""

    def __init__(self, layer: Module) -> None:
        super().__init__()
        self._layer = (layer,)  # in a tuple, so that it is not registered as a child
        _take_names(self, layer)

    @property
    def layer(self) -> Any:
        """The layer itself."""
        return self._layer[0]

    def forward(self, input: Tensor) -> Tensor:
        """Return the layer's result, or ``input`` itself if the layer was already applied."""
        if self.is_tried:
            return input
        applied, version = getattr(input, _APPLIED, ((None, None), None))
        if self in applied and version == input._counter[0]:
            if self is applied[1]:  # once: an activation may be called on its own result
                delattr(input, _APPLIED)
            return input
        result = self.layer.forward(input)
        if result._grad_fn is not None:
            describe(result, **result._grad_fn.attributes, folded=self)
        return result

    def sees_input(self) -> bool:
        """Return whether hooks see what an activation is called on."""
        if getattr(self.layer, "inplace", False):  # forward hooks come when that is gone
            own = hook_tables(self)
            return bool(own["_forward_pre_hooks"]) and not own.get("are_hidden")
        return is_watched(self)

    def extra_repr(self) -> str:
        """Return the layer, as `repr` shows it."""
        return repr(self.layer)


def _take_names(replacing: Any, layer: Module) -> None:
    """Note the class of the layer that another one replaces, and a node's names if it is one."""
    replacing.replaces = type(layer)
    for name in _NAMES:
        if value := getattr(layer, name, ""):
            setattr(replacing, name, value)


def forget_packed(model: Module) -> None:
    """Drop the packed weights of a net's convolutions; those that a plan reads stay with it."""
    for layer in model.modules():
        if isinstance(layer, PrepackedConv):
            layer.forget()
