"""Connectionist temporal classification: the loss of label sequences without alignments."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, scalar_name, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record, record_without_derivative
from convcore.functions._support.arguments import check_arguments
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions.elementwise.arithmetic import div
from convcore.functions.losses.loss_reduction import reduce_losses, reduction_name
from convcore.functions.shapes.shape import reshape

__all__ = ["ctc_loss"]


@names_arguments
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-probability of target sequences, summed over all alignments.

    Parameters
    ----------
    log_probs : (T, N, C) or (T, C)
        Log-probabilities of the classes at each time, as from `log_softmax`.
    targets : (N, S), or all targets one after another; of integers
    input_lengths, target_lengths : (N,), Tensors or sequences of ints
    blank : int
        The class that stands for no label.
    reduction : 'mean', 'sum' or 'none'
        The mean is of losses over their targets' lengths.
    zero_infinity : bool
        Whether infinite losses, of targets too long for their input, count as 0.

    Raises
    ------
    RuntimeError
        Lengths, targets or sizes do not belong together.

    Notes
    -----
    The gradient is that for normalised log-probabilities, as in PyTorch.  It has no further one.

    References
    ----------
    A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist temporal classification:
    labelling unsegmented sequence data with recurrent neural networks", ICML 2006.
    """
    check_arguments("ctc_loss", log_probs=log_probs, targets=targets)
    reduction = reduction_name(reduction)
    single = log_probs._array.ndim == 2
    if single:
        log_probs = reshape(log_probs, log_probs._array.shape[0], 1, -1)
    if not log_probs._array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    given = [
        _lengths(name, one)
        for name, one in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    ]
    problem = _Problem(log_probs._array, targets._array, given[0], given[1], blank)
    losses = _losses(log_probs, problem, zero_infinity)
    if reduction == "mean":
        losses = div(losses, wrap(np.maximum(given[1], 1).astype(losses._array.dtype)))
    return (
        reshape(losses, ()) if single and reduction == "none" else reduce_losses(losses, reduction)
    )


def _lengths(name: str, given: Any) -> np.ndarray:
    array = given._array if isinstance(given, Tensor) else np.asarray(given, np.int64)
    if array.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    return array.reshape(-1).astype(np.int64)


class _Problem:
    """The arguments, checked: labels with blanks between them, (N, L = 2 * S + 1), and lengths."""

    def __init__(
        self, x: np.ndarray, targets: np.ndarray, times: np.ndarray, lengths: np.ndarray, blank: int
    ) -> None:
        if x.dtype.char not in "fd":
            raise NotImplementedError(
                f"\"ctc_loss_cpu\" not implemented for '{scalar_name(x.dtype)}'"
            )
        if x.ndim != 3:
            raise RuntimeError(f"log_probs tensor must be 2D or 3D, but got {x.ndim}D")
        (steps, batch, classes) = x.shape
        if not 0 <= blank < classes:
            raise RuntimeError("blank must be in label range")
        for name, one in (("input_lengths", times), ("target_lengths", lengths)):
            if one.size != batch:
                raise RuntimeError(f"{name} must be of size batch_size")
            if one.size and one.min() < 0:
                raise RuntimeError(
                    f"Expected {name} to have value at least 0, but got value {one.min()} (while "
                    "checking arguments for ctc_loss_allocate_outputs)"
                )
        if times.size and times.max() > steps:
            raise RuntimeError(
                f"Expected input_lengths to have value at most {steps}, but got value "
                f"{times.max()} (while checking arguments for ctc_loss_allocate_outputs)"
            )
        longest = int(lengths.max(initial=0))
        labels = np.full((batch, longest), blank, np.int64)
        inside = np.arange(longest) < lengths[:, np.newaxis]
        given = self._flat(targets, lengths, longest, inside)
        if given.size and not 0 <= given.min() <= given.max() < classes:
            wrong = given[(given < 0) | (given >= classes)][0]
            raise RuntimeError(
                f"ctc_loss: targets must be from 0 to {classes - 1}, the classes of log_probs, got "
                f"{wrong}"
            )
        labels[inside] = given
        self.path = np.full((batch, 2 * longest + 1), blank, np.int64)
        self.path[:, 1::2] = labels
        self.times, self.lengths, self.blank = times, lengths, blank
        # Where a path may come from two places before: to a label that differs from the last one.
        self.skips = np.zeros(self.path.shape, bool)
        self.skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
        self.outside = np.arange(2 * longest + 1) > 2 * lengths[:, np.newaxis]

    @staticmethod
    def _flat(targets: np.ndarray, lengths: np.ndarray, longest: int, inside: np.ndarray) -> Any:
        """Return all labels one after another."""
        if targets.ndim == 1:
            if targets.size != lengths.sum():
                raise RuntimeError(
                    f"Expected tensor to have size at least {lengths.sum()} at dimension 0, but "
                    f"got size {targets.size} for argument #2 'targets'"
                )
            return targets
        if targets.shape[0] != len(lengths) or targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size "
                f"{targets.shape[1]} for argument #2 'targets' (while checking arguments for "
                "ctc_loss_allocate_outputs)"
            )
        return targets[:, :longest][inside]


