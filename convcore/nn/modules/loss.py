"""Losses as modules: how far an output is from its target, as one number or one an element.

All have a ``reduction``: 'mean' and 'sum' give one number, 'none' gives one an element or sample.
PyTorch's older ``size_average`` and ``reduce`` are understood, with a warning.
"""

from __future__ import annotations

from convcore._tensor import Tensor
from convcore.functions.loss import older_reduction
from convcore.nn import functional
from convcore.nn.modules.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = older_reduction(size_average, reduce, stacklevel=4)
        self.reduction = reduction


class L1Loss(_Loss):
    """|input - target|.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)**2.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'

    Examples
    --------
    >>> import convcore
    >>> MSELoss()(convcore.tensor([1.0, 3.0]), convcore.tensor([1.0, 1.0]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """d**2 / (2 * beta) where d = |input - target| is below beta, d - beta / 2 elsewhere.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    beta : float
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """d**2 / 2 where d = |input - target| is below delta, delta * (d - delta / 2) elsewhere.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    delta : float
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target * (log(target) - input): how far a distribution is from one given by its logarithm.

    Parameters
    ----------
    reduction : 'mean', 'batchmean', 'sum' or 'none'
        'batchmean' divides the sum by the number of samples, as the definition wants it.
    log_target : bool
        Whether the target is given by its logarithm too.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class BCELoss(_WeightedLoss):
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; its shape broadcasts with the input's.
    reduction : 'mean', 'sum' or 'none'
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.binary_cross_entropy(
            input, target, weight=self.weight, reduction=self.reduction
        )


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(input), also where that is 0 or 1 to rounding.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; its shape broadcasts with the input's.
    reduction : 'mean', 'sum' or 'none'
    pos_weight : Tensor, optional
        A factor for the first term, that of positive targets; its shape broadcasts too.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return functional.binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            pos_weight=self.pos_weight,
            reduction=self.reduction,
        )


class NLLLoss(_WeightedLoss):
    """Minus the input at the target's class; the input are logarithms of probabilities.

    Parameters
    ----------
    weight : Tensor, (C,), optional
        A factor for each class. A 'mean' is then divided by the sum of the factors.
    ignore_index : int
        A class whose samples do not count.
    reduction : 'mean', 'sum' or 'none'
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input``, (N, C, *sizes) or (C,), for classes, (N, *sizes)."""
        return functional.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class CrossEntropyLoss(_WeightedLoss):
    """`NLLLoss` of log_softmax(input): the input are scores of classes.

    Parameters
    ----------
    weight, ignore_index, reduction
        As for `NLLLoss`.
    label_smoothing : float
        Between 0 and 1: how much of each target is spread evenly over all classes.

    Examples
    --------
    >>> import convcore
    >>> CrossEntropyLoss()(convcore.zeros(3, 4), convcore.tensor([0, 1, 2]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input``, (N, C, *sizes) or (C,).

        ``target`` has classes, of shape (N, *sizes), or probabilities, of the input's shape.
        """
        return functional.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
