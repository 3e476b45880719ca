"""optimize_for_inference: a net of the same results, in fewer passes over memory."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import no_grad
from convcore.engine.activation import Activation
from convcore.inference.agreement import agree, copy_of
from convcore.inference.fold import channels_last, folded
from convcore.inference.layers import Activated, FixedConv
from convcore.inference.planned import Plans
from convcore.inference.trace import Run, Trace

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU)


def optimize_for_inference(model: nn.Module, *example_inputs: Any) -> OptimizedModule:
    """Return a copy of a net that only runs, faster.

    Batch norms become part of the convolutions before them, and ReLU, ReLU6 and LeakyReLU after
    those are applied while outputs are in cache, as are sums with a shortcut.  Convolutions run in
    channels_last, and keep their weights in the order in which their kernels read them.

    For each of up to four kinds of input (a shape in a memory format) a plan is made at the first
    call: the list of kernels to call, on memory laid out before.  Later calls run that list, and
    no Python code of the net.

    Parameters
    ----------
    model : Module
        Stays as it is.  Its parameters are copied.
    *example_inputs
        What ``model`` takes, to see at once what follows what; or nothing, and the first call's
        inputs serve.

    Returns
    -------
    OptimizedModule
        Returns what ``model.eval()`` returns, to rounding: channels_last in memory, and without
        gradients.

    Raises
    ------
    TypeError
        model is no Module.

    Notes
    -----
    What follows what is read from the graph of gradients of one run, so operations between layers
    are seen wherever they are written; but a net that does something else for other inputs than
    the first must not let a convolution's result bypass its batch norm there.  A net that returns
    something else once its layers are fused, as it looks at their weights or at what is between
    them, keeps its layers as they are.

    A plan is made of one float32 tensor to another, of the operations that `inference/planner.py`
    knows, and does again what the net did at the first call with that kind of input.  There is none
    where the net looked at elements (``item``, ``if x.sum() > 0``) or any of its layers has hooks:
    then layers are called one by one, as they are where a plan makes something else of a second
    input (the first, reversed) than the net does.  Layers that are fused lose their hooks.  What is
    changed in the optimised net afterwards, weights or modes, plans do not see.

    Keeps up to four times the weights' bytes for each kind of input, and a plan's memory.

    Examples
    --------
    >>> import convcore
    >>> from convcore import nn
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
    >>> fast = optimize_for_inference(net, convcore.zeros(1, 3, 8, 8))
    >>> fast.model
    Sequential(
      (0): FixedConv(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=(1, 1), \
groups=1, activation=relu)
      (1): Identity()
      (2): Identity()
    )
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"optimize_for_inference(): argument 'model' must be Module, got {type(model).__name__}"
        )
    optimized = OptimizedModule(copy.deepcopy(model))
    if example_inputs:
        optimized.fuse(*example_inputs)
    return optimized


class OptimizedModule(nn.Module):
    """A net that only runs; `optimize_for_inference` makes it of one that may be trained.

    Attributes
    ----------
    model : Module
        The copy whose layers are fused at the first call.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model.eval()
        self._fused = False
        self._plans = Plans(self.model)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = threading.Lock()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the net returns."""
        if not self._fused and not kwargs:
            self.fuse(*args)
        if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
            array = self._plans.run(args[0])
            if array is not None:
                return wrap(array)
        with no_grad():
            return self.model(*args, **kwargs)

    def train(self, mode: bool = True) -> OptimizedModule:
        """Refuse training mode: nothing here has gradients."""
        if mode:
            raise RuntimeError("an optimized model only runs; train the model that it was made of")
        return super().train(False)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse other weights: these are in fused layers, in an order of their own."""
        raise RuntimeError(
            "an optimized model keeps its weights; load others into the model that it was made of, "
            "and optimize that"
        )

    def fuse(self, *args: Any) -> None:
        """Look at one run on these inputs, and put fused layers in place of what follows."""
        with self._lock:
            if self._fused:
                return
            for parameter in self.model.parameters():
                parameter.requires_grad_(parameter.is_floating_point())
            # Each run has inputs of its own, as nets may change them.
            trace = Trace(self.model, _copies(args), _CONVOLUTIONS + _NORMS + _ACTIVATIONS)
            layers = {id(layer): layer for layer in self.model.modules()}
            replaced: dict[int, nn.Module] = {}
            for run in trace.once():
                if _runs_as(run.layer, _CONVOLUTIONS):
                    replaced.update(_fused(trace, run))
            _replace(self.model, replaced)
            if not self._still_returns(trace.results, args):
                _replace(self.model, {id(new): layers[old] for old, new in replaced.items()})
            for parameter in self.model.parameters():
                parameter.requires_grad_(False)
            self._fused = True

    def _still_returns(self, results: Any, args: tuple[Any, ...]) -> bool:
        """Return whether the net with its fused layers returns what it returned before."""
        try:
            with no_grad():
                return agree(results, self.model(*_copies(args)))
        except Exception:  # of any kind: the net's own code looks for what is no longer there
            return False


def _copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments, with copies of those that are tensors."""
    return tuple(copy_of(one) if isinstance(one, Tensor) else one for one in args)


def _fused(trace: Trace, run: Run) -> dict[int, nn.Module]:
    """Return what stands in place of a convolution and of the layers after it, by their ids."""
    conv: Any = run.layer
    if conv.padding_mode != "zeros" or conv.weight._array.dtype == np.float16:
        return {}
    replaced: dict[int, nn.Module] = {}
    norm, activation = None, None
    after = trace.follower(run)
    if after and _is_fixed_norm(trace, after.layer):
        norm = after.layer
        replaced[id(norm)] = nn.Identity()
        after = trace.follower(after)
    shared = None
    if after and _runs_as(after.layer, _ACTIVATIONS):
        activation = _activation(after.layer)
        if activation is not None:
            shared = after.layer if trace.calls(after.layer) > 1 else None
            replaced[id(after.layer)] = nn.Identity() if shared is None else Activated(shared)
    weight = np.array(conv.weight._array)
    bias = None if conv.bias is None else np.array(conv.bias._array)
    weight, bias = folded(weight, bias, norm)
    steps = {name: getattr(conv, name) for name in ("stride", "padding", "dilation", "groups")}
    replaced[id(conv)] = FixedConv(channels_last(weight), bias, steps, activation, shared)
    return replaced


def _is_fixed_norm(trace: Trace, layer: Any) -> bool:
    return _runs_as(layer, _NORMS) and trace.calls(layer) == 1 and layer.running_mean is not None


def _runs_as(layer: Any, classes: tuple[type[nn.Module], ...]) -> bool:
    """Return whether a layer is of one of the classes, and computes what that class does."""
    own = getattr(layer.forward, "__func__", None)
    return any(isinstance(layer, one) and own is one.forward for one in classes)


def _activation(layer: Any) -> Activation:
    """Return what the engine calls an activation; None if it has it not."""
    if isinstance(layer, nn.ReLU6):
        return "relu6"
    if isinstance(layer, nn.ReLU):
        return "relu"
    # Of a negative slope the result does not tell on which side of 0 it was.
    return ("leaky_relu", layer.negative_slope) if layer.negative_slope >= 0 else None


def _replace(module: nn.Module, replaced: dict[int, nn.Module]) -> None:
    """Put other modules in place of some, wherever they stand."""
    # Not named_children: a module that has two names has to go by both.
    for name, child in module._modules.items():
        if id(child) in replaced:
            module._modules[name] = replaced[id(child)]
        elif child is not None:
            _replace(child, replaced)
