"""What the optimizers share: options that are checked, and steps that the engine takes at once."""

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
    """An optimizer whose groups are stepped by one call of the engine.

    A subclass says in `_plan` what a parameter's step is.
    """

    # Options that states did not always have, and what they are then.
    _later_options: ClassVar[dict[str, Any]] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
        for remembered in self.state.values():
            step = remembered.get("step") if isinstance(remembered, dict) else None
            if step is not None and not isinstance(step, Tensor):
                remembered["step"] = tensor(float(step), dtype=_counter_dtype())

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; see `Optimizer.step`. Those without a gradient stay."""
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
            else:  # one that is there twice is stepped twice
                for parameter in parameters:
                    self._move([parameter], options)
        return loss

    def _move(self, parameters: list[Tensor], options: dict[str, Any]) -> None:
        """Step parameters at once; their states stay as they are if an option is refused."""
        states = [dict(self.state[p]) if p in self.state else {} for p in parameters]
        engine.take([self._plan(*each, options) for each in zip(parameters, states, strict=True)])
        for parameter, state in zip(parameters, states, strict=True):
            parameter._counter[0] += 1
            if state:
                _count(state)
                self.state[parameter].update(state)

    def _check_shapes(self, parameter: Tensor) -> None:
        """Raise RuntimeError if the gradient, or what is remembered, is of another shape.

        A state may have been loaded that is another net's, and ``data`` may have been assigned.
        """
        shape = parameter._array.shape
        remembered = self.state[parameter].items() if parameter in self.state else ()
        for name, value in (("grad", parameter._grad), *remembered):
            if name != "step" and isinstance(value, Tensor) and value._array.shape != shape:
                raise RuntimeError(
                    f"{name} must have the shape of its parameter, {list(shape)}, got "
                    f"{list(value._array.shape)}"
                )

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        """Return a parameter's step; begin its state. ``options`` are its group's, as numbers."""
        raise NotImplementedError

    def _remember(self, state: dict[str, Any], names: Iterable[str], parameter: Tensor) -> None:
        """Begin a state: no steps so far, and zeros under ``names``."""
        state["step"] = tensor(0.0, dtype=_counter_dtype())
        for name in names:
            state[name] = zeros_like(parameter)


def zeros_like(parameter: Tensor) -> Tensor:
    """Return a tensor of zeros that lies in memory as the parameter does."""
    return wrap(np.zeros_like(parameter._array))


def arrays_of(parameter: Tensor) -> list[np.ndarray]:
    """Return the arrays of a parameter and of its gradient."""
    return [parameter._array, parameter._grad._array]  # type: ignore[union-attr]


def _count(state: dict[str, Any]) -> None:
    """Count a step in a parameter's state, if that has a counter."""
    if "step" in state:
        state["step"]._array[...] += 1
        state["step"]._counter[0] += 1


def written(state: dict[str, Any], *names: str) -> list[np.ndarray]:
    """Return the arrays of a state that a step is about to change."""
    for name in names:
        state[name]._counter[0] += 1
    return [state[name]._array for name in names]


def check_options(**options: tuple[str, Any]) -> None:
    """Raise for the first option that is no number, or below 0.

    Each is name = (what it is called, its value).
    """
    for name, (called, value) in options.items():
        check_numbers(**{name: value})
        if not value >= 0:
            raise ValueError(f"Invalid {called}: {value}")


def check_lr(lr: Any) -> None:
    """Raise ValueError if a step size is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_implementation(
    differentiable: bool, foreach: bool | None = None, fused: bool | None = None
) -> None:
    """Raise where PyTorch's implementations exclude each other, or a step would be recorded."""
    if differentiable:
        raise ValueError("differentiable must be False: a step is not recorded")
    if foreach and fused:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def _counter_dtype() -> Any:
    return float64 if get_default_dtype() is float64 else float32


def _number(value: Any) -> Any:
    """Return a number, or the element of a tensor, as a Python number."""
    return value.item() if hasattr(value, "item") else value
