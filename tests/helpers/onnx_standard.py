"""The ONNX standard's own cases of operators, and what is wrong with somebody's results of them."""

from __future__ import annotations

import warnings
from collections import defaultdict

import numpy as np
import onnx
from onnx import numpy_helper

from convcore.onnx.operators import OPERATORS
from convcore.onnx.operators.control_flow import CONTROL_FLOW


def cases_by_operator():
    """Return the standard's cases of each operator that convcore has a function for."""
    # Making them, the package divides by 0 and casts what does not fit.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        every = collect_testcases(None)
    found = defaultdict(list)
    for case in every:
        nodes = case.model.graph.node
        single = len(nodes) == 1 and nodes[0].domain == ""
        if single and nodes[0].op_type in (*OPERATORS, *CONTROL_FLOW):
            found[nodes[0].op_type].append(case)
    return found


def array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def assert_same(result, expected, rtol, atol):
    if isinstance(expected, list):
        assert isinstance(result, list)
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            assert_same(one, other, rtol, atol)
        return
    if expected is None:
        assert result is None
        return
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    if expected.dtype.kind in "OUST":
        assert result.astype(str).tolist() == expected.astype(str).tolist()
        return
    assert result.dtype == expected.dtype
    if expected.dtype.isbuiltin != 1:
        result, expected = result.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=atol)


def fault(case, prepare):
    """Return what is wrong with the results of a case, or None.

    prepare : from a model to a function from a list of arrays to a list of results
    """
    try:
        run = prepare(case.model)
        for inputs, outputs in case.data_sets:
            results = run([array(each) for each in inputs])
            assert len(results) == len(outputs)
            for result, expected in zip(results, outputs, strict=True):
                assert_same(result, array(expected), case.rtol, case.atol)
    except Exception as error:
        return f"{case.name}: {type(error).__name__}: {error}"
    return None
