"""What the tests of single algorithms share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from draws import lay_out, numbers

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.call import CallPlan
from convcore.engine.conv.problem import PassPlan


@pytest.fixture
def forced(monkeypatch, rng) -> Callable[..., PassPlan]:
    """Return a check that one algorithm computes a pass of small integers exactly."""
    taken = []

    def call(self, *arguments, run=CallPlan.__call__, **prepacked):
        taken.append(self.plan)
        return run(self, *arguments, **prepacked)

    monkeypatch.setattr(CallPlan, "__call__", call)

    def check(
        algorithm, pass_name, x_shape, w_shape, dtype="float32", layout="contiguous", **steps
    ):
        """Compare to the oracle; return the plan, which must be the algorithm's."""
        g = engine.make_geometry(x_shape, w_shape, **steps)
        x, w, y = (
            lay_out(numbers(rng, shape, dtype, integers=True), layout, rng)
            for shape in (g.input_shape, g.weight_shape, g.output_shape)
        )
        compute = {
            "forward": lambda on: on.conv_forward(x, w, **steps),
            "input_grad": lambda on: on.conv_input_grad(y, w, x_shape[2:], **steps),
            "weight_grad": lambda on: on.conv_weight_grad(x, y, w_shape[2:], **steps),
        }[pass_name]
        with conv.flags(algorithm=algorithm):
            found = compute(engine)
        assert taken[-1].algorithm == algorithm, dict(taken[-1].refused).get(algorithm)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, compute(reference))
        return taken[-1]

    return check
