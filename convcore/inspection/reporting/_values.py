"""What a net's calls make: statistics of results and gradients, and where NaN came from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from convcore import nn, ones_like, zeros_like
from convcore._tensor import Tensor
from convcore._tensor.dtypes import INEXACT, bfloat16
from convcore.autograd.differentiate import grad
from convcore.inspection.capturing import capture
from convcore.inspection.nonfinite import NonFiniteError, find_nan
from convcore.inspection.watching.calls import leaves
from convcore.inspection.watching.statistics import NAMES, statistics


@dataclass
class Values:
    """Statistics by name, and the arrays that pictures are drawn of.

    ``outputs`` and ``grads`` have those of calls, ``weights`` and ``weight_grads`` those of
    parameters; ``arrays`` the results. ``scores`` are the net's class scores, (N, C).
    """

    outputs: dict[str, dict] = field(default_factory=dict)
    grads: dict[str, dict] = field(default_factory=dict)
    weights: dict[str, dict] = field(default_factory=dict)
    weight_grads: dict[str, dict] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    scores: np.ndarray | None = None


def starts_of(result: Any) -> dict[Tensor, Tensor]:
    """Return the tensors that gradients are taken of, and the gradients to start with.

    They are those of the sum of the images' largest class scores; of another result than (N, C), of
    the sum of all floating-point elements.  Nothing is computed here that a profile would show.
    """
    found = [one for _, one in leaves("", result) if one.is_floating_point() and one.requires_grad]
    if not is_scores(result):
        return {one: ones_like(one, requires_grad=False) for one in found}
    return {one: _largest(one) for one in found}


def _largest(scores: Tensor) -> Tensor:
    """Return 1 where a row of class scores is largest, 0 elsewhere."""
    found = zeros_like(scores, requires_grad=False)
    rows = np.arange(scores.shape[0])
    found._array[rows, array_of(scores).argmax(axis=1)] = 1
    return found


def is_scores(result: Any) -> bool:
    """Return whether a net's result has a score for each of several classes, (N, C)."""
    return isinstance(result, Tensor) and len(result.shape) == 2 and result.shape[1] > 1


def gradients(model: nn.Module, given: tuple, run: Callable[[], Any]) -> tuple[Any, dict]:
    """Run a net forward and backward; return its result, and its parameters' gradients by name."""
    result = run()
    starts = starts_of(result)
    if not starts:
        return result, {}
    named = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    asked = [one for _, one in named] + [x for x in _tensors(given) if x.requires_grad]
    found = grad([*starts], asked, [*starts.values()], allow_unused=True)
    return result, {
        name: one for (name, _), one in zip(named, found, strict=False) if one is not None
    }


def values_of(model: nn.Module, given: tuple, run: Callable[[], Any]) -> Values:
    """Run a net forward and backward, and reduce what its calls make."""
    found = Values()
    with capture(model) as seen:
        result, weight_grads = gradients(model, given, run)
    for name in seen.output:
        tensor = seen.output[name]
        found.arrays[name] = array_of(tensor)
        found.outputs[name] = reduced(tensor)
    found.grads = {name: reduced(seen.grad[name]) for name in seen.grad}
    found.weights = {name: reduced(one) for name, one in model.named_parameters()}
    found.weight_grads = {name: reduced(one) for name, one in weight_grads.items()}
    if is_scores(result):
        found.scores = array_of(result)
    return found


def array_of(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array of a dtype that NumPy knows itself."""
    return np.asarray((tensor.float() if tensor.dtype is bfloat16 else tensor).detach()._array)


def reduced(tensor: Tensor) -> dict[str, Any]:
    """Return all statistics of a tensor, and as 'inf' how many elements are infinite."""
    found = statistics(tensor.detach(), frozenset(NAMES))
    array = np.asarray(tensor._array)
    found["inf"] = int(np.isinf(array).sum()) if array.dtype.kind in INEXACT else 0
    return found


def first_nonfinite(
    model: nn.Module, given: tuple, run: Callable[[], Any]
) -> NonFiniteError | None:
    """Return the error that says which call made the first NaN or infinity, if one did."""
    try:
        with warnings.catch_warnings(), find_nan(model):
            warnings.simplefilter("ignore")
            gradients(model, given, run)
    except NonFiniteError as error:
        return error
    return None


def _tensors(given: Any) -> list[Tensor]:
    return [tensor for _, tensor in leaves("", given)]
