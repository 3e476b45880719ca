"""Calls of passes: plans are made once for arrays of one kind, and cached by all they depend on."""

import math
import tracemalloc

import numpy as np
import pytest

from convcore import engine
from convcore.backends import conv
from convcore.engine import reference
from convcore.engine.conv.call import CallPlan, ConvCall, Operand, cached_plan
from convcore.engine.conv.prepacked import PrepackedConvolution
from convcore.engine.conv.problem import FORWARD, PassPlan
from convcore.engine.conv.selection import current
from convcore.engine.runtime import memory


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("algorithm", ["winograd", "indirect", "im2col"])
def test_a_transposed_convolution_adds_its_bias(rng, algorithm, channels_last):
    x = rng.standard_normal((2, 24, 9, 9)).astype("f4")
    w = rng.standard_normal((24, 40, 3, 3)).astype("f4")
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    bias = rng.standard_normal(40).astype("f4")
    with conv.flags(algorithm=algorithm):
        plain = engine.conv_transpose(x, w, padding=1)
        y = engine.conv_transpose(x, w, bias, padding=1)
        np.testing.assert_allclose(y, plain + bias[:, None, None], atol=2e-5)
        one = engine.conv_transpose(x[0], w, bias, padding=1)
        np.testing.assert_allclose(one, y[0], atol=2e-4)
        with pytest.raises(ValueError, match="bias"):
            engine.conv_transpose(x, w, bias[:-1], padding=1)


def key_of(x, w, stride=1, padding=0):
    arrays = (x.shape, x.strides, x.dtype, w.shape, w.strides, w.dtype)
    return FORWARD, *arrays, current(), stride, padding, 1, 1


X, W = np.ones((2, 3, 6, 5)), np.ones((4, 3, 3, 2))


def test_arrays_of_one_kind_share_one_plan(rng):
    made = cached_plan(*key_of(X, W))
    other = rng.standard_normal(X.shape), rng.standard_normal(W.shape)
    assert cached_plan(*key_of(*other)) is made


@pytest.mark.parametrize(
    ("x", "w", "steps"),
    [
        (X[:1], W, {}),
        (X[..., ::-1], W, {}),
        (X.astype("f4"), W.astype("f4"), {}),
        (X, W.copy("F"), {}),
        (X, W, {"stride": 2}),
        (X, W, {"padding": 1}),
    ],
)
def test_shape_strides_dtype_and_steps_make_another_plan(x, w, steps):
    made = cached_plan(*key_of(X, W))
    assert cached_plan(*key_of(x, w, **steps)) is not made


def test_another_selection_of_algorithms_makes_another_plan():
    made = cached_plan(*key_of(X, W))
    with conv.flags(algorithm="im2col"):
        forced = cached_plan(*key_of(X, W))
    assert forced is not made
    assert forced.plan.algorithm == "im2col"


def test_the_same_selection_asked_for_in_other_words_makes_no_other_plan():
    made = cached_plan(*key_of(X, W))
    with conv.flags(algorithm=None, strict=False):
        assert cached_plan(*key_of(X, W)) is made


@pytest.mark.parametrize(
    "bad", [1.0, np.float32(1), True, (True, 1), (1.0, 1), (1, 1.0), [1.0, 1], np.ones(2)]
)
def test_a_cached_int_admits_nothing_that_equals_it(bad):
    for stride in (1, (1, 1)):
        engine.conv_forward(X, W, stride=stride)
    with pytest.raises(TypeError, match="stride"):
        engine.conv_forward(X, W, stride=bad)
    with pytest.raises(TypeError, match="stride"):
        PrepackedConvolution(W, stride=bad)(X)


def test_a_stride_that_only_later_holds_a_bool_is_taken_before_and_after_its_ints():
    x = np.ones((1, 3, 7, 7))  # of a shape that no other test has
    before = engine.conv_forward(x, W, stride=(1, True))
    np.testing.assert_array_equal(engine.conv_forward(x, W, stride=(1, 1)), before)
    np.testing.assert_array_equal(engine.conv_forward(x, W, stride=(1, True)), before)


