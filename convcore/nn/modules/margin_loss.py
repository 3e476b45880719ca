"""Losses with margins, of embeddings and of distributions, and CTC, as modules.

``reduction`` is as for the losses in loss.py.
"""

from __future__ import annotations

from collections.abc import Callable

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.distance import PairwiseDistance
from convcore.nn.modules.loss import NLLLoss, _Loss, _WeightedLoss

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _OfSeveral(_Loss):
    """A loss of more tensors than input and target."""

    def forward(self, *tensors: Tensor) -> Tensor:
        """Return the loss of the tensors."""
        options = {name: getattr(self, name) for name in self._options}
        return getattr(functional, self._function)(*tensors, **options)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)) of targets 1 and -1."""

    _function = "soft_margin_loss"


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of several labels a sample; see `multilabel_margin_loss`."""

    _function = "multilabel_margin_loss"


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross-entropy of sigmoid(input), averaged over the classes.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each class.
    reduction : 'mean', 'sum' or 'none'
    """

    _function = "multilabel_soft_margin_loss"


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of one class a sample, max(0, margin - x[target] + x[class])^p.

    Parameters
    ----------
    p : 1 or 2
    margin : float
    weight : Tensor, (C,), optional
    reduction : 'mean', 'sum' or 'none'
    """

    _function = "multi_margin_loss"
    _options = ("p", "margin", "weight", "reduction")

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D "
                "instead"
            )
        self.p = p
        self.margin = margin


class _MarginLoss(_OfSeveral):
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


class MarginRankingLoss(_MarginLoss):
    """max(0, margin - target * (input1 - input2)) of targets 1 and -1."""

    _function = "margin_ranking_loss"


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(input1, input2) of targets 1, max(0, cos - margin) of targets -1."""

    _function = "cosine_embedding_loss"


class HingeEmbeddingLoss(_MarginLoss):
    """The input of targets 1, and max(0, margin - input) of targets -1."""

    _function = "hinge_embedding_loss"

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)


class TripletMarginLoss(_OfSeveral):
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

    _function = "triplet_margin_loss"
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


class TripletMarginWithDistanceLoss(_OfSeveral):
    """`TripletMarginLoss` with a distance of one's own; the Euclidean one if it is None."""

    _function = "triplet_margin_with_distance_loss"
    _options = ("distance_function", "margin", "swap", "reduction")

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got "
                f"{margin} instead"
            )
        default = PairwiseDistance()
        self.distance_function = default if distance_function is None else distance_function
        self.margin, self.swap = margin, swap


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under Poisson distributions; see `poisson_nll_loss`."""

    _function = "poisson_nll_loss"
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


class GaussianNLLLoss(_OfSeveral):
    """Negative log-likelihood of targets under normal distributions; see `gaussian_nll_loss`."""

    _function = "gaussian_nll_loss"
    _options = ("full", "eps", "reduction")

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps


class CTCLoss(_OfSeveral):
    """Connectionist temporal classification; called as `ctc_loss` is.

    Parameters
    ----------
    blank : int
        The class that stands for no label.
    reduction : 'mean', 'sum' or 'none'
    zero_infinity : bool
        Whether infinite losses count as 0.
    """

    _function = "ctc_loss"
    _options = ("blank", "reduction", "zero_infinity")

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity


class NLLLoss2d(NLLLoss):
    """`NLLLoss`, under the name it once had for images."""
