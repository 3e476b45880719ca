"""NaN, infinities and the ends of each type, in each operator, beside two other implementations."""

import warnings

import numpy as np
import pytest
from onnx_nets import session_of

import convcore

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from convcore.onnx import load  # noqa: E402

NAN, INF = np.nan, np.inf
SPECIAL = np.array(
    [NAN, INF, -INF, 0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e38, -1e38, 1e-45, 88.8, -104],
    np.float32,
)
PAIRS = [each.ravel() for each in np.meshgrid(SPECIAL, SPECIAL)]
ROWS = np.array(
    [
        *([NAN, 1, 2], [1, NAN, 0], [0, 1, NAN], [INF, 1, 2], [-INF, 1, 2], [INF, -INF, 0]),
        *([-INF, -INF, -INF], [INF, INF, INF], [1e38, 1e38, 1e38], [0, -0.0, 0], [3, 3, 1]),
    ],
    np.float32,
)
AXIS = np.array([1])
UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf"),
    *("Exp", "Floor", "IsNaN", "IsInf", "Log", "Neg", "Reciprocal", "Round", "Sign", "Sin"),
    *("Sinh", "Sqrt", "Tan", "Tanh", "Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Celu"),
    *("Selu", "Gelu", "Sigmoid", "HardSigmoid", "HardSwish", "Mish", "Softplus", "Softsign"),
    *("Shrink", "Identity"),
)
BINARY = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"),
    *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"),
)
REDUCTIONS = ("Max", "Min", "Sum", "Mean", "Prod", "L1", "L2", "LogSum", "SumSquare", "LogSumExp")
# An operator, its inputs, its attributes.
CASES = [
    *((op, [SPECIAL], {}) for op in UNARY),
    *((op, PAIRS, {}) for op in BINARY),
    ("Mod", PAIRS, {"fmod": 1}),
    *((f"Reduce{op}", [ROWS, AXIS], {}) for op in REDUCTIONS),
    *((op, [ROWS], {}) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    *(("ThresholdedRelu", [SPECIAL], {"alpha": alpha}) for alpha in (-1.0, 0.0, 2.0)),
    *(("LeakyRelu", [SPECIAL], {"alpha": alpha}) for alpha in (-1.0, 0.0, 2.0)),
    *(("Celu", [SPECIAL], {"alpha": alpha}) for alpha in (-2.0, 2.0)),
    *(("Elu", [SPECIAL], {"alpha": alpha}) for alpha in (-1.0, 0.0)),
    *(("HardSigmoid", [SPECIAL], {"alpha": alpha}) for alpha in (-0.2, 0.0)),
    *(("Shrink", [SPECIAL], {"bias": 0.5, "lambd": lambd}) for lambd in (-1.0, 1.0)),
    ("Gelu", [SPECIAL], {"approximate": "tanh"}),
    ("IsInf", [SPECIAL], {"detect_negative": 0}),
    ("Clip", [SPECIAL], {}),
    ("Clip", [SPECIAL, np.float32(-1), np.float32(1)], {}),
    ("Clip", [SPECIAL, np.float32(2), np.float32(1)], {}),
    ("PRelu", [SPECIAL, np.float32([-2])], {}),
    ("CumSum", [ROWS, np.array(1)], {}),
    ("MatMul", [ROWS, ROWS.T.copy()], {}),
    ("Gemm", [ROWS, ROWS.T.copy(), np.full((11, 11), NAN, np.float32)], {"beta": 0.0}),
    ("Gemm", [ROWS, ROWS.T.copy()], {"alpha": 0.0}),
    ("Where", [SPECIAL > 0, SPECIAL, SPECIAL[::-1].copy()], {}),
    ("NonZero", [SPECIAL], {}),
    ("LpNormalization", [ROWS[3:]], {"axis": 1}),
    ("LayerNormalization", [ROWS, np.ones(3, np.float32), np.zeros(3, np.float32)], {}),
    *(("Cast", [SPECIAL], {"to": to}) for to in (1, 2, 3, 6, 7, 9, 10, 11)),
    *(
        (op, [np.array([np.iinfo(d).min, np.iinfo(d).max, 0, 1, 7], d)], {})
        for d in (np.int32, np.int64)
        for op in ("Abs", "Neg", "Sign")
    ),
]


def model_of(op, arrays, options):
    names = [f"x{k}" for k in range(len(arrays))]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **options)],
        "g",
        infos,
        [helper.make_empty_tensor_value_info("y")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def by_runtime(model, arrays):
    pytest.importorskip("onnxruntime")
    session = session_of(model.SerializeToString())
    return session.run(None, {f"x{k}": x for k, x in enumerate(arrays)})[0]


def by_reference(model, arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(None, {f"x{k}": x for k, x in enumerate(arrays)})[0]


# Where they are not as the standard, or as one another: why.
KNOWN = {
    by_reference: {"ReduceLogSumExp": "NaN for infinities of one sign"},
    by_runtime: {
        "Hardmax": "leaves NaN out",
        "ReduceMax": "leaves NaN out",
        "ReduceMin": "leaves NaN out",
        "ReduceMean": "mixes rows of NaN",
        "Clip": "takes the largest number for a bound that is left out",
    },
}


def cases_of(other):
    for op, arrays, options in CASES:
        if op not in KNOWN[other] or len(arrays) == 3:
            name = " ".join([op, *map(str, options.values())])
            yield pytest.param(other, (op, arrays, options), id=f"{other.__name__} {name}")


@pytest.mark.parametrize(("other", "case"), [each for run in KNOWN for each in cases_of(run)])
def test_special_values_are_the_standards(other, case):
    model, arrays = model_of(*case), case[1]
    expected = other(model, [np.asarray(x) for x in arrays])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = load(model)(*(convcore.from_numpy(np.asarray(x)) for x in arrays)).numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-6)