@pytest.mark.parametrize("stride", [[1, 2], np.array([1, 2]), (1, 2)])
def test_steps_that_cannot_be_hashed_share_the_plan_of_a_tuple(stride):
    engine.conv_forward(X, W, stride=(1, 2))
    before = cached_plan.cache_info()
    y = engine.conv_forward(X, W, stride=stride)
    after = cached_plan.cache_info()
    np.testing.assert_array_equal(y, reference.conv_forward(X, W, stride=(1, 2)))
    assert (after.currsize, after.misses) == (before.currsize, before.misses)


@pytest.mark.parametrize("make", ["input_grad", "weight_grad", "transpose"])
def test_the_other_passes_are_cached_too(make):
    y = engine.conv_forward(X, W)
    calls = {
        "input_grad": lambda: engine.conv_input_grad(y, W, (6, 5)),
        "weight_grad": lambda: engine.conv_weight_grad(X, y, (3, 2)),
        "transpose": lambda: engine.conv_transpose(y, W),
    }
    calls[make]()
    before = cached_plan.cache_info()
    calls[make]()
    assert cached_plan.cache_info().hits == before.hits + 1
    assert cached_plan.cache_info().misses == before.misses


def test_a_kernel_that_fails_gives_its_workspace_back(monkeypatch):
    class Failing:
        def threads(self):
            return 2

        def run(self, *arguments):
            raise OverflowError("no kernel")

    taken = []
    monkeypatch.setattr(memory, "take", lambda n_bytes: taken.append(n_bytes) or "block")
    monkeypatch.setattr(memory, "give", taken.append)
    plan = PassPlan("none", "", 8, 1, scratch=3, shared=5)
    with pytest.raises(OverflowError, match="no kernel"):
        CallPlan(Failing(), plan, (1, 1, 1), X.dtype, False, False)(X, W, ())
    assert taken == [8 * (2 * 3 + 5), "block"]


def test_an_operand_gets_a_batch_axis_or_is_refused_by_name():
    one = Operand((3, 6, 5), (240, 40, 8), np.dtype("f8"))
    assert one.batched(2) == (True, one._replace(shape=(1, 3, 6, 5), strides=(0, 240, 40, 8)))
    assert one.batched(1) == (False, one)
    words = r"Expected 4D \(unbatched\) or 5D \(batched\) grad_output to conv3d, .*\[3, 6, 5\]"
    with pytest.raises(ValueError, match=words):
        one.batched(3, "grad_output")


def _bytes_of_forward(sizes, channels=16, kernel=3):
    """Return what one more plan of a layer takes, by Python's own count."""
    x = Operand((1, channels, *sizes), _strides((1, channels, *sizes)), FLOAT)
    w_shape = (channels, channels, kernel, kernel)
    key = (FORWARD, *x, w_shape, _strides(w_shape), FLOAT, current(), 1, 0, 1, 1)
    cached_plan(*key)  # what is made once for all
    cached_plan.cache_clear()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    cached_plan(*key)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def _strides(shape):
    return tuple(4 * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


FLOAT = np.dtype("float32")


def test_plans_take_memory_by_taps_and_not_by_the_size_of_maps():
    small, large = (_bytes_of_forward((n, n)) for n in (20, 2000))
    assert large < small + 1024
    assert large < 8192


def test_cache_of_plans_is_bounded():
    assert cached_plan.cache_info().maxsize * 8192 <= 32 << 20


def test_a_call_can_be_hashed_and_makes_its_plan():
    call = ConvCall(*key_of(X, W))
    assert call == ConvCall(*key_of(X, W)) and hash(call) == hash(ConvCall(*key_of(X, W)))
    assert call.steps == (1, 0, 1, 1)
    assert call.plan().shape == (2, 4, 4, 4)
    with pytest.raises(ValueError, match="expected input"):
        call._replace(groups=2).plan()


def test_empty_results_that_cannot_be_addressed_are_a_memory_error():
    """Found by atheris: an int of a kernel's job overflowed, of a result that has no element."""
    nothing, far = np.zeros((0, 1, 1, 1, 1)), 2**31 - 1
    calls = (
        lambda: engine.conv_transpose(nothing, np.zeros((1, 1, 2, 2, 2)), dilation=far),
        lambda: engine.conv_input_grad(nothing, np.zeros((1, 1, 1, 1, 1)), far, stride=far),
        lambda: engine.conv_weight_grad(nothing, nothing, (far,) * 3, padding=far // 2),
    )
    for call in calls:
        with pytest.raises(MemoryError, match="larger than any memory"):
            call()
