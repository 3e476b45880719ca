"""Junk for every public function: run in a child process, because a crash is what it looks for.

Started as ``python -c "import fuzz; fuzz.run(...)"`` by test_errors.py.  Every call is written to
stderr before it is made, so that the last line tells what killed the process.
"""

from __future__ import annotations

import decimal
import fractions
import itertools
import resource
import sys
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from convcore import engine

F = "float64"


def valid() -> dict[str, dict[str, object]]:
    """Return arguments that each public function takes, by parameter name."""
    x, w, b = np.ones((2, 4, 5, 6), F), np.ones((6, 2, 3, 2), F), np.ones(6, F)
    y = np.ones((2, 6, 5, 4), F)
    steps = {"stride": (1, 2), "padding": 1, "dilation": 1, "groups": 2}
    patches = {"stride": (1, 2), "padding": [(1, 0), (0, 1)], "dilation": 1}
    conv = {"input": x, "weight": w, "bias": b} | steps
    transpose = {"input": y, "weight": w, "bias": np.ones(4, F), "output_padding": 0} | steps
    return {
        "conv_forward": conv,
        "conv_input_grad": {"grad_output": y, "weight": w, "input_size": (5, 6)} | steps,
        "conv_weight_grad": {"input": x, "grad_output": y, "kernel_size": (3, 2)} | steps,
        "conv_bias_grad": {"grad_output": y},
        "conv1d": {
            "input": x[0],
            "weight": np.ones((2, 5, 3), F),
            "bias": np.ones(2, F),
            "stride": 2,
        },
        "conv2d": conv,
        "conv3d": {"input": np.ones((1, 6, 4, 5, 6), F), "weight": w[None], "padding": 1},
        "conv_transpose1d": {"input": x[0], "weight": np.ones((5, 2, 3), F), "stride": 2},
        "conv_transpose2d": transpose,
        "conv_transpose3d": {"input": np.ones((1, 2, 2, 3, 2), F), "weight": np.ones((2,) * 5, F)},
        "im2col": {"input": x, "kernel_size": (3, 2), "channels_last": False} | patches,
        "col2im": {
            "columns": np.ones((2, 24, 12), F),
            "input_size": (5, 6),
            "kernel_size": (3, 2),
            "channels_last": False,
        }
        | patches,
        "im2col_view": {"input": x, "kernel_size": (3, 2), "stride": 1, "dilation": 2},
        "unfold": {"input": x, "kernel_size": (3, 2)} | patches,
        "fold": {"input": np.ones((2, 24, 12), F), "output_size": (5, 6), "kernel_size": (3, 2)}
        | patches,
        "zero_pad": {"array": x, "padding": [(1, 2), (0, 1)]},
        "unpad": {"array": x, "padding": [(1, 2), (0, 1)]},
        "dilate": {"array": x, "dilation": (2, 3)},
        "rotate180": {"kernel": w},
        "matmul": {"a": x, "b": np.ones((6, 3), F)},
    }


def valid_around() -> dict[str, dict[str, object]]:
    """Return the same for pools and pads, whose parameters are not all sizes and steps."""
    x = np.ones((2, 4, 5, 6), F)
    return {
        "max_pool": {"input": x, "kernel_size": 2, "stride": (1, 2), "padding": 1, "dilation": 1}
        | {"ceil_mode": False},
        "adaptive_max_pool": {"input": x, "output_size": (2, 3)},
        "scatter_pixels": {
            "values": np.ones((2, 4, 2, 3), F),
            "indices": np.zeros((2, 4, 2, 3), np.int64),
            "input_size": (5, 6),
        },
        "place_pixels": {
            "values": np.ones((2, 4, 2, 3), F),
            "indices": np.zeros((2, 4, 2, 3), np.int64),
            "input_size": (5, 6),
        },
        "interpolate": {"input": x, "output_size": (2, 9), "mode": "bilinear"}
        | {"align_corners": False, "antialias": False},
        "interpolate_grad": {"grad_output": x, "input_size": (2, 9), "mode": "bilinear"}
        | {"align_corners": False, "antialias": False},
        "gather_pixels": {"input": x, "indices": np.zeros((2, 4, 2, 3), np.int64), "rank": 2},
        "avg_pool": {"input": x, "kernel_size": 2, "stride": (1, 2), "padding": 1}
        | {"ceil_mode": False, "count_include_pad": True, "divisor_override": None},
        "avg_pool_grad": {"grad_output": np.ones((2, 4, 4, 3), F), "input_size": (5, 6)}
        | {"kernel_size": 2, "stride": (1, 2), "padding": 0},
        "adaptive_avg_pool": {"input": x, "output_size": (2, 3)},
        "adaptive_avg_pool_grad": {"grad_output": np.ones((2, 4, 2, 3), F), "input_size": (5, 6)},
        "pad": {"array": x, "padding": [(1, 0), (0, 1)], "mode": "constant", "value": 1.0},
        "pad_grad": {"grad_output": x, "padding": [(1, 0), (0, 1)], "mode": "constant"},
    }


