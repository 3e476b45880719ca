"""Distance layers: pairwise distance and cosine similarity."""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """Pairwise distance: the p-norm of x1 - x2 + eps along the last axis.

    Parameters
    ----------
    p : number
        Order of the norm; 2 is the Euclidean distance.
    eps : number
        Added to the difference; keeps the gradient finite where the vectors are equal.
    keepdim : bool
        Whether the last axis stays, with size 1.

    Examples
    --------
    >>> import convcore
    >>> PairwiseDistance(eps=0)(convcore.tensor([[3.0, 4.0]]), convcore.zeros(1, 2))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distance of each vector of ``x1`` from that of ``x2``; they broadcast."""
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """Cosine similarity, x1 . x2 / (|x1| |x2|), of vectors along an axis.

    Parameters
    ----------
    dim : int
        The axis.
    eps : number
        Lower bound of each vector's length in the denominator.

    Examples
    --------
    >>> import convcore
    >>> CosineSimilarity()(convcore.tensor([[1.0, 0.0]]), convcore.tensor([[0.0, 2.0]]))
    tensor([0.])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the cosines between the vectors of ``x1`` and those of ``x2``; they broadcast."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)
