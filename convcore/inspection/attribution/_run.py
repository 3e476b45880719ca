"""One explained run of a net: evaluation mode, recorded, nothing fused; scores and gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from convcore import nn
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import arange
from convcore.amp.autocast_mode import autocast
from convcore.autograd.differentiate import grad
from convcore.autograd.grad_mode import inference_mode
from convcore.engine.runtime._restoring import Ending
from convcore.engine.runtime.restoring import Calls, together
from convcore.inspection._models import check_model
from convcore.inspection._optimized import is_optimized
from convcore.nn.modules._hooks import call_hooks, evaluating

Target = int | Sequence[int] | Tensor | Callable[[Any], Tensor] | None

_FUSED = (nn.BatchNorm2d, nn.ReLU, nn.ReLU6)


def check_input(model: Any, input: Any, target: Any = None) -> None:
    """Raise unless these are a net, a batch of floating-point images, and a class for each."""
    check_model(model)
    if not isinstance(input, Tensor):
        raise TypeError(f"input must be a Tensor, got {type(input).__name__}")
    if input._array.dtype.kind != "f":
        wide = ": explain model.float()" if input.is_floating_point() else ""
        raise TypeError(f"input must be of NumPy's floating-point dtypes, got {input.dtype}{wide}")
    if not input._array.ndim or not input._array.size:
        raise ValueError(f"input must be a batch (N, ...), got shape {tuple(input.shape)}")
    if not callable(target) and np.ndim(target) == 1 and len(target) != len(input):
        raise ValueError(f"target must have one class an image: {len(input)}, got {len(target)}")


def baseline_of(baseline: float | Tensor, input: Tensor) -> np.ndarray:
    """Return a baseline as an array of the input's shape and dtype.

    Raises
    ------
    TypeError
        It is neither a number nor a tensor.
    ValueError
        It does not broadcast to the input's shape.
    """
    given = baseline._array if isinstance(baseline, Tensor) else baseline
    if not isinstance(given, int | float | np.ndarray):
        raise TypeError(f"baseline must be a number or a Tensor, got {type(baseline).__name__}")
    try:
        return np.broadcast_to(np.asarray(given, input._array.dtype), input._array.shape)
    except ValueError:
        raise ValueError(
            f"baseline must broadcast to the input's shape {tuple(input.shape)}, got "
            f"{np.shape(given)}"
        ) from None


class explaining(Ending):
    """Put a net in evaluation mode with recording on; restore its modes whatever happens.

    Where the net fails and the input, of which slices are taken as batches, was one image without
    the axis of the batch, the error says that: the net's own is of a slice that nobody gave it.

    Raises
    ------
    ValueError
        The input has no axis of the batch.

    The nets of convcore.models fuse a batch norm with the ReLU after it unless a hook watches
    either: an empty hook keeps the ReLU a node of its own. Autocast is off, for shares of a score
    are no nearer to it than its own digits.
    """

    def __init__(self, model: nn.Module, input: Tensor | None = None) -> None:
        self._model, self._input = model, input

    def _back(self) -> Calls:
        fused = [module for module in self._model.modules() if isinstance(module, _FUSED)]
        self._parts = together(
            call_hooks(fused, after=_nothing),
            evaluating(self._model),
            inference_mode(False),
            autocast("cpu", enabled=False),
        )
        return self._parts._back()

    def _enter(self) -> None:
        self._parts._enter()

    def _ended(self, error: BaseException | None) -> None:
        input = self._input
        refused = isinstance(error, IndexError | RuntimeError | TypeError | ValueError)
        if input is None or not refused:
            return
        if _runs(self._model, input[None]) and not _runs(self._model, input[:1]):
            raise ValueError(
                f"input must be a batch (N, ...), got shape {tuple(input.shape)}: one image is "
                "x.unsqueeze(0)"
            ) from error


def _runs(model: nn.Module, input: Tensor) -> bool:
    """Return whether a net takes an input."""
    try:
        with evaluating(model), inference_mode():
            model(input)
    except (IndexError, RuntimeError, TypeError, ValueError):
        return False
    return True


def _nothing(module: nn.Module, args: tuple, output: Any) -> None:
    """Be a hook."""


def fresh(input: Tensor) -> Tensor:
    """Return a copy of a tensor as a leaf that requires a gradient."""
    return input.detach().clone().requires_grad_()


def scores(output: Any, target: Target, chosen: slice = slice(None)) -> Tensor:
    """Return the score of each image, (N,), that a target picks from a net's result.

    Parameters
    ----------
    output : Tensor
        (N, C), or (N,) where one score an image is all there is.
    target : int, N ints, callable or None
        The class of all images or of each; what returns the scores, given the output; None for
        each image's largest score.
    chosen : slice
        The images of the batch that the output belongs to.

    Raises
    ------
    TypeError, ValueError
        The output is no such tensor, or the target does not fit it.
    """
    if callable(target) and not isinstance(target, Tensor):
        picked = target(output)
        if not isinstance(picked, Tensor) or picked._array.ndim != 1:
            shape = getattr(picked, "shape", type(picked).__name__)
            raise ValueError(f"target must return one score an image, (N,), got {shape}")
        return picked
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model returned {type(output).__name__}, not a Tensor: give as target a function "
            "from what it returns to one score an image, (N,)"
        )
    shape = output._array.shape
    if len(shape) == 1 and target is None:
        return output
    if len(shape) != 2:
        raise ValueError(
            f"the model returned shape {shape}, not (N, C): give as target a function from what "
            "it returns to one score an image, (N,)"
        )
    return output[arange(shape[0]), wrap(_classes(output._array, target, chosen))]


def _classes(output: np.ndarray, target: Any, chosen: slice) -> np.ndarray:
    """Return the class of each image, (N,) int64."""
    n, classes = output.shape
    if target is None:
        return output.argmax(axis=1)
    given = np.asarray(target._array if isinstance(target, Tensor) else target)
    if given.dtype.kind not in "iu" or given.ndim > 1:
        raise TypeError(f"target must be None, an int, N ints or a function, got {target!r}")
    if given.ndim:
        given = given[chosen]
    if given.size and not -classes <= given.min() <= given.max() < classes:
        raise ValueError(f"target must be below {classes}, the number of classes, got {target!r}")
    return np.broadcast_to(given, (n,)).astype(np.int64) % classes


def fixed(model: nn.Module, input: Tensor, target: Target, chosen: slice) -> Target:
    """Return the target of some images; None is resolved by the net's result for them."""
    if target is None:
        output = model(input[chosen].clone())
        if isinstance(output, Tensor) and output._array.ndim == 2:
            return output._array.argmax(axis=1).tolist()
    listed = isinstance(target, Tensor | Sequence | np.ndarray) and np.ndim(target) == 1
    return target[chosen] if listed else target  # type: ignore[index]


def repeated(target: Target, count: int) -> Target:
    """Return the target of one image as that of so many copies of it."""
    if callable(target) or np.ndim(target) == 0:  # type: ignore[arg-type]
        return target
    return [int(target[0])] * count  # type: ignore[index]


def check_recorded(score: Tensor, model: nn.Module) -> None:
    """Raise RuntimeError if the scores have no graph."""
    if score.requires_grad:
        return
    why = (
        "it was made by optimize_for_inference: explain the model that it was made of"
        if is_optimized(model)
        else "its forward runs under no_grad, or detaches"
    )
    raise RuntimeError(f"the model's result has no gradient by its input: {why}")


def gradients(
    model: nn.Module, input: Tensor, target: Target, chosen: slice = slice(None)
) -> tuple[np.ndarray, Tensor]:
    """Return the scores, (N,), and the gradient of their sum by the input.

    The gradients of the parameters are left alone.
    """
    leaf = fresh(input)
    score = scores(model(leaf.clone()), target, chosen)
    check_recorded(score, model)
    (found,) = grad(score.sum(), [leaf], allow_unused=True)
    if found is None:
        raise RuntimeError("the model's result does not depend on its input")
    return score._array.copy(), found
