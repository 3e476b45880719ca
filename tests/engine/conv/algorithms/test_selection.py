"""Forced, forbidden and strict: what the user asks of the choice among algorithms."""

import contextlib
import threading
from importlib.util import find_spec

import numpy as np
import pytest
from draws import numbers
from no_memory import Failing

import convcore
from convcore import engine
from convcore.backends import conv
from convcore.engine import make_geometry, plan_conv
from convcore.engine.conv import selection as selections
from convcore.engine.conv.algorithms import ALGORITHMS, choose
from convcore.engine.conv.problem import PASSES, dense_problem
from convcore.engine.conv.selection import selection_of

DENSE = ((2, 16, 12, 12), (24, 16, 3, 3), {"padding": 1})
STRIDED = ((2, 16, 12, 12), (24, 16, 3, 3), {"padding": 1, "stride": 2})
POINTWISE = ((2, 16, 12, 12), (24, 16, 1, 1), {})
DEPTHWISE = ((2, 16, 12, 12), (16, 1, 3, 3), {"padding": 1, "groups": 16})
LAYERS = (DENSE, STRIDED, POINTWISE, DEPTHWISE)


def plans(layer, **flags):
    """Return the three plans of a layer in channels_last float32, under some flags."""
    x_shape, w_shape, steps = layer
    with conv.flags(**flags):
        plan = plan_conv(make_geometry(x_shape, w_shape, **steps), "float32", channels_last=True)
    return {name: getattr(plan, name) for name in PASSES}


@pytest.fixture
def restored():
    """Put the process's selection back."""
    before = selections._default
    yield
    selections._default = before


def test_algorithm_has_the_name_of_its_folder_or_file():
    folders = {each.prepare.__module__.split(".")[3] for each in ALGORITHMS}
    for algorithm in ALGORITHMS:
        places = [algorithm.name, *(f"{folder}.{algorithm.name}" for folder in folders)]
        assert any(find_spec(f"convcore.engine.conv.{place}") for place in places)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.name)
def test_forced_algorithm_is_taken_or_the_plan_says_why_not(layer, algorithm):
    for name, plan in plans(layer, algorithm=algorithm.name).items():
        if name not in algorithm.passes:
            assert dict(plan.refused)[algorithm.name] == f"it computes no {name}"
        elif plan.algorithm != algorithm.name:
            x_shape, w_shape, steps = layer
            g = make_geometry(x_shape, w_shape, **steps)
            reason = algorithm.impossible(dense_problem(name, g, np.dtype("float32"), True))
            assert reason and dict(plan.refused)[algorithm.name] == reason


@pytest.mark.parametrize("layer", LAYERS)
def test_forbidden_algorithm_is_not_taken_where_another_can(layer):
    for name, plan in plans(layer).items():
        other = plans(layer, forbidden=[plan.algorithm])[name]
        x_shape, w_shape, steps = layer
        problem = dense_problem(name, make_geometry(x_shape, w_shape, **steps), np.dtype("f"), True)
        able = [a.name for a in ALGORITHMS if name in a.passes and not a.impossible(problem)]
        assert (other.algorithm == plan.algorithm) == (able == [plan.algorithm])
        if able != [plan.algorithm]:
            assert dict(other.refused)[plan.algorithm] == "forbidden"


def test_every_other_algorithm_of_a_map_is_refused_with_a_reason():
    for layer in LAYERS:
        for name, plan in plans(layer).items():
            others = {a.name for a in ALGORITHMS if name in a.passes} - {plan.algorithm}
            assert {other for other, reason in plan.refused if reason} == others


def test_something_computes_every_map_whatever_is_forbidden():
    for layer in LAYERS:
        assert all(p.algorithm for p in plans(layer, forbidden=conv.algorithms).values())


def test_strict_mode_refuses_what_adds_up_no_products():
    g = make_geometry((2, 16, 12, 12), (24, 16, 3, 3), padding=1)
    for name in PASSES:
        problem = dense_problem(name, g, np.dtype("float32"), True)
        _, plan = choose(problem, selection_of(strict=True))
        indirect = {a.name for a in ALGORITHMS if not a.direct}
        assert plan.algorithm not in indirect
        possible = {a.name for a in ALGORITHMS if name in a.passes and not a.impossible(problem)}
        for refused in indirect & possible:
            assert dict(plan.refused)[refused] == "strict mode"


@pytest.mark.parametrize("layer", LAYERS)
def test_every_possible_algorithm_computes_the_same(layer, rng):
    x_shape, w_shape, steps = layer
    g = make_geometry(x_shape, w_shape, **steps)
    x, w, y = (numbers(rng, shape, "float64") for shape in (x_shape, w_shape, g.output_shape))
    calls = {
        "forward": lambda: engine.conv_forward(x, w, **steps),
        "input_grad": lambda: engine.conv_input_grad(y, w, x_shape[2:], **steps),
        "weight_grad": lambda: engine.conv_weight_grad(x, y, w_shape[2:], **steps),
    }
    for name, call in calls.items():
        wanted = call()
        for algorithm in ALGORITHMS:
            with conv.flags(algorithm=algorithm.name):
                np.testing.assert_allclose(call(), wanted, rtol=0, atol=1e-12, err_msg=name)


