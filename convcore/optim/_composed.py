"""Optimizer steps written in tensor operations, which can be recorded in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.creation import tensor
from convcore._tensor.dtypes import float32, float64, get_default_dtype
from convcore.autograd.grad_mode import enable_grad, mode
from convcore.autograd.views import check_writable
from convcore.functions.elementwise.complex_parts import view_as_complex, view_as_real
from convcore.optim._loaded import ARRAYS, NUMBERS, check_states
from convcore.optim.optimizer import Optimizer


class Composed(Optimizer):
    """An optimizer that computes a parameter's new value and state by tensor operations.

    A subclass makes a parameter's state in `_start`, and computes its new value in `_rule`.
    """

    # Options missing from states of older versions of PyTorch, and their values then.
    _later_options: ClassVar[dict[str, Any]] = {
        "maximize": False,
        "foreach": None,
        "differentiable": False,
    }
    _decoupled = False  # whether weight decay always shrinks the parameter itself
    _takes_complex = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
        for own in self.state.values():
            for name in NUMBERS.intersection(own) if isinstance(own, dict) else ():
                if isinstance(own[name], int | float):
                    own[name] = counter(float(own[name]))

    def _check_loaded(self, state: dict[Any, Any]) -> None:
        check_states(state)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters that have a gradient; see `Optimizer.step`."""
        differentiable = bool(self.defaults.get("differentiable"))
        # Not a context manager, which Ctrl-C may end before it has put anything back.
        recording = mode.enabled
        try:
            mode.enabled = differentiable
            loss = self._loss(closure)
            for parameter in self._all_parameters():
                if parameter._grad is not None:
                    check_writable(parameter)
                    self._check_shapes(parameter)
            for group in self.param_groups:
                options = group if differentiable else numbers_of(group)
                parameters = [p for p in group["params"] if p._grad is not None]
                if options.get("fused"):
                    _check_fused(parameters)
                if len({*parameters}) == len(parameters):
                    self._move(parameters, options)
                else:  # a parameter listed twice is updated twice
                    for parameter in parameters:
                        self._move([parameter], options)
        finally:
            mode.enabled = recording
        return loss

    def _loss(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _move(self, parameters: list[Tensor], options: dict[str, Any]) -> None:
        """Update parameters; a parameter and its state stay as they are if its rule raises."""
        for parameter in parameters:
            state = self._state_of(parameter, options)
            if "step" in state:
                state["step"] = state["step"] + 1
            real = {name: as_real(value) for name, value in state.items()}
            # A recorded rule may save the value, which `copy_` changes.
            value = parameter.clone() if options.get("differentiable") else parameter
            value, gradient = as_real(value), as_real(parameter.grad)
            if options.get("maximize"):
                gradient = -gradient
            value, gradient = self._decayed(value, gradient, options)
            value = self._rule(value, gradient, real, options)
            value = _like(value, parameter)
            after = {name: _like(value, state.get(name)) for name, value in real.items()}
            self._commit(parameter, value, after)

    def _commit(self, parameter: Tensor, value: Tensor, state: dict[str, Any]) -> None:
        """Change a parameter and its state, or neither."""
        before = dict(self.state[parameter]) if parameter in self.state else None
        try:
            self.state[parameter].update(state)
            parameter.copy_(value)
        except Exception:  # Ctrl-C comes when the value is there: the state keeps up
            self._put_back([(parameter, before)])
            raise

    def _put_back(self, before: list[tuple[Tensor, dict[str, Any] | None]]) -> None:
        """Undo that states were added, or changed, or had entries added."""
        for parameter, state in before:
            if state is None:
                self.state.pop(parameter, None)
            else:
                self.state[parameter] = state

    def _state_of(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of a parameter's state, or its first state."""
        return dict(self.state.get(parameter) or self._start(parameter, options))

    def _decayed(
        self, value: Tensor, gradient: Tensor, options: dict[str, Any]
    ) -> tuple[Tensor, Tensor]:
        """Return a parameter's value and gradient after weight decay."""
        decay = options.get("weight_decay", 0)
        if not decay:
            return value, gradient
        if self._decoupled or options.get("decoupled_weight_decay"):
            return value * (1 - options["lr"] * decay), gradient
        return value, gradient + decay * value

    def _check_shapes(self, parameter: Tensor) -> None:
        """Raise RuntimeError if the gradient or the state is of another shape.

        The state may be another net's, and ``data`` may have been assigned since.
        """
        if not self._takes_complex and parameter.is_complex():
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        shape = parameter._array.shape
        state = self.state[parameter].items() if parameter in self.state else ()
        arrays = [(name, value) for name, value in state if name in ARRAYS]
        for name, value in (("grad", parameter._grad), *arrays):
            if isinstance(value, Tensor) and value._array.shape != shape:
                raise RuntimeError(
                    f"{name} must have the shape of its parameter, {list(shape)}, got "
                    f"{list(value._array.shape)}"
                )

    def _start(self, parameter: Tensor, options: dict[str, Any]) -> dict[str, Any]:
        """Return a parameter's state before its first step; empty if there is none."""
        return {}

    def _rule(
        self, value: Tensor, gradient: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> Tensor:
        """Return a parameter's new value, and put new tensors into its ``state``.

        The step is counted, the gradient's sign and weight decay are seen to.  Complex tensors come
        as real ones with a last axis of two.
        """
        raise NotImplementedError


def begin(parameter: Tensor, *names: str) -> dict[str, Any]:
    """Return a first state: step count 0, and zeros in the parameter's format under ``names``."""
    zeros = {name: wrap(np.zeros_like(parameter._array)) for name in names}
    return {"step": counter(0.0), **zeros}


def counter(value: float) -> Tensor:
    """Return a number of a state, such as the step count, as a tensor."""
    return tensor(value, dtype=float64 if get_default_dtype() is float64 else float32)


def as_real(value: Any) -> Any:
    """Return a complex tensor as a real one with a last axis of two; anything else as it is."""
    return view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def _like(value: Any, model: Any) -> Any:
    """Return a new value as a complex tensor if the old one, ``model``, was one."""
    return view_as_complex(value) if isinstance(model, Tensor) and model.is_complex() else value


def _check_fused(parameters: list[Tensor]) -> None:
    for p in parameters:
        if p.is_meta or not p.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported "
                f"devices: ['cpu'] but {p.dtype} and {p.device.type}"
            )


def numbers_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return options with tensors of one element as Python numbers."""
    return {name: _number(value) for name, value in options.items()}


def _number(value: Any) -> Any:
    """Return a number, or the element of a tensor, as a Python number."""
    return value.item() if hasattr(value, "item") else value
