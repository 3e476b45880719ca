"""Fused optimizer steps: a parameter group is updated by one call of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.layers import optimizers as engine
from convcore.optim._composed import Composed


class Fused(Composed):
    """An optimizer that updates a parameter group by one call of the engine.

    A subclass describes a parameter's update in `_plan`.  A step that is recorded in the graph is
    composed of tensor operations instead, by `_rule`.
    """

    def _move(self, parameters: list[Tensor], options: dict[str, Any]) -> None:
        """Update parameters at once; their states stay as they are if the engine raises."""
        if options["differentiable"]:
            super()._move(parameters, options)
            return
        states = [self._state_of(parameter, options) for parameter in parameters]
        engine.take([self._plan(*each, options) for each in zip(parameters, states, strict=True)])
        for parameter, state in zip(parameters, states, strict=True):
            parameter._counter[0] += 1
            if state:
                _count(state)
                self.state[parameter].update(state)

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        """Return a parameter's update, which writes into ``state``; ``options`` are numbers."""
        raise NotImplementedError


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
