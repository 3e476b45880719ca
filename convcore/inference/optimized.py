"""optimize_for_inference: a copy of a net with fused layers, prepacked weights and plans."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from convcore import nn
from convcore._errors import hinted, replace_hint
from convcore._errors.calls import hinting
from convcore._errors.frames import is_from_signal_handler
from convcore._errors.hints import not_a_module
from convcore._tensor import Tensor
from convcore._tensor.dtypes import bfloat16, dtype, float16
from convcore.amp.autocast_mode import autocast, is_autocast_cpu_enabled
from convcore.autograd.grad_mode import inference_mode, no_grad
from convcore.engine.conv.epilogue import Activation
from convcore.engine.conv.selection import selected
from convcore.engine.runtime import memory
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.inference.batch_norm_folding import channels_last, folded
from convcore.inference.hidden_runs import HiddenRun, UnrepeatableError
from convcore.inference.layer_trace import DifferentiatedError, Run, Trace
from convcore.inference.layers import (
    Folded,
    PrepackedConv,
    forget_packed,
    refuse_to_convert,
    refuse_to_save,
)
from convcore.inference.plan_cache import PlanCache, differentiable
from convcore.inference.validation import agree, copy_of, differences
from convcore.nn.modules._hooks import is_watched

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU)


@hinting
def optimize_for_inference(
    model: nn.Module, *example_inputs: Any, precision: str | None = None, inplace: bool = False
) -> OptimizedModule:
    """Return a copy of a net for inference only, which runs faster.

    Batch norms are folded into the convolutions before them.  ReLU, ReLU6 and LeakyReLU after
    those, and sums with a shortcut, are fused into the convolution's epilogue.  Convolutions run
    in channels_last with prepacked weights.

    For each kind of input (a shape in a memory format) a plan is made at the first call: a list of
    kernel calls on memory that is laid out beforehand.  Later calls run that list, and none of the
    net's Python code.  The bits of a result depend on its input alone, not on earlier calls.

    Parameters
    ----------
    model : Module
        In training mode or not: a copy is put into evaluation mode, as ``torch.jit``'s function of
        this name does with the net itself.  The net stays as it is, and its parameters are copied.
    *example_inputs
        Inputs of ``model``, to fuse layers at once; without them the first call's inputs serve.
    precision : {'bf16'}, optional
        Keep what lies between layers as bfloat16, in half the memory: each result is computed in
        float32 and rounded once.  And multiply in bfloat16 where that is faster, whatever
        `convcore.backends.conv` says at a call: weights are packed as bfloat16, sums are float32's.
        Inputs and results stay float32.  The attributes ``difference`` and ``mean_difference`` then
        tell what it cost for the inputs of the first call.  By default nothing is rounded, but for
        products where the switches in force at a call say so.
    inplace : bool
        Take ``model`` itself instead of a copy, which saves memory for a second copy of its
        weights on the way: it is put into evaluation mode, loses its fused layers, and its
        parameters no longer require gradients.

    Returns
    -------
    OptimizedModule
        Returns what ``model.eval()`` returns, up to rounding, in channels_last and without
        gradients.

    Raises
    ------
    TypeError
        model is not a Module.
    ValueError
        Another precision.

    Notes
    -----
    Which layer follows which is read from the autograd graph of one run.  A net with control flow
    must not, for other inputs, use a convolution's result without the batch norm that was folded
    into it.  If the net's results change when its layers are fused, for instance because it reads
    their weights, its layers stay as they are.

    A plan is from one float32 tensor to another, or to a tuple or list of them, of the ops in
    `inference/lowering.py`, and repeats what the net did at the first call with that kind of input.
    Layers are called one by one, without a plan, if the net read elements (``item``, ``if x.sum() >
    0``), if its code has a state, or if plan and net differ on a second input (the first one,
    reversed).  Plans do not see later changes of the optimised net's weights, other tensors or
    modes.

    Forward hooks of the layers (``.model`` has them), `inspection.capture` and `inspection.patch`
    see the values of the net that was optimised, layer by layer, and may change them.  Meanwhile
    another plan runs, which is cut at the values that are watched; ``unfused`` names the layers
    that had to be computed alone.  Without the hooks the plan from before runs.  The layers are
    called one by one if there are global hooks, hooks of backward passes or hooks that are called
    always, or if a hook returns a value of another shape or dtype: then it is called twice, once.

    A net has a state if a call changes a buffer, a parameter, an attribute, a variable of a closure
    or of a module, or a random generator, or prints, uses a file or asks for the time.  Such a net
    is called exactly as often as the optimised net is: fusing and planning run the net's code too,
    but restore the state, and end a run before it prints.  What code in other threads, or compiled
    by other packages, changes is not seen.

    Autocast does not reach it: what an optimised net computes in does not depend on how it was
    called first, and ``precision='bf16'`` is the way to fewer bits.

    Layers that have hooks when layers are fused, at the first call, stay as they are.

    ``state_dict`` is refused, as weights are no longer what they were: save the net's own, and
    optimise it again after loading.  So are conversions (``half``, ``to``) to another dtype or
    device: convert the net before.  ``convcore.save`` of the optimised net itself keeps it whole,
    for ``convcore.load(file, weights_only=False)``.

    With ``precision='bf16'`` results of a plan's convolutions (direct, Winograd's, depthwise,
    transposed), max pools and concatenations are bfloat16 in memory where all that reads them is
    one of these or a sum; others are float32.  Layers that are called one by one, as in a capture,
    exchange float32.

    Memory: up to four times the weights' bytes for each of the last four kinds of input, and a
    plan's memory.  A plan that was dropped is made again of what the net did, without its code.

    Examples
    --------
    >>> import convcore
    >>> from convcore import nn
    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).eval()
    >>> fast = convcore.optimize_for_inference(net, convcore.zeros(1, 3, 8, 8))
    >>> fast.model
    Sequential(
      (0): PrepackedConv(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=(1, 1), \
groups=1, activation=relu)
      (1): Folded(BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, \
track_running_stats=True))
      (2): Folded(ReLU())
    )
    """
    if not isinstance(model, nn.Module):
        given = type(model).__name__
        raise hinted(
            TypeError(f"optimize_for_inference(): argument 'model' must be Module, got {given}"),
            not_a_module(model),
        )
    if precision not in (None, "bf16"):
        raise ValueError(
            f"optimize_for_inference(): precision must be None or 'bf16', got {precision!r}"
        )
    optimized = OptimizedModule(model if inplace else _copy_of_net(model), precision)
    if example_inputs:
        try:
            optimized.fuse(*example_inputs)
        except Exception as error:
            if hint := _misplaced(example_inputs[0]):
                replace_hint(error, hint)
            raise
    return optimized


def _misplaced(first: Any) -> str:
    """Say how what stands first after the net is given, where the net does not take it."""
    if isinstance(first, tuple | list):
        return "inputs stand one by one, as in a call of the net: optimize_for_inference(model, x)"
    if isinstance(first, str | dtype):
        return "bfloat16 has a keyword: optimize_for_inference(model, precision='bf16')"
    return ""


def _copy_of_net(model: nn.Module) -> nn.Module:
    """Return a copy of a net, also of one that keeps computed tensors, as weight_norm's do."""
    with inference_mode(False):
        values = (value for layer in model.modules() for value in layer.__dict__.values())
        computed = [one for one in values if isinstance(one, Tensor) and not one.is_leaf]
        return copy.deepcopy(model, {id(one): one.detach().clone() for one in computed})