def _losses(x: Tensor, problem: _Problem, zero_infinity: bool) -> Tensor:
    spread = _spread(x._array, problem)
    alphas = ignore_errstate(_forward, spread, problem)
    losses = ignore_errstate(_final, alphas, problem)
    shown = np.where(np.isinf(losses), 0, losses) if zero_infinity else losses
    out = wrap(shown.astype(x._array.dtype))
    if mode.enabled:

        def backward(needs: tuple[bool, ...], grad: Tensor, x: Tensor) -> Tensor:
            slope = ignore_errstate(_slopes, x._array, alphas, losses, problem)
            each = grad._array[:, np.newaxis]
            if zero_infinity:
                slope[:, np.isinf(losses)] = 0
            found = wrap((slope * each).astype(x._array.dtype))
            record_without_derivative("_ctc_loss_backward", (grad, x), found)
            return found

        record("CtcLossBackward0", (x,), out, backward, (x,))
    return out


def _spread(x: np.ndarray, problem: _Problem) -> np.ndarray:
    """Return the log-probabilities along the path with blanks, (T, N, L), in float64."""
    index = np.broadcast_to(problem.path, (len(x), *problem.path.shape))
    found = np.take_along_axis(x.astype(np.float64), index, 2)
    found[:, problem.outside] = -np.inf
    return found


def _forward(spread: np.ndarray, problem: _Problem) -> np.ndarray:
    """Return alpha: the log-probability of all beginnings that reach a place at a time."""
    alphas = np.full(spread.shape, -np.inf)
    if len(spread):
        alphas[0, :, :2] = spread[0, :, :2]
    for t in range(1, len(spread)):
        before = alphas[t - 1]
        total = before.copy()
        total[:, 1:] = np.logaddexp(total[:, 1:], before[:, :-1])
        jumps = np.where(problem.skips[:, 2:], before[:, :-2], -np.inf)
        total[:, 2:] = np.logaddexp(total[:, 2:], jumps)
        alphas[t] = total + spread[t]
    return alphas


def _final(alphas: np.ndarray, problem: _Problem) -> np.ndarray:
    """Return the losses: minus the log-probability to end at the last label or blank."""
    rows = np.arange(alphas.shape[1])
    if not len(alphas):
        return np.where(problem.lengths == 0, -0.0, np.inf)
    last = alphas[np.maximum(problem.times - 1, 0), rows]
    ends = last[rows, 2 * problem.lengths]
    labels = last[rows, np.maximum(2 * problem.lengths - 1, 0)]
    found = -np.where(problem.lengths > 0, np.logaddexp(ends, labels), ends)
    return np.where(problem.times == 0, np.where(problem.lengths == 0, -0.0, np.inf), found)


def _slopes(x: np.ndarray, alphas: np.ndarray, losses: np.ndarray, problem: _Problem) -> np.ndarray:
    """Return the gradient for the log-probabilities: Graves et al., equation 16."""
    steps, batch, classes = x.shape
    both = alphas + _backward(_spread(x, problem), problem)
    top = np.max(both, axis=2, keepdims=True)
    shares = np.exp(both - np.where(np.isfinite(top), top, 0))
    numbers = np.arange(steps * batch).reshape(steps, batch, 1) * classes + problem.path
    sums = np.bincount(numbers.ravel(), shares.ravel(), steps * batch * classes)
    joint = np.log(sums.reshape(x.shape)) + top
    wide = x.astype(np.float64)
    # A class of log-probability -inf is on no path.
    on_path = np.where(np.isneginf(wide), 0, np.exp(joint + losses[:, np.newaxis] - wide))
    slopes = np.exp(wide) - on_path
    slopes[np.arange(steps)[:, np.newaxis] >= problem.times] = 0
    return slopes


def _backward(spread: np.ndarray, problem: _Problem) -> np.ndarray:
    """Return beta: the log-probability of all ends that start from a place at a time."""
    betas = np.full(spread.shape, -np.inf)
    rows, after = np.arange(spread.shape[1]), np.full(spread.shape[1:], -np.inf)
    for t in range(len(spread) - 1, -1, -1):
        total = after.copy()
        total[:, :-1] = np.logaddexp(total[:, :-1], after[:, 1:])
        jumps = np.where(problem.skips[:, 2:], after[:, 2:], -np.inf)
        total[:, :-2] = np.logaddexp(total[:, :-2], jumps)
        ending = problem.times == t + 1
        total[rows[ending], 2 * problem.lengths[ending]] = 0
        labelled = ending & (problem.lengths > 0)
        total[rows[labelled], 2 * problem.lengths[labelled] - 1] = 0
        after = betas[t] = total + spread[t]
    return betas


FUNCTIONS_ONLY = __all__
