"""LRScheduler, the base class: steps, state, and warnings of a wrong order of calls."""

from __future__ import annotations

import warnings
from typing import Any

from convcore._errors import hinted, hints
from convcore._errors.calls import KeywordHints
from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.optim._checks import check_numbers
from convcore.optim.optimizer import Optimizer

__all__ = ["LRScheduler"]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)


class LRScheduler(KeywordHints):
    """The base class of learning rate schedulers.

    A subclass computes each group's learning rate in `get_lr`, from `last_epoch` and the group's
    present learning rate, so that several schedules can act on one optimizer. Call `step` after
    the optimizer's, once an epoch or once a batch, as the schedule is meant.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups' learning rates are set.
    last_epoch : int
        Number of the last epoch, to resume from; -1 starts from the beginning.

    Attributes
    ----------
    base_lrs : list
        The groups' initial learning rates.
    last_epoch : int

    Raises
    ------
    TypeError
        ``optimizer`` is not an Optimizer.
    KeyError
        ``last_epoch`` is not -1, and a group has no "initial_lr".
    """

    last_epoch: int
    _is_initial = False  # whether the first step, which the constructor takes, is running
    _get_lr_called_within_step = False
    _not_saved: tuple[str, ...] = ("optimizer", "_own_step")  # attributes left out of the state

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked_optimizer(optimizer)
        check_numbers(last_epoch=last_epoch)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "scheduler with last_epoch >= 0: load the optimizer's state first, or begin "
                    "with last_epoch=-1"
                )
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._own_step = vars(optimizer).get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the learning rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule's state, for `load_state_dict`, without the optimizer's."""
        flags = {
            "_is_initial": self._is_initial,
            "_get_lr_called_within_step": self._get_lr_called_within_step,
        }
        own = {name: value for name, value in vars(self).items() if name not in self._not_saved}
        return flags | own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the groups' learning rates as the last `step` set them."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the groups' learning rates of this epoch; `step` calls it."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch and set its learning rates.

        Parameters
        ----------
        epoch : int, optional
            The epoch to set instead; deprecated, as in PyTorch.
        """
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        """Warn at the first step if the optimizer has not taken one before."""
        how = (
            "See more details at "
            "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
        )
        if vars(self.optimizer).get("step") is not self._own_step:
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`. {how}",
                stacklevel=3,
            )
        elif self._own_step is None and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                f"the first value of the learning rate schedule. {how}",
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        """Set the next epoch's learning rates, or those of ``epoch``, by a closed form if any."""
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._get_lr_called_within_step = True
        try:
            lrs = self.get_lr() if epoch is None or closed_form is None else closed_form()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, lrs, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values(self.optimizer, "lr")

    def _warn_if_called_alone(self) -> None:
        """Warn if `get_lr` was called by anything but `step`."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                stacklevel=3,
            )


def checked_optimizer(optimizer: Any) -> Optimizer:
    """Return an argument that must be an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise hinted(
            TypeError(f"{type(optimizer).__name__} is not an Optimizer"),
            hints.of_pytorch(optimizer),
        )
    return optimizer


def copied(value: Any) -> Any:
    """Return a number as it is, or a copy of a tensor."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def values(optimizer: Optimizer, option: str) -> list[Any]:
    """Return each group's value of an option."""
    return [copied(group[option]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], option: str, value: Any) -> None:
    """Set an option of a group; a tensor is written to, not replaced."""
    if isinstance(group[option], Tensor):
        with no_grad():
            group[option].fill_(float(value))
    else:
        group[option] = value


def of_each_group(name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """Return one value a group, from a list of them or from one value for all.

    Raises
    ------
    TypeError
        A value is not a number.
    ValueError
        The list is not as long as the groups are many.
    """
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * n
    if len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {n}."
        )
    for one in value:
        check_numbers(**{name: one})
    return [copied(one) for one in value]


def warn_of_epoch() -> None:
    """Warn that the ``epoch`` argument of `step` is deprecated."""
    warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=3)
