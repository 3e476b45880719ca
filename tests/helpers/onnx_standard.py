"""The ONNX standard's own cases of operators, and what is wrong with somebody's results of them."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

from convcore.onnx.operators import OPERATORS
from convcore.onnx.operators.control_flow import CONTROL_FLOW


def cases_by_operator(missing=False):
    """Return the standard's cases of each operator that convcore has a function for, or has not."""
    # Making them, the package divides by 0 and casts what does not fit.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        every = collect_testcases(None)
    found = defaultdict(list)
    for case in every:
        nodes = case.model.graph.node
        single = len(nodes) == 1 and nodes[0].domain == ""
        if single and missing != (nodes[0].op_type in (*OPERATORS, *CONTROL_FLOW)):
            found[nodes[0].op_type].append(case)
    return found


DATA = Path(onnx.backend.test.__file__).parent / "data"
# Folders of models with inputs and outputs, and files of nets all of whose weights are alike.
FOLDERS = ("simple", "pytorch-operator", "pytorch-converted")
LIGHT = sorted((DATA / "light").glob("*.onnx"))


class Stored(NamedTuple):
    """A model in the package, as a case."""

    name: str
    model: onnx.ModelProto
    data_sets: list
    rtol: float = 1e-3
    atol: float = 1e-5


def stored_folders(kind):
    """Return the folders of the stored models of a kind."""
    return sorted(each for each in (DATA / kind).iterdir() if (each / "model.onnx").exists())


def stored_case(folder):
    """Return the case in a folder."""
    model = onnx.load(folder / "model.onnx")
    pairs = [
        [_values(data, name, values) for name, values in _ends(model)]
        for data in sorted(folder.glob("test_data_set_*"))
    ]
    return Stored(folder.name, model, pairs)


def light_case(file):
    """Return the case of a net without weights: its picture counts from 0 to 1."""
    model = onnx.load(file)
    weights = {each.name for each in model.graph.initializer}
    (picture,) = (each for each in model.graph.input if each.name not in weights)
    shape = [axis.dim_value or 1 for axis in picture.type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    expected = onnx.load_tensor(file.with_name(f"{file.stem}_output_0.pb"))
    return Stored(file.stem, model, [([x], [numpy_helper.to_array(expected)])])


def _ends(model):
    return ("input", model.graph.input), ("output", model.graph.output)


def _values(data, name, values):
    """Return the values that lie in a folder, in the graph's order."""
    files = [(data / f"{name}_{number}.pb", each.type) for number, each in enumerate(values)]
    return [_stored(file, kind) for file, kind in files if file.exists()]


def _stored(file, kind):
    """Return the value in a file of the standard's."""
    data = file.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


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
