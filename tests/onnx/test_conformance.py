"""The ONNX standard's own tests: of each operator, and the small models in its package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
backend_tests = pytest.importorskip("onnx.backend.test")

from onnx import numpy_helper  # noqa: E402
from onnx_standard import assert_same, cases_by_operator, fault  # noqa: E402

from convcore.onnx import Backend  # noqa: E402

DATA = Path(backend_tests.__file__).parent / "data"

# What is drawn by another generator than the standard's examples.
RANDOM = ("bernoulli", "training_dropout")
# By the start of a test's name, why convcore does otherwise.
KNOWN = {
    "cast_e8m0": "powers of two without a sign round another way in ml_dtypes",
    "celu_bfloat16": "nothing is computed in bfloat16",
    "scan_sum": "Scan of opset 8 has batches and lengths",
}


@pytest.fixture(scope="module")
def cases():
    """Return the standard's cases of each operator that has a function here."""
    return cases_by_operator()


def ours(model):
    return Backend.prepare(model).run


def is_left_out(case):
    name = case.name.removeprefix("test_")
    return name.startswith((*RANDOM, *KNOWN))


def test_operators_give_the_standards_examples(cases):
    assert len(cases) > 150
    assert sum(map(len, cases.values())) > 900
    faults = [
        fault(case, ours) for each in cases.values() for case in each if not is_left_out(case)
    ]
    assert [each for each in faults if each] == []


def test_what_is_left_out_is_still_wrong(cases):
    every = [case for each in cases.values() for case in each]
    for start in KNOWN:
        assert any(fault(case, ours) for case in every if case.name.startswith(f"test_{start}"))


def stored(file, kind):
    """Return the value in a file of the standard's."""
    data = file.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


STORED = sorted(
    folder
    for kind in ("simple", "pytorch-operator", "pytorch-converted")
    for folder in (DATA / kind).iterdir()
    # Gradient is an operator for training, in preview.
    if (folder / "model.onnx").exists() and "gradient_of" not in folder.name
)


def test_there_are_stored_models():
    assert len(STORED) > 130


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_stored_models_give_the_stored_results(folder):
    model = onnx.load(folder / "model.onnx")
    prepared = Backend.prepare(model)
    for data in folder.glob("test_data_set_*"):
        inputs = {
            each.name: stored(data / f"input_{number}.pb", each.type)
            for number, each in enumerate(model.graph.input)
            if (data / f"input_{number}.pb").exists()
        }
        results = prepared.run(inputs)
        for number, (result, each) in enumerate(zip(results, model.graph.output, strict=True)):
            assert_same(result, stored(data / f"output_{number}.pb", each.type), 1e-3, 1e-5)


LIGHT = sorted(path.stem for path in (DATA / "light").glob("*.onnx"))
QUICK = ("light_shufflenet", "light_squeezenet", "light_zfnet512")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in LIGHT]
)
def test_nets_without_weights_give_the_stored_results(name):
    model = onnx.load(DATA / "light" / f"{name}.onnx")
    prepared = Backend.prepare(model)
    (picture,) = (each for each in model.graph.input if each.name in prepared.net.input_names)
    shape = [axis.dim_value or 1 for axis in picture.type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    expected = numpy_helper.to_array(onnx.load_tensor(DATA / "light" / f"{name}_output_0.pb"))
    scores = []
    *_, last = prepared.net.children()
    last.register_forward_pre_hook(lambda module, args: scores.append(args[0].numpy()))
    (result,) = prepared.run([x])
    if model.graph.node[-1].op_type == "Softmax" and np.abs(scores[0]).max() > 1e3:
        # All weights are one constant, and so are the scores of all classes: up to 4e12, whose last
        # bit decides for a softmax, and is another on another processor.
        np.testing.assert_allclose(scores[0], np.full_like(scores[0], scores[0].mean()), 1e-5)
    else:
        assert_same(result, expected, 1e-3, 1e-5)