VALID = valid()
ALL = VALID | valid_around()
PARAMETERS = [
    (function, name)
    for function, arguments in VALID.items()
    for name, value in arguments.items()
    if not isinstance(value, np.ndarray) and name != "channels_last"
]
DTYPES = ("float32", F, "complex64", "complex128", "float16", "int64", "bool", "object", ">f8")
HUGE = (2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 2**100)
ALLOWED = (TypeError, ValueError, MemoryError, OverflowError)


def call(function: str, arguments: dict[str, object]) -> None:
    """Make one call; raises only if it raises what it should not."""
    shown = {k: v.shape if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    print(function, shown, file=sys.stderr, flush=True)
    try:
        result = getattr(engine, function)(**arguments)
    except ALLOWED as error:
        if not isinstance(error, MemoryError) and not str(error):
            raise AssertionError("an error without a text") from error
    else:
        for array in result if isinstance(result, tuple) else (result,):
            assert isinstance(array, np.ndarray)
            assert array.size < 1 << 27


def huge_parameters() -> None:
    """Put numbers that no machine integer holds, and as many, where sizes and steps go."""
    parameters = PARAMETERS + [(f, n) for f in sorted(ALL.keys() - VALID) for n in ALL[f]]
    for (function, name), huge in itertools.product(parameters, HUGE):
        for value in (huge, (huge, 1), (1, huge), [(huge, 0), (0, huge)], -huge, range(huge)):
            call(function, ALL[function] | {name: value})


SHAPES = st.lists(st.sampled_from((0, 1, 2, 3, 4, 5, 6)), max_size=6).map(tuple)
SCALARS = st.sampled_from(
    [
        *(0, 1, 2, 3, -1, True, None, 1.0, 1.5, np.nan, np.inf, 1j),
        *("same", "valid", "", "1", b"same"),
        *(np.int8(1), np.uint64(2**64 - 1), np.float32(1), np.True_, np.array(2), np.array(2.0)),
        *(object(), ..., slice(1), int, decimal.Decimal(1), fractions.Fraction(1), iter((1, 2))),
        *HUGE,
        *(-huge for huge in HUGE),
    ]
)
SEQUENCES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.tuples(inner),
    max_leaves=8,
)
OTHERS = st.sampled_from(
    [
        *({}, {1: 2}, {0: 1, 1: 1}, set(), {1, 2}, range(2), range(2**31), "12"),
        *(np.ones(2), np.array([1, 2]), np.array([[1, 2], [3, 4]]), np.array([1, 2], object)),
        *(np.empty((0, 2)), np.array("same"), memoryview(b"12"), bytearray(b"12")),
    ]
)


@st.composite
def arrays(draw) -> np.ndarray:
    """Draw an array of any shape and many dtypes, contiguous or not."""
    array = np.zeros(draw(SHAPES), draw(st.sampled_from((F, F, F, *DTYPES))))
    if draw(st.booleans()) and array.ndim:
        array = array[:: draw(st.sampled_from((1, -1, 2)))].T
    return array


@given(data=st.data())
def junk(data) -> None:
    """Take arguments that are valid and change one to three of them to anything at all."""
    function = data.draw(st.sampled_from(sorted(ALL)))
    arguments = dict(ALL[function])
    names = st.lists(st.sampled_from(sorted(arguments)), min_size=1, max_size=3, unique=True)
    for name in data.draw(names):
        likely = arrays() if isinstance(arguments[name], np.ndarray) else SEQUENCES
        other = st.one_of(likely, likely, likely, OTHERS, arrays(), SCALARS)
        arguments[name] = data.draw(other)
    call(function, arguments)


@given(left=SHAPES, right=SHAPES, sizes=st.lists(st.integers(-1, 4), max_size=4))
def any_shapes(left, right, sizes) -> None:
    """Call the functions of two arrays with arrays of any two shapes."""
    x, w = np.ones(left), np.ones(right)
    call("conv_forward", {"input": x, "weight": w})
    call("conv_input_grad", {"grad_output": x, "weight": w, "input_size": sizes})
    call("conv_weight_grad", {"input": x, "grad_output": w, "kernel_size": sizes})
    call("conv_bias_grad", {"grad_output": x})
    call("conv_transpose2d", {"input": x, "weight": w})
    call("im2col", {"input": x, "kernel_size": sizes})
    call("col2im", {"columns": x, "input_size": sizes, "kernel_size": sizes})
    call("im2col_view", {"input": x, "kernel_size": sizes})
    call("matmul", {"a": x, "b": w})


def run(name: str, cases: int) -> None:
    """Run one of the fuzzers in at most 1 GiB more than is in use now, so that the absurd fails."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
    if name == "huge_parameters":
        huge_parameters()
        return
    examples(cases)(globals()[name])()
