"""Random calls of every public function: right, or one clear error; the short form.

The long form is ``python tests/fuzz/functions.py --calls 100000``.
"""

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scripts import fuzz_script

import convcore
from convcore import engine

functions = fuzz_script("functions")

# Calls of the short form.
CALLS = 2500


@pytest.mark.subprocess
def test_random_calls_are_right_or_clear_errors(tmp_path):
    found = functions.hunt(0, CALLS, "", False, tmp_path)
    assert found == []


@pytest.mark.subprocess
def test_calls_with_an_int_far_out_are_right_or_clear_errors(tmp_path):
    assert functions.hunt(0, CALLS, "", False, tmp_path, integers=True) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.diag(-(2**63)),
        lambda x: x.diagonal(-(2**63)),
        lambda x: convcore.diag(x, 2**63 - 1),
        lambda x: x.unfold(0, 2, 2**63 - 1)[1:],
    ],
)
def test_offsets_and_steps_far_out_leave_nothing(call):
    assert call(convcore.ones(2, 3)).numel() == 0


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: x.sub([1, 2], alpha=10**30), "unsupported operand"),
        (lambda x: x.long().bincount(1.0), "must be"),
        (lambda x: x.tile(2**62), "overflowed"),
        (lambda x: x.repeat_interleave(convcore.full((9,), 2**61), 0), "more elements"),
        (lambda x: convcore.linalg.pinv((x - math.inf).reshape(3, 3)), "non-finite"),
    ],
)
def test_what_would_take_too_much_or_is_no_tensor_is_refused(call, what):
    with pytest.raises((RuntimeError, TypeError), match=what):
        call(convcore.arange(9.0))


@pytest.mark.parametrize("name", ["sum", "matmul", "clamp", "gather", "split", "conv2d"])
def test_random_calls_agree_with_pytorch(torch, name):
    place = [f for f in functions.public_functions() if f.name == name][-1]
    wrong = [(seed, functions.finding(seed, place, compare=True)) for seed in range(40)]
    assert [one for one in wrong if one[1]] == []


def test_a_seed_makes_the_same_call_again():
    for seed in (3, 44, 1789):
        first, second = (functions.Draw(seed) for _ in range(2))
        arrays = first.array(), second.array()
        assert arrays[0].dtype == arrays[1].dtype and arrays[0].strides == arrays[1].strides
        assert arrays[0].tobytes() == arrays[1].tobytes()


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (KeyError("x"), "KeyError"),
        (OverflowError("large"), "OverflowError"),
        (TypeError("'int' object has no attribute '_array'"), "internal"),
        (RecursionError("deep"), "RecursionError"),
        (ValueError(), "no text"),
        (TypeError("argument 'dim' must be int"), ""),
    ],
)
def test_errors_are_judged_by_class_and_text(error, what):
    assert functions._bad_error(error).startswith(what)
    assert bool(functions._bad_error(error)) == bool(what)


def test_a_hang_and_a_crash_are_findings(tmp_path, monkeypatch):
    child = tmp_path / "child.py"
    child.write_text(
        "import os, signal, sys\n"
        "only, compare, integers, start, stop, progress = sys.argv[2:]\n"
        "if int(start) > 1: sys.exit(0)\n"
        "open(progress, 'w').write(start.zfill(20))\n"
        "os.kill(os.getpid(), signal.SIGALRM if start == '0' else signal.SIGSEGV)\n"
    )
    monkeypatch.setattr(functions, "HERE", Path(child))
    found = functions.hunt(0, 4, "", False, tmp_path)
    assert [(seed, what.split(":")[0]) for seed, _, what in found] == [
        (0, "hangs"),
        (1, "dies of SIGSEGV"),
    ]


def test_far_integers_are_put_where_integers_are(monkeypatch):
    monkeypatch.setattr(functions, "INTEGERS", True)
    far = set()
    for seed in range(300):
        draw = functions.Draw(seed)
        indices = functions.Placeholder(np.zeros((2, 2), np.int64))
        args, kwargs = [functions.Placeholder(np.ones(2)), indices], {"dim": [0, 1], "k": 1}
        functions._enlarge(draw, args, kwargs)
        ints = [*args[1].array.flat, *kwargs["dim"], kwargs["k"]]
        (place,) = [n for n, value in enumerate(ints) if value in functions.HUGE]
        far.add(place)
        assert not indices.array.any()
    assert far == set(range(7))


def test_differences_are_told(torch):
    for ours, theirs, what in (
        (convcore.ones(2), torch.ones(3), "shape"),
        (convcore.ones(2), torch.ones(2).long(), "dtype"),
        (convcore.ones(2), torch.zeros(2), "value"),
        ((convcore.ones(2),), (torch.ones(2), torch.ones(2)), "1 results"),
        (1, 2, "1, not 2"),
    ):
        assert next(functions._differences(ours, theirs)).startswith(what)
    assert find_spec("torch") and not [*functions._differences(convcore.ones(2), torch.ones(2))]


def test_arrays_lie_in_memory_as_they_are_said_to():
    values = np.arange(12.0).reshape(3, 4)
    for lay in ("turned", "stepped", "backward", "unaligned", "readonly"):
        lying = functions._laid(values.copy(), lay)
        assert np.array_equal(lying, values), lay
    assert not functions._laid(values.copy(), "unaligned").flags.aligned
    assert functions._laid(values, "repeated").strides[0] == 0


def test_calls_under_autocast_are_compared(torch):
    """A call whose dtype would be another without it."""
    mm = functions.Function("", "mm")
    ones = functions.Placeholder(np.ones((2, 2), "f"))
    for casting, dtype in (("bfloat16", "bfloat16"), ("float64", "float32"), ("", "float32")):
        for library in (convcore, torch):
            found, error = functions._called(mm, library, [ones], {}, casting)
            assert error is not None  # a placeholder is no tensor
            operands = functions.built(library, [ones, ones])
            found, error = functions._called(mm, library, operands, {}, casting)
            assert error is None and str(found.dtype) == f"torch.{dtype}"
    assert {functions.drawn(seed, mm)[0].casting for seed in range(60)} == {"", *functions.CASTING}


def test_the_engine_refuses_what_guided_calls_found():
    with pytest.raises(ValueError, match="antialias needs"):
        engine.interpolate(np.ones((1, 1, 4), "f"), [2], antialias=True)
    nothing, weight = np.ones((0, 4, 4, 4), "f"), np.ones((4, 4, 4, 4), "f")
    with pytest.raises(MemoryError, match="larger than any"):
        engine.conv_forward(nothing, weight, padding=2**31 - 1)
    with pytest.raises(MemoryError, match="larger than any"):
        engine.adaptive_avg_pool_grad(np.ones((1, 1, 1, 1, 1), "f"), (2**31 - 1,) * 3)
