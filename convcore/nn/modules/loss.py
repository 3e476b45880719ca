"""Loss functions as modules: L1, MSE, Huber, KL divergence, cross-entropy.

``reduction`` says what is returned: the 'mean' or the 'sum' of the losses, or with 'none' the loss
of each element or sample. PyTorch's older ``size_average`` and ``reduce`` are accepted with a
warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from convcore._errors import hinted, without_hint
from convcore._tensor import Tensor
from convcore.functions.losses.loss_reduction import older_reduction
from convcore.nn import functional
from convcore.nn.modules.module import Module
from convcore.nn.modules.utils import at_call

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
    _function: Callable[..., Tensor]
    _options: tuple[str, ...] = ("reduction",)  # attributes that the function takes by name

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            try:
                reduction = older_reduction(size_average, reduce, stacklevel=4)
            except RuntimeError as error:  # of the bool of a tensor, with a hint of its own
                kind, code = type(self).__name__, type(self).forward.__code__
                inputs = ", ".join(code.co_varnames[1 : code.co_argcount])
                hint = f"make the loss first, and then call it: nn.{kind}()({inputs})"
                raise hinted(RuntimeError(without_hint(error)), hint) from None
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``input`` for a ``target`` of the same shape."""
        return self._of(input, target)

    def _of(self, *tensors: Any) -> Tensor:
        return self._function(*tensors, **{name: getattr(self, name) for name in self._options})


class L1Loss(_Loss):
    """Absolute error, |input - target|.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    """

    _function = at_call(functional.l1_loss)


class MSELoss(_Loss):
    """Squared error, (input - target)**2.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'

    Examples
    --------
    >>> import convcore
    >>> MSELoss()(convcore.tensor([1.0, 3.0]), convcore.tensor([1.0, 1.0]))
    tensor(2.)
    """

    _function = at_call(functional.mse_loss)


class SmoothL1Loss(_Loss):
    """Smooth L1 loss: d**2 / (2 * beta) where d = |input - target| < beta, d - beta / 2 elsewhere.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    beta : float
    """

    _function = at_call(functional.smooth_l1_loss)
    _options = ("reduction", "beta")

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta


class HuberLoss(_Loss):
    """Huber loss: d**2 / 2 where d = |input - target| < delta, delta * (d - delta / 2) elsewhere.

    Parameters
    ----------
    reduction : 'mean', 'sum' or 'none'
    delta : float
    """

    _function = at_call(functional.huber_loss)
    _options = ("reduction", "delta")

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if not isinstance(delta, int | float):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        self.delta = delta


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence, target * (log(target) - input), of log-probabilities ``input``.

    Parameters
    ----------
    reduction : 'mean', 'batchmean', 'sum' or 'none'
        'batchmean' divides the sum by the number of samples, as in the mathematical definition.
    log_target : bool
        Whether the target holds log-probabilities too.
    """

    _function = at_call(functional.kl_div)
    _options = ("reduction", "log_target")

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target


class _WeightedLoss(_Loss):
    _options: tuple[str, ...] = ("weight", "reduction")

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
    """Binary cross-entropy, -(t * log(x) + (1 - t) * log(1 - x)), of probabilities x.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; its shape broadcasts with the input's.
    reduction : 'mean', 'sum' or 'none'
    """

    _function = at_call(functional.binary_cross_entropy)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of sigmoid(input), finite also where that rounds to 0 or 1.

    Parameters
    ----------
    weight : Tensor, optional
        A factor for each element; its shape broadcasts with the input's.
    reduction : 'mean', 'sum' or 'none'
    pos_weight : Tensor, optional
        A factor for the first term, that of positive targets; its shape broadcasts too.
    """

    _function = at_call(functional.binary_cross_entropy_with_logits)
    _options = ("weight", "pos_weight", "reduction")

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


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood: minus the log-probability of the target's class.

    The input holds log-probabilities, (N, C, *sizes) or (C,), and the target classes, (N, *sizes).

    Parameters
    ----------
    weight : Tensor, (C,), optional
        A factor for each class. A 'mean' is then divided by the sum of the factors.
    ignore_index : int
        A class whose samples do not count.
    reduction : 'mean', 'sum' or 'none'
    """

    _function = at_call(functional.nll_loss)
    _options = ("weight", "ignore_index", "reduction")

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


class CrossEntropyLoss(_WeightedLoss):
    """Cross-entropy of class scores (logits): `NLLLoss` of log_softmax(input).

    The input is (N, C, *sizes) or (C,). The target holds classes, (N, *sizes), or probabilities,
    of the input's shape.

    Parameters
    ----------
    weight, ignore_index, reduction
        As for `NLLLoss`.
    label_smoothing : float
        Between 0 and 1: the share of each target that is distributed evenly over all classes.

    Examples
    --------
    >>> import convcore
    >>> CrossEntropyLoss()(convcore.zeros(3, 4), convcore.tensor([0, 1, 2]))
    tensor(1.3863)
    """

    _function = at_call(functional.cross_entropy)
    _options = ("weight", "ignore_index", "reduction", "label_smoothing")

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
