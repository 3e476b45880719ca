"""The boundary that full backward hooks watch: two nodes around what a module computes.

One node stands between the module's inputs and what `forward` receives, another between what
`forward` returned and what the caller gets. Both pass gradients on unchanged. The gradients that
reach the second are the module's grad_output; those that reach the first, its grad_input.

Tensors on the two sides of a node are views of each other: an in-place operation inside the module
changes what is outside, as it does without hooks, and all of them keep the right history.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from convcore._errors.frames import users_frame
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import is_grad_enabled
from convcore.autograd.views import aliases

if TYPE_CHECKING:
    from convcore.nn.modules.module import Module

_NODE = "BackwardHookFunctionBackward"  # what PyTorch prints


class Boundary:
    """The full backward hooks of one call of a module, and the gradients that they receive.

    Parameters
    ----------
    module : Module
    before : sequence of callable(module, grad_output)
        Called when the gradients of the outputs have been computed; may replace them.
    after : sequence of callable(module, grad_input, grad_output)
        Called when the gradients of the inputs have been computed; may replace them.
    """

    __slots__ = ("after", "before", "grad_outputs", "input_kinds", "module", "watches_inputs")

    def __init__(self, module: Module, before: Sequence[Callable], after: Sequence[Callable]):
        self.module = module
        self.before = before
        self.after = after
        self.grad_outputs: tuple | None = None
        self.input_kinds: list = []
        self.watches_inputs = False

    def enter(self, args: tuple) -> tuple:
        """Put the first node behind the inputs; return the arguments for `forward`."""
        self.input_kinds = [_kind(arg) if isinstance(arg, Tensor) else None for arg in args]
        places = _with_gradient(args)
        if not places:
            return args
        self.watches_inputs = True
        args, node = _split(args, places)

        def hook(grad_inputs: tuple, _: tuple) -> tuple | None:
            return self.inputs_ready(places, grad_inputs)

        node.register_hook(hook)
        return args

    def leave(self, result: Any) -> Any:
        """Put the second node behind the outputs; return the module's result."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
            return result
        results = result if isinstance(result, tuple) else (result,)
        places = _with_gradient(results)
        if not places:
            return result
        results, node = _split(results, places)
        n_outputs = len(results)  # the hook must not hold the results, whose graph holds it

        def hook(_: tuple, grad_outputs: tuple) -> tuple:
            return self.outputs_ready(places, grad_outputs, n_outputs)

        node.register_hook(hook)
        return results if isinstance(result, tuple) else results[0]

    def outputs_ready(self, places: list[int], grads: tuple, n_outputs: int) -> tuple:
        """Call the pre-hooks with grad_output, and store it for the hooks."""
        grad_outputs = _expand(places, grads, n_outputs)
        for hook in self.before:
            answer = hook(self.module, grad_outputs)
            if answer is not None:
                _check_number("pre hook", "grad_output", answer, n_outputs)
                grad_outputs = answer
        if self.watches_inputs:
            self.grad_outputs = grad_outputs
        else:
            self.run_without_inputs(grad_outputs)
        return tuple(grad_outputs[place] for place in places)

    def inputs_ready(self, places: list[int], grads: tuple) -> tuple | None:
        """Call the hooks with grad_input and grad_output; they may replace grad_input."""
        grad_outputs, self.grad_outputs = self.grad_outputs, None
        if grad_outputs is None:
            return None  # these gradients did not come through the module, as in double backward
        n_inputs = len(self.input_kinds)
        grad_inputs = _with_zeros(_expand(places, grads, n_inputs), self.input_kinds)
        for hook in self.after:
            answer = hook(self.module, grad_inputs, grad_outputs)
            if answer is not None:
                _check_number("hook", "grad_input", answer, n_inputs)
                grad_inputs = answer
        if all(grad is None for grad in grads):
            return None  # nothing came this far, so there is nothing to replace
        return tuple(grad_inputs[place] for place in places)

    def run_without_inputs(self, grad_outputs: tuple) -> None:
        """Call the hooks of a module none of whose inputs requires a gradient."""
        if not self.after:
            return
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. Such a hook sees grad_output, and None "
            "for every grad_input.",
            stacklevel=users_frame()[1],
        )
        for hook in self.after:
            answer = hook(self.module, (None,) * len(self.input_kinds), grad_outputs)
            if answer is not None and not (
                isinstance(answer, tuple) and all(part is None for part in answer)
            ):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )


def _check_number(hook: str, grads: str, answer: Sequence, expected: int) -> None:
    if len(answer) != expected:
        raise RuntimeError(
            f"Backward {hook} returned an invalid number of {grads}, got {len(answer)}, "
            f"but expected {expected}"
        )


def _with_gradient(values: tuple) -> list[int]:
    """Return the indices of tensors that require a gradient; nested ones are not looked for."""
    if not is_grad_enabled():
        return []
    return [
        place
        for place, value in enumerate(values)
        if isinstance(value, Tensor) and value.requires_grad
    ]


def _split(values: tuple, places: list[int]) -> tuple[tuple, Any]:
    """Put one node behind the tensors at `places`; return the new values, and the node."""
    tensors = tuple(values[place] for place in places)
    kinds = [_kind(tensor) for tensor in tensors]

    def pass_on(needs: tuple, grads: Any) -> tuple:
        return _with_zeros(grads if isinstance(grads, tuple) else (grads,), kinds)

    tensors = aliases(tensors, _NODE, pass_on)
    beyond = list(values)
    for place, tensor in zip(places, tensors, strict=True):
        beyond[place] = tensor
    # A named tuple takes its parts one by one.
    split = tuple(beyond) if type(values) is tuple else type(values)(*beyond)
    return split, tensors[0].grad_fn


def _kind(tensor: Tensor) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and dtype, for zeros in a tensor's place: a node must not keep it alive."""
    return tensor._array.shape, tensor._array.dtype


def _with_zeros(grads: tuple, kinds: list) -> tuple:
    """Return the gradients, with zeros for those of tensors that are None."""
    return tuple(
        wrap(np.zeros(*kind)) if grad is None and kind is not None else grad
        for grad, kind in zip(grads, kinds, strict=True)
    )


def _expand(places: list[int], values: tuple, size: int) -> tuple:
    """Return a tuple of the given size with the values in their places, None elsewhere."""
    expanded: list = [None] * size
    for place, value in zip(places, values, strict=True):
        expanded[place] = value
    return tuple(expanded)