class OptimizedModule(nn.Module):
    """An inference-only net, made by `optimize_for_inference`.

    Attributes
    ----------
    model : Module
        The copy of the net; its layers are fused at the first call.
    difference : float or None
        With ``precision='bf16'``, how far the results of the first inputs lie from float32's at
        most, over the largest element; None before, and without.
    mean_difference : float or None
        The same on average.
    unfused : list of str
        The layers that were computed alone in the last call, for hooks.

    Notes
    -----
    Printed, it says how many of the net's convolutions are fused and prepacked, and which layers
    were not fused in the last call.  Not fused is what runs under `no_grad` inside the net's own
    ``forward``, or more than once in it.
    """

    def __init__(self, model: nn.Module, precision: str | None = None) -> None:
        super().__init__()
        self.model = model
        self.eval()
        self.difference: float | None = None
        self.mean_difference: float | None = None
        self._precision = precision
        self._fused = False
        self._n_convolutions = _count(self.model, _CONVOLUTIONS)
        self._plans = PlanCache(self.model, narrow=precision is not None)
        self._lock = process_lock()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            inside = self.__dict__.get("_modules", {}).get("model")
            if inside is not None and hasattr(inside, name):
                hinted(error, f"the net itself is .model: .model.{name}")
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._lock = process_lock()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the net's result, by a plan if there is one; autocast is off meanwhile."""
        if is_autocast_cpu_enabled():
            with autocast("cpu", enabled=False):
                return self.forward(*args, **kwargs)
        if self._precision is not None:
            with selected(precision=self._precision, matmul=self._precision):
                return self._run(args, kwargs)
        return self._run(args, kwargs)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._fused and not kwargs:
            self.fuse(*args)
        if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):
            result = self._plans.run(args[0])
            if result is not None:
                return result
        with no_grad():
            return self.model(*args, **kwargs)

    @property
    def unfused(self) -> list[str]:
        """The names of batch norms and activations that the last call computed alone.

        Hooks, or an `inspection.capture`, watched what was between them and the convolution that
        computes them otherwise.
        """
        alone = self._plans.unfused
        if alone is None:
            convs = [layer for layer in self.model.modules() if isinstance(layer, PrepackedConv)]
            alone = [one for conv in convs for one in conv.unfused()]
        return [name for name, layer in self.model.named_modules() if layer in alone]

    def extra_repr(self) -> str:
        """Return how much of the net is fused."""
        if not self._fused:
            return "fuses its convolutions at the first call"
        told = f"{_count(self.model, PrepackedConv)} of {self._n_convolutions} convolutions fused"
        alone = self.unfused
        return f"{told}, {', '.join(alone)} computed alone for hooks" if alone else told

    def train(self, mode: bool = True) -> OptimizedModule:
        """Refuse training mode: nothing here has gradients."""
        if mode:
            raise RuntimeError("an optimized model only runs; train the model that it was made of")
        return super().train(False)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse other weights: these are folded and prepacked."""
        raise RuntimeError(
            "an optimized model keeps its weights; load others into the model that it was made of, "
            "and optimize that"
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        refuse_to_save()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> OptimizedModule:
        layers = list(self.model.modules())
        packed = [one.prepacked.weight for one in layers if isinstance(one, PrepackedConv)]
        kept = [one._array for one in (*self.model.parameters(), *self.model.buffers())]
        # All of them first: a layer that refuses would leave those before it converted.
        refuse_to_convert(fn, {array.dtype for array in (*packed, *kept)})
        return super()._apply(fn, recurse)

    def fuse(self, *args: Any) -> None:
        """Trace one run on these inputs, and fuse convolutions with the layers after them."""
        with self._lock:
            if self._fused:
                return
            exact = None
            # In float32, whatever later calls are in: folded weights are rounded to others.
            # And outside inference mode, in which no graph is recorded.
            with (
                selected(precision="none", matmul="none"),
                autocast("cpu", enabled=False),
                inference_mode(False),
                contextlib.suppress(UnrepeatableError),
            ):
                exact = self._fuse(args)
            self._fused = True
            if self._precision is not None and exact is not None:
                forget_packed(self.model)
                with contextlib.suppress(UnrepeatableError), HiddenRun(self.model):
                    found = differences(exact, self.forward(*_copies(args)))
                    self.difference, self.mean_difference = found
        memory.empty_cache()  # of the runs, which took more than later ones

    def _fuse(self, args: tuple[Any, ...]) -> Any:
        """Fuse layers unless that changes what the net returns; return that."""
        layers = {id(layer): layer for layer in self.model.modules()}
        replaced: dict[int, nn.Module] = {}
        with differentiable(self.model):
            trace = self._traced(args)
            for run in trace.once():
                if _runs_as(run.layer, _CONVOLUTIONS):
                    replaced.update(_fused(trace, run, replaced))
            own = {id(new): layers[old] for old, new in replaced.items()}
            confirmed: list[bool] = []
            folded = [layer for layer in replaced.values() if isinstance(layer, Folded)]
            for layer in folded:
                layer.is_tried = trace.calls(layer.layer) == 1
            with _tried(self.model, replaced, own, confirmed):
                if self._still_returns(trace.results, args):
                    confirmed.append(True)
            for layer in folded:
                layer.is_tried = False
        return trace.results

    def _traced(self, args: tuple[Any, ...]) -> Trace:
        """Return the trace of one run."""
        layers = _CONVOLUTIONS + _NORMS + _ACTIVATIONS
        # Each run gets copies of the inputs, as nets may change them in place.
        for keep in (False, True):
            run = HiddenRun(self.model)
            try:
                with run:
                    trace = Trace(self.model, _copies(args), layers, keep)
            except UnrepeatableError:
                self._plans.forbid()
                raise
            except DifferentiatedError:
                continue
            if not run.is_pure:
                self._plans.forbid()
            return trace
        raise AssertionError("the second run keeps what gradients need")

    def _still_returns(self, results: Any, args: tuple[Any, ...]) -> bool:
        """Return whether the net with fused layers returns what it returned before."""
        try:
            with no_grad(), HiddenRun(self.model):
                return agree(results, self.model(*_copies(args)))
        except Exception as error:  # of any kind: the net's own code may use what was replaced
            if is_from_signal_handler(error):
                raise
            return False


@restoring
def _tried(
    model: nn.Module,
    replaced: dict[int, nn.Module],
    own: dict[int, nn.Module],
    confirmed: list[bool],
) -> Iterator[Calls]:
    """Replace layers; put the net's own back at the end of the block, unless it confirms."""

    def undo() -> None:
        if not confirmed:
            _replace(model, own)

    yield ((undo, ()),)
    _replace(model, replaced)


