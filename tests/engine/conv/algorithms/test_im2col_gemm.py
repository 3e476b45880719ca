"""Forward pass and input gradient by gemm: which arrays it takes in place, and its phases."""

import numpy as np
import pytest

from convcore.engine.conv.algorithms import choose
from convcore.engine.conv.im2col import gemm
from convcore.engine.conv.problem import Problem, dense_problem
from convcore.engine.conv.selection import selection_of
from convcore.engine.geometry import make_geometry
from convcore.engine.runtime.layout import Layout, dense


def test_leading_dimension_beyond_blas_integers_is_an_error_not_a_wrap():
    # Two images of one pixel, 2**31 + 64 elements apart: a matrix in place that BLAS cannot take.
    g = make_geometry((2, 16, 1, 1), (1, 16, 1, 1))
    single = np.dtype("float32")
    far = Layout((2, 16, 1, 1, 1), (2**31 + 64, 1, 16, 16, 16))
    near = dense((1, 16, 1, 1, 1), True)
    blas = selection_of("pointwise")
    with pytest.raises(ValueError, match=str(2**31 + 64)):
        choose(Problem("forward", g, single, far, near, True), blas)
    gy = dense((2, 1, 1, 1, 1), True)
    with pytest.raises(ValueError, match=str(2**31 + 64)):
        choose(Problem("weight_grad", g, single, far, gy, True), blas)


def problem_of(x_shape, w_shape, pass_name="input_grad", channels_last=False, **steps):
    g = make_geometry(x_shape, w_shape, **steps)
    return dense_problem(pass_name, g, np.dtype("f4"), channels_last)


@pytest.mark.parametrize(
    ("sizes", "kernel", "stride"),
    [((7, 9), (3, 3), (2, 3)), ((8, 1), (2, 1), (2, 4)), ((5,), (2,), (3,)), ((6, 6), (3, 3), 1)],
)
def test_the_phases_write_every_input_of_an_image_once(sizes, kernel, stride):
    problem = problem_of((2, 4, *sizes), (4, 4, *kernel), stride=stride)
    phases = gemm.phases_of(problem)
    assert len(phases) == gemm.n_phases(problem.geometry)
    written = np.zeros((1,) * (3 - len(sizes)) + sizes, int)
    for phase in phases:
        counts = [line["count"] for line in phase["window"]["line"]]
        at = zip(phase["out_first"], phase["out_step"], strict=True)
        part = written[tuple(slice(first, None, step) for first, step in at)]
        part += 1
        assert part.shape == tuple(counts)
        assert phase["window"]["pixels"] == part.size
    assert (written == 1).all()


def test_a_forward_pass_is_one_phase_of_all_taps():
    problem = problem_of((2, 4, 7, 9), (4, 4, 3, 2), "forward", stride=2)
    (phase,) = gemm.phases_of(problem)
    assert phase["window"]["taps"] == 6
    assert phase["window"]["pixels"] == problem.geometry.pixels


def test_too_many_phases_and_few_channels_are_reasons_not_to_gather():
    assert (
        gemm.too_many_phases(problem_of((1, 32, 20, 20), (4, 32, 3, 3), stride=4).geometry) is None
    )
    many = problem_of((1, 32, 20, 20), (4, 32, 3, 3), stride=5).geometry
    assert gemm.too_many_phases(many).startswith("25 remainders of the stride")
    few = gemm.LEAST_GATHERED_CHANNELS - 1
    reason = gemm.wasteful_to_gather(problem_of((1, few, 9, 9), (4, few, 3, 3), padding=1))
    assert "too few to gather" in reason
    enough = gemm.LEAST_GATHERED_CHANNELS
    wide = problem_of((1, enough, 9, 9), (4, enough, 3, 3), padding=1)
    assert gemm.wasteful_to_gather(wide) is None
    # Of 8 x 8 inputs and 5 x 5 taps, 4 x 4 outputs are joined with all: 64 / 16 times the work.
    edges = problem_of((1, enough, 8, 8), (4, enough, 5, 5))
    assert "4.00 times the work" in gemm.wasteful_to_gather(edges)


@pytest.mark.parametrize("channels_last", [False, True])
def test_an_array_is_a_matrix_in_its_own_format_alone(channels_last):
    array = dense((2, 3, 1, 4, 5), channels_last)
    assert gemm.is_matrix(array, channels_last)
    assert not gemm.is_matrix(array, not channels_last)
    assert gemm.is_contiguous_weight(array, channels_last)
    assert not gemm.is_contiguous_weight(array, not channels_last)
    apart = array._replace(strides=tuple(2 * s for s in array.strides))
    assert not gemm.is_matrix(apart, channels_last)
    assert not gemm.is_contiguous_weight(apart, channels_last)


def test_largest_is_what_blas_must_count_to():
    problem = problem_of((2, 3, 10, 20), (5, 3, 3, 3), "forward")
    assert gemm.largest(problem) == 10 * 20
    far = dense((2, 3, 1, 10, 20), False)._replace(strides=(9000, 3000, 200, 20, 1))
    assert gemm.largest(problem, far) == 3000
    last = problem_of((2, 3, 10, 20), (5, 3, 3, 3), "forward", channels_last=True)
    assert gemm.largest(last) == 5 * 9
