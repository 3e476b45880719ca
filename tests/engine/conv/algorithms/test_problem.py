"""What an algorithm is asked and answers: problems, plans and the arrays of each pass."""

import numpy as np
import pytest

from convcore.engine.conv import problem as problems
from convcore.engine.conv.problem import FORWARD, INPUT_GRAD, PASSES, WEIGHT_GRAD
from convcore.engine.geometry import make_geometry

G = make_geometry((2, 6, 9, 7), (8, 3, 3, 2), stride=2, padding=1, groups=2)
DOUBLE = np.dtype("f8")


def made(pass_name, channels_last=False):
    return problems.dense_problem(pass_name, G, DOUBLE, channels_last)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("pass_name", PASSES)
def test_the_result_lies_in_the_problems_format(pass_name, channels_last):
    output = made(pass_name, channels_last).output
    shape = {FORWARD: G.output_shape, INPUT_GRAD: G.input_shape, WEIGHT_GRAD: G.weight_shape}[
        pass_name
    ]
    assert output.shape == (*shape[:2], 1, *shape[2:])
    order = (0, 2, 3, 4, 1) if channels_last else (0, 1, 2, 3, 4)
    steps = [output.strides[axis] for axis in order]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == 1
    assert steps[0] * shape[0] == np.prod(shape)


def test_each_pass_takes_what_the_other_two_make():
    x, w, y = (made(name).output for name in (INPUT_GRAD, WEIGHT_GRAD, FORWARD))
    assert made(FORWARD)[3:5] == (x, w)
    assert made(INPUT_GRAD)[3:5] == (y, w)
    assert made(WEIGHT_GRAD)[3:5] == (x, y)


def test_passes_swap_reduction_and_output_channels():
    forward, gradient = made(FORWARD), made(INPUT_GRAD)
    assert (forward.c, forward.o) == (gradient.c, gradient.o) == (3, 4)
    assert (forward.reduction_channels, forward.output_channels) == (3, 4)
    assert (gradient.reduction_channels, gradient.output_channels) == (4, 3)
    assert forward.itemsize == 8


def test_bytes_of_a_plan_are_its_elements():
    plan = problems.PassPlan("none", "", 4, 1, scratch=3, shared=5, prepacked=7)
    assert (plan.scratch_bytes, plan.shared_bytes, plan.prepacked_bytes) == (12, 20, 28)


def test_a_kernels_job_has_the_plan_and_the_gradients_elements():
    job = made(WEIGHT_GRAD, True).job(problems.PassPlan("none", "", 8, 6, 1, o_block=3))
    assert job["items"] == 6
    assert job["channels_last"] is True
    assert (job["groups"], job["c"], job["o"], job["o_blocks"]) == (2, 3, 4, 2)
    assert job["size"] == np.prod(G.weight_shape)
    assert job["row"] * G.c_out == job["size"]
    assert job["work"] == G.multiply_adds


def test_an_algorithm_has_nothing_against_a_problem_unless_it_says_so():
    one = problems.Algorithm("one", PASSES, lambda problem: None)
    assert one.impossible(made(FORWARD)) is None
    assert one.unprofitable(made(FORWARD)) is None
