"""Adaptive softmax: a cheaper loss for very many classes, of which few are frequent."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.functions.joining import cat
from convcore.functions.shape import squeeze, unsqueeze
from convcore.nn import functional
from convcore.nn.modules.container import ModuleList, Sequential
from convcore.nn.modules.linear import Linear
from convcore.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of the targets, with a small projection for clusters of rare classes.

    Parameters
    ----------
    in_features : int
    n_classes : int
        Classes are sorted, the most frequent first.
    cutoffs : ints, ascending
        Where one cluster ends and the next begins.
    div_value : float
        By how much each cluster's projection is smaller than the one before.
    head_bias : bool
        Whether the first layer has a bias.
    device, dtype
        Of the parameters.

    Raises
    ------
    ValueError
        The cutoffs are no ascending ints between 1 and n_classes - 1.

    References
    ----------
    E. Grave, A. Joulin, M. Cisse, D. Grangier, H. Jegou, "Efficient softmax approximation for
    GPUs", ICML 2017.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        ascending = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not ascending or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        made = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            layers = Linear(in_features, hidden, False, **made), Linear(hidden, size, False, **made)
            self.tail.append(Sequential(*layers))

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.head.reset_parameters()
        for tail in self.tail:
            for layer in tail.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """Return (output, loss): each target's log-probability, and minus their mean.

        Parameters
        ----------
        input_ : (N, in_features) or (in_features,)
        target_ : (N,) or (), of int64
        """
        rank = target_.dim()
        if rank not in (0, 1):
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank and input_.dim() > 1 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != rank + 1:
            raise RuntimeError(
                f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with "
                f"size {input_.shape}"
            )
        rows = input_ if rank else unsqueeze(input_, 0)
        classes = np.atleast_1d(target_._array)
        _check_classes(classes, self.n_classes)
        scores = functional.log_softmax(self.head(rows), 1)
        output = self._of_targets(rows, classes, scores)
        loss = -output.mean()
        return _ASMoutput(output if rank else squeeze(output, 0), loss)

    def _of_targets(self, rows: Tensor, classes: np.ndarray, scores: Tensor) -> Tensor:
        """Return each target's log-probability: its cluster's in the head plus that inside it."""
        cluster = np.searchsorted(self.cutoffs, classes, side="right")
        columns = np.where(cluster == 0, classes, self.shortlist_size + cluster - 1)
        output = squeeze(scores.gather(1, wrap(columns[:, np.newaxis])), 1)
        for i in range(self.n_clusters):
            where = np.flatnonzero(cluster == i + 1)
            if not where.size:
                continue
            inside = functional.log_softmax(self.tail[i](rows.index_select(0, wrap(where))), 1)
            within = wrap((classes[where] - self.cutoffs[i])[:, np.newaxis])
            output = output.index_add(0, wrap(where), squeeze(inside.gather(1, within), 1))
        return output

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, (N, n_classes)."""
        scores = functional.log_softmax(self.head(input), 1)
        size = self.shortlist_size
        parts = [scores[:, :size]]
        for i, tail in enumerate(self.tail):
            inside = functional.log_softmax(tail(input), 1)
            parts.append(inside + unsqueeze(scores[:, size + i], 1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the likeliest class of each sample, (N,)."""
        return self.log_prob(input).argmax(1)


def _check_classes(classes: np.ndarray, n_classes: int) -> None:
    if classes.size and not (classes.min() >= 0 and classes.max() < n_classes):
        raise RuntimeError(
            f"Target values should be in [0, {n_classes - 1}], but values in range "
            f"[{classes.min()}, {classes.max()}] were found. "
        )