def _copies(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments, with copies of those that are tensors."""
    return tuple(copy_of(one) if isinstance(one, Tensor) else one for one in args)


def _fused(trace: Trace, run: Run, before: dict[int, nn.Module]) -> dict[int, nn.Module]:
    """Return the replacements of a convolution and of the layers fused into it, by their ids.

    before : the replacements of other layers, among which are shared activations
    """
    conv: Any = run.layer
    if conv.padding_mode != "zeros" or conv.weight.dtype in (float16, bfloat16):
        return {}
    if is_watched(conv):  # its hooks see it called
        return {}
    replaced: dict[int, Any] = {}
    norm, activation, activated = None, None, None
    after = trace.follower(run)
    if after and _can_fold(trace, after.layer):
        norm = after.layer
        replaced[id(norm)] = Folded(norm)
        after = trace.follower(after)
    if after and _runs_as(after.layer, _ACTIVATIONS) and not is_watched(after.layer):
        activation = _activation(after.layer)
        if activation is not None:
            place = id(after.layer)
            known = before.get(place)
            activated = known if isinstance(known, Folded) else Folded(after.layer)
            replaced[place] = activated
    bias = None if conv.bias is None else np.array(conv.bias._array)
    weight, bias = folded(conv.weight._array, bias, norm)
    steps = {name: getattr(conv, name) for name in ("stride", "padding", "dilation", "groups")}
    made = PrepackedConv(channels_last(weight), bias, steps, activation)
    made.replace(conv, replaced.get(id(norm)), activated)
    made.needs_batch = isinstance(norm, nn.BatchNorm2d | nn.BatchNorm3d)
    replaced[id(conv)] = made
    return replaced


def _can_fold(trace: Trace, layer: Any) -> bool:
    alone = trace.calls(layer) == 1 and not is_watched(layer)
    return _runs_as(layer, _NORMS) and alone and layer.running_mean is not None


def _count(model: nn.Module, kinds: Any) -> int:
    return sum(isinstance(layer, kinds) for layer in model.modules())


def _runs_as(layer: Any, classes: tuple[type[nn.Module], ...]) -> bool:
    """Return whether a layer is of one of the classes, and computes what that class does."""
    own = getattr(layer.forward, "__func__", None)
    return any(isinstance(layer, one) and own is one.forward for one in classes)


def _activation(layer: Any) -> Activation:
    """Return the engine's name of an activation; None if a convolution cannot apply it."""
    if isinstance(layer, nn.ReLU6):
        return "relu6"
    if isinstance(layer, nn.ReLU):
        return "relu"
    # With a negative slope, the result does not tell which side of 0 the input was on.
    return ("leaky_relu", layer.negative_slope) if layer.negative_slope >= 0 else None


def _replace(module: nn.Module, replaced: dict[int, nn.Module]) -> None:
    """Replace submodules, by id, wherever they occur."""
    # Not named_children, which yields a module with two names only once.
    for name, child in module._modules.items():
        if id(child) in replaced:
            module._modules[name] = replaced[id(child)]
        elif child is not None:
            _replace(child, replaced)
