"""The ONNX standard's own tests: of each operator, and the small models in its package."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
pytest.importorskip("onnx.backend.test")

from onnx_standard import (  # noqa: E402
    FOLDERS,
    LIGHT,
    assert_same,
    cases_by_operator,
    fault,
    light_case,
    stored_case,
    stored_folders,
)

from convcore.onnx import Backend  # noqa: E402

# What is drawn by another generator than the standard's examples.
RANDOM = ("bernoulli", "training_dropout")
# By the start of a test's name, why convcore does otherwise.
KNOWN = {
    "cast_e8m0": "powers of two without a sign round another way in ml_dtypes",
    "scan_sum": "Scan of opset 8 has batches and lengths",
    **dict.fromkeys(
        (f"resize_downsample_scales_{mode}_align_corners" for mode in ("linear", "cubic")),
        "the last pixel of the rounded size is the image's last, as in ONNX Runtime and PyTorch",
    ),
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


STORED = [
    folder
    for kind in FOLDERS
    for folder in stored_folders(kind)
    # Gradient is an operator for training, in preview.
    if "gradient_of" not in folder.name
]


def test_there_are_stored_models():
    assert len(STORED) > 130


@pytest.mark.parametrize("folder", STORED, ids=lambda folder: folder.name)
def test_stored_models_give_the_stored_results(folder):
    assert fault(stored_case(folder), ours) is None


QUICK = ("light_shufflenet", "light_squeezenet", "light_zfnet512")


@pytest.mark.parametrize(
    "file",
    [f if f.stem in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in LIGHT],
    ids=lambda file: file.stem,
)
def test_nets_without_weights_give_the_stored_results(file):
    case = light_case(file)
    [([x], [expected])] = case.data_sets
    prepared = Backend.prepare(case.model)
    scores = []
    *_, last = prepared.net.children()
    last.register_forward_pre_hook(lambda module, args: scores.append(args[0].numpy()))
    (result,) = prepared.run([x])
    if case.model.graph.node[-1].op_type == "Softmax" and np.abs(scores[0]).max() > 1e3:
        # All weights are one constant, and so are the scores of all classes: up to 4e12, whose last
        # bit decides for a softmax, and is another on another processor.
        np.testing.assert_allclose(scores[0], np.full_like(scores[0], scores[0].mean()), 1e-5)
    else:
        assert_same(result, expected, 1e-3, 1e-5)