def test_call_is_chosen_for_under_the_selection_in_force(rng, monkeypatch):
    x, w = numbers(rng, (1, 16, 8, 8), "float32"), numbers(rng, (16, 16, 1, 1), "float32")
    seen = []
    call = engine.conv.call.CallPlan.__call__
    monkeypatch.setattr(
        engine.conv.call.CallPlan,
        "__call__",
        lambda self, *rest: seen.append(self.plan.algorithm) or call(self, *rest),
    )
    engine.conv_forward(x, w)
    with conv.flags(forbidden="pointwise"):
        engine.conv_forward(x, w)
    engine.conv_forward(x, w)
    assert seen == ["pointwise", "im2col", "pointwise"]


def test_backward_sees_the_selection_in_force_when_it_runs(monkeypatch):
    x = convcore.ones(1, 16, 8, 8, requires_grad=True)
    y = convcore.nn.functional.conv2d(x, convcore.ones(16, 16, 1, 1)).sum()
    seen = []
    call = engine.conv.call.CallPlan.__call__
    monkeypatch.setattr(
        engine.conv.call.CallPlan,
        "__call__",
        lambda self, *rest: seen.append(self.plan.algorithm) or call(self, *rest),
    )
    with conv.flags(forbidden=["indirect", "pointwise"]):
        y.backward()
    assert seen == ["im2col"]


def test_flags_nest_and_end_with_their_block(restored):
    conv.strict = True
    with conv.flags(algorithm="im2col"):
        assert conv.strict and conv.algorithm == "im2col"
        with conv.flags(
            strict=False, algorithm=None, forbidden=["gemm_col2im", "stride_decomposition"]
        ):
            assert not conv.strict and conv.algorithm is None
            assert conv.forbidden == {"gemm_col2im", "stride_decomposition"}
            conv.forbidden = []
            assert not conv.forbidden
        assert conv.strict and conv.algorithm == "im2col" and not conv.forbidden
    with pytest.raises(KeyError), conv.flags(strict=False):
        raise KeyError
    assert conv.strict and conv.algorithm is None


def test_process_setting_reaches_other_threads_and_flags_do_not(restored):
    def elsewhere():
        seen = []
        thread = threading.Thread(target=lambda: seen.append((conv.strict, conv.algorithm)))
        thread.start()
        thread.join()
        return seen[0]

    conv.strict = True
    with conv.flags(algorithm="im2col"):
        assert elsewhere() == (True, None)


@pytest.mark.parametrize(
    ("flags", "error", "words"),
    [
        ({"algorithm": "fft"}, ValueError, ("algorithm", "'fft'", "None", "'im2col'")),
        ({"algorithm": 3}, TypeError, ("algorithm", "3", "'im2col'")),
        ({"forbidden": ["im2col", "fft"]}, ValueError, ("forbidden", "'fft'", "'im2col'")),
        ({"forbidden": "fft"}, ValueError, ("forbidden", "'fft'", "'gemm_col2im'")),
        ({"forbidden": 1}, TypeError, ("forbidden", "1")),
        ({"strict": "no"}, TypeError, ("strict", "'no'", "True")),
        ({"fp32_precision": "fp8"}, ValueError, ("fp32_precision", "'fp8'", "'bf16'")),
        ({"fp32_precision": None}, TypeError, ("fp32_precision", "None", "'none'")),
        ({"algorithm": "im2col", "forbidden": "im2col"}, ValueError, ("im2col", "both")),
    ],
)
def test_selection_errors_name_the_argument_and_change_nothing(flags, error, words):
    with pytest.raises(error) as raised, conv.flags(**flags):
        pass
    assert all(word in str(raised.value) for word in words)
    text = "<convolutions: strict=False, algorithm=None, forbidden=[], fp32_precision='none'>"
    assert repr(conv) == text
    for name, value in flags.items():
        if len(flags) == 1:
            with pytest.raises(error):
                setattr(conv, name, value)


def test_equal_selections_are_one_object():
    with conv.flags(forbidden=["stride_decomposition", "im2col"]):
        one = selections.current()
    with conv.flags(forbidden=("im2col", "stride_decomposition")):
        assert selections.current() is one
    before = selections.current()
    with conv.flags(strict=before.strict):
        assert selections.current() is before
    assert selection_of() is selection_of(strict=False) is selection_of(None)


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("first", range(4))
def test_a_block_ends_as_it_began_where_memory_runs_out(monkeypatch, first, changed):
    before = selections.current()
    variable = Failing(selections._laid_over, first, changed)
    monkeypatch.setattr(selections, "_laid_over", variable)
    entered = []
    with contextlib.suppress(MemoryError), conv.flags(strict=True):
        entered.append(selections.current().strict)
        with conv.flags(forbidden="winograd"):
            entered.append(selections.current().forbidden)
        assert selections.current().strict and not selections.current().forbidden
    assert selections.current() is before
    assert len(entered) == min(first, 2)
