"""Multiplicative schedulers: step, multi-step, exponential, constant, linear, or a function."""

from __future__ import annotations

import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from convcore.optim._checks import check_numbers
from convcore.optim.lr_scheduler.base import LRScheduler, checked_optimizer
from convcore.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class LambdaLR(LRScheduler):
    """Multiply the initial learning rate by a function of the epoch.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    lr_lambda : callable, or a list of one a group
        Epoch -> factor.

    Raises
    ------
    ValueError
        The functions are not as many as the groups.

    Examples
    --------
    >>> import convcore
    >>> sgd = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = LambdaLR(sgd, lambda epoch: 1 / (1 + epoch))
    >>> sgd.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _not_saved = (*LRScheduler._not_saved, "lr_lambdas")

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        n = len(checked_optimizer(optimizer).param_groups)
        several = isinstance(lr_lambda, (list, tuple))
        self.lr_lambdas: list[Any] = list(lr_lambda) if several else [lr_lambda] * n  # type: ignore[arg-type]
        if len(self.lr_lambdas) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state, with the attributes of callables, but nothing of plain functions."""
        attributes = [
            None if isinstance(function, types.FunctionType) else vars(function).copy()
            for function in self.lr_lambdas
        ]
        return {**super().state_dict(), "lr_lambdas": attributes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned; plain functions stay as they are."""
        own = {name: value for name, value in state_dict.items() if name != "lr_lambdas"}
        super().load_state_dict(own)
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                vars(function).update(attributes)

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        self._warn_if_called_alone()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [lr * function(self.last_epoch) for lr, function in pairs]


class MultiplicativeLR(LambdaLR):
    """Multiply the learning rate of the epoch before by a function of the epoch.

    Parameters and errors are those of `LambdaLR`.
    """

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        self._warn_if_called_alone()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        if self._is_initial:
            return [group["lr"] for group, _ in pairs]
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


class _Multiplied(LRScheduler):
    """A schedule that multiplies the groups' learning rates by a factor of the epoch.

    A subclass gives the factor from the last epoch to this one, and from the first to this one.
    """

    def _factor(self) -> float:
        raise NotImplementedError

    def _factor_since_beginning(self) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        self._warn_if_called_alone()
        factor = self._factor()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self._factor_since_beginning()
        return [lr * factor for lr in self.base_lrs]


class StepLR(_Multiplied):
    """Multiply the learning rate by ``gamma`` every ``step_size`` epochs.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    step_size : int
        Epochs between two changes.
    gamma : float

    Examples
    --------
    >>> import convcore
    >>> sgd = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = StepLR(sgd, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     sgd.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        check_numbers(step_size=step_size, gamma=gamma)
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        falls = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self.gamma if falls else 1

    def _factor_since_beginning(self) -> float:
        return self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Multiplied):
    """Multiply the learning rate by ``gamma`` at given epochs.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    milestones : iterable of int
        The epochs; one that is listed twice counts twice.
    gamma : float
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        check_numbers(gamma=gamma)
        self.milestones = Counter(_numbers("milestones", milestones))
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return self.gamma ** self.milestones[self.last_epoch]

    def _factor_since_beginning(self) -> float:
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ExponentialLR(_Multiplied):
    """Multiply the learning rate by ``gamma`` every epoch.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    gamma : float
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        check_numbers(gamma=gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _factor_since_beginning(self) -> float:
        return self.gamma**self.last_epoch


class ConstantLR(_Multiplied):
    """Multiply the learning rate by ``factor`` for the first epochs.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    factor : float
        From 0 to 1.
    total_iters : int
        The epoch from which on the learning rate is the full one.

    Raises
    ------
    ValueError
        ``factor`` is out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        check_numbers(factor=factor, total_iters=total_iters)
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _factor_since_beginning(self) -> float:
        return self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)


class LinearLR(_Multiplied):
    """Change the factor of the learning rate linearly, for a warm-up for instance.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    start_factor : float
        Of the first epoch; above 0, at most 1.
    end_factor : float
        Of epoch ``total_iters`` and all later ones; from 0 to 1.
    total_iters : int

    Raises
    ------
    ValueError
        A factor is out of its range.

    Examples
    --------
    >>> import convcore
    >>> sgd = convcore.optim.SGD([convcore.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = LinearLR(sgd, start_factor=0.5, total_iters=2)
    >>> sgd.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        check_numbers(start_factor=start_factor, end_factor=end_factor, total_iters=total_iters)
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        # The last epoch's factor is the divisor over total_iters, and so is what is added to it.
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _factor_since_beginning(self) -> float:
        rise = self.end_factor - self.start_factor
        return self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters


class PolynomialLR(_Multiplied):
    """Let the learning rate fall to 0 as a power of the epochs that are left.

    lr(t) = lr(0) * (1 - t / total_iters)^power, and 0 after that.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    total_iters : int
        The epoch from which on the learning rate is 0.
    power : float
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        check_numbers(total_iters=total_iters, power=power)
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left, before = (1.0 - t / self.total_iters for t in (self.last_epoch, self.last_epoch - 1))
        return (left / before) ** self.power

    def _factor_since_beginning(self) -> float:
        return (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


def _numbers(name: str, values: Any) -> list[Any]:
    """Return an iterable of numbers as a list, or raise TypeError."""
    try:
        numbers = list(values)
    except TypeError:
        raise TypeError(f"{name} must be numbers, got {values!r}") from None
    for number in numbers:
        check_numbers(**{name: number})
    return numbers
