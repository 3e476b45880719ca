"""Fused optimizer steps: a parameter group is updated by one call of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from convcore._creation import tensor
from convcore._dtype import float32, float64, get_default_dtype
from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import enable_grad, no_grad
from convcore.autograd.views import check_writable
from convcore.engine.layers import optimizers as engine
from convcore.optim._checks import check_numbers
from convcore.optim.optimizer import Optimizer


class Fused(Optimizer):
    """An optimizer that updates a parameter group by one call of the engine.

    A subclass describes a parameter's update in `_plan`.
    """

    # Options missing from states of older versions of PyTorch, and their values then.
    _later_options: ClassVar[dict[str, Any]] = {
        "maximize": False,
        "foreach": None,
        "differentiable": False,
    }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
        for own in self.state.values():
            step = own.get("step") if isinstance(own, dict) else None
            if step is not None and not isinstance(step, Tensor):
                own["step"] = tensor(float(step), dtype=_counter_dtype())

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient; see `Optimizer.step`."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for parameter in self._all_parameters():
            if parameter._grad is not None:
                check_writable(parameter)
                self._check_shapes(parameter)
        for group in self.param_groups:
            options = {name: _number(value) for name, value in group.items()}
            parameters = [p for p in group["params"] if p._grad is not None]
            if len({*parameters}) == len(parameters):
                self._move(parameters, options)
            else:  # a parameter listed twice is updated twice
                for parameter in parameters:
                    self._move([parameter], options)
        return loss

    def _move(self, parameters: list[Tensor], options: dict[str, Any]) -> None:
        """Update parameters at once; their states stay as they are if the engine raises."""
        states = [dict(self.state[p]) if p in self.state else {} for p in parameters]
        engine.take([self._plan(*each, options) for each in zip(parameters, states, strict=True)])
        for parameter, state in zip(parameters, states, strict=True):
            parameter._counter[0] += 1
            if state:
                _count(state)
                self.state[parameter].update(state)

    def _check_shapes(self, parameter: Tensor) -> None:
        """Raise RuntimeError if the gradient or the state is of another shape.

        The state may be another net's, and ``data`` may have been assigned since.
        """
        shape = parameter._array.shape
        state = self.state[parameter].items() if parameter in self.state else ()
        for name, value in (("grad", parameter._grad), *state):
            if name != "step" and isinstance(value, Tensor) and value._array.shape != shape:
                raise RuntimeError(
                    f"{name} must have the shape of its parameter, {list(shape)}, got "
                    f"{list(value._array.shape)}"
                )

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        """Return a parameter's update, with its state initialised; ``options`` are numbers."""
        raise NotImplementedError

    def _begin(self, state: dict[str, Any], names: Iterable[str], parameter: Tensor) -> None:
        """Initialise a state: step count 0, and zeros in the parameter's format under ``names``."""
        state["step"] = tensor(0.0, dtype=_counter_dtype())
        for name in names:
            state[name] = wrap(np.zeros_like(parameter._array))


def arrays_of(parameter: Tensor) -> list[np.ndarray]:
    """Return the arrays of a parameter and of its gradient."""
    return [parameter._array, parameter._grad._array]  # type: ignore[union-attr]


def _count(state: dict[str, Any]) -> None:
    """Increment the step count of a parameter's state, if it has one."""
    if "step" in state:
        state["step"]._array[...] += 1
        state["step"]._counter[0] += 1


def written(state: dict[str, Any], *names: str) -> list[np.ndarray]:
    """Return arrays of a state, whose versions are increased: the step writes into them."""
    for name in names:
        state[name]._counter[0] += 1
    return [state[name]._array for name in names]


# Options that must be at least 0, and their names in messages.
_NOT_NEGATIVE = {
    "lr": "learning rate",
    "eps": "epsilon value",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "alpha": "alpha value",
}


def check_options(options: dict[str, Any]) -> None:
    """Raise for an option that is out of its range, among those that optimizers have in common.

    Raises
    ------
    TypeError
        An option is not a number.
    ValueError
        An option is negative, ``lr`` is a tensor of several elements, or ``differentiable`` is set.
    RuntimeError
        Both ``foreach`` and ``fused`` are set, which PyTorch refuses.
    """
    lr = options["lr"]
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    for name, called in _NOT_NEGATIVE.items():
        if name in options:
            check_numbers(**{name: options[name]})
            if not options[name] >= 0:
                raise ValueError(f"Invalid {called}: {options[name]}")
    if options["differentiable"]:
        raise ValueError("differentiable must be False: a step is not recorded")
    if options["foreach"] and options.get("fused"):
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _counter_dtype() -> Any:
    return float64 if get_default_dtype() is float64 else float32


def _number(value: Any) -> Any:
    """Return a number, or the element of a tensor, as a Python number."""
    return value.item() if hasattr(value, "item") else value
