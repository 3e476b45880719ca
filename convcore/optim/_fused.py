"""Fused optimizer steps: a parameter group is updated by one call of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.layers.optimizers import optimizers as engine
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
        pairs = list(zip(parameters, states, strict=True))
        plans = [self._plan(parameter, state, options) for parameter, state in pairs]
        # What can fail comes before the parameters change, or they would be ahead of their states.
        added = [pair for pair in pairs if not _holds(self.state.get(pair[0]), pair[1])]
        before = [(p, dict(self.state[p]) if p in self.state else None) for p, _ in added]
        steps = [state["step"] for state in states if "step" in state]
        counts = [step._array.copy() for step in steps]
        try:
            for parameter, state in added:
                self.state[parameter].update(state)
            for step in steps:
                step._array[...] += 1
                step._counter[0] += 1
            for parameter in parameters:
                parameter._counter[0] += 1
            engine.take(plans)
        except Exception:  # Ctrl-C comes when the parameters have moved: their states keep up
            for step, count in zip(steps, counts, strict=True):
                step._array[...] = count
            self._put_back(before)
            raise

    def _plan(
        self, parameter: Tensor, state: dict[str, Any], options: dict[str, Any]
    ) -> engine.Step:
        """Return a parameter's update, which writes into ``state``; ``options`` are numbers."""
        raise NotImplementedError


def arrays_of(parameter: Tensor) -> list[np.ndarray]:
    """Return the arrays of a parameter and of its gradient."""
    return [parameter._array, parameter._grad._array]  # type: ignore[union-attr]


def _holds(own: dict[str, Any] | None, state: dict[str, Any]) -> bool:
    """Return whether all of a state is in an optimizer's own, the same objects."""
    if own is None:
        return not state
    return all(own.get(name) is value for name, value in state.items())


def written(state: dict[str, Any], *names: str) -> list[np.ndarray]:
    """Return arrays of a state, whose versions are increased: the step writes into them."""
    for name in names:
        state[name]._counter[0] += 1
    return [state[name]._array for name in names]
