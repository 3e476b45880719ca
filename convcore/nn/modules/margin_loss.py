"""Losses with margins, of embeddings and of distributions, and CTC, as modules.

``reduction`` is as for the losses in loss.py.
"""

from __future__ import annotations

from typing import Any

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.loss import _Loss
from convcore.nn.modules.utils import at_call

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "PoissonNLLLoss",
    "TripletMarginLoss",
]


class _OfPairs(_Loss):
    _options = ("margin", "reduction")

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:  # type: ignore
        """Return the loss of two inputs for targets 1 and -1."""
        return self._of(input1, input2, target)


class MarginRankingLoss(_OfPairs):
    """max(0, margin - target * (input1 - input2)) of targets 1 and -1."""

    _function = at_call(functional.margin_ranking_loss)


class CosineEmbeddingLoss(_OfPairs):
    """1 - cos(input1, input2) of targets 1, max(0, cos - margin) of targets -1."""

    _function = at_call(functional.cosine_embedding_loss)


class HingeEmbeddingLoss(_Loss):
    """The input of targets 1, and max(0, margin - input) of targets -1."""

    _function = at_call(functional.hinge_embedding_loss)
    _options = ("margin", "reduction")

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)).

    Parameters
    ----------
    margin : float, above 0
    p, eps : float
        The norm, and what is added to differences.
    swap : bool
        Whether d(positive, negative) counts where it is the smaller one.
    reduction : 'mean', 'sum' or 'none'
    """

    _function = at_call(functional.triplet_margin_loss)
    _options = ("margin", "p", "eps", "swap", "reduction")

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:  # type: ignore
        """Return the loss of triplets."""
        return self._of(anchor, positive, negative)


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under Poisson distributions; see `poisson_nll_loss`."""

    _function = at_call(functional.poisson_nll_loss)
    _options = ("log_input", "full", "eps", "reduction")

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of means, or of their logarithms, for counts."""
        return self._of(log_input, target)


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of targets under normal distributions; see `gaussian_nll_loss`."""

    _function = at_call(functional.gaussian_nll_loss)
    _options = ("full", "eps", "reduction")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:  # type: ignore
        """Return the loss of means and variances for targets."""
        return self._of(input, target, var)


class CTCLoss(_Loss):
    """Connectionist temporal classification; called as `ctc_loss` is.

    Parameters
    ----------
    blank : int
        The class that stands for no label.
    reduction : 'mean', 'sum' or 'none'
    zero_infinity : bool
        Whether infinite losses count as 0.
    """

    _function = at_call(functional.ctc_loss)
    _options = ("blank", "reduction", "zero_infinity")

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(  # type: ignore
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """Return the loss of log-probabilities for target sequences."""
        return self._of(log_probs, targets, input_lengths, target_lengths)
