"""Programs that export nets by PyTorch's names, unchanged: today's way and the older one."""

import subprocess
import sys

import pytest

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.compat.torch.export import Dim, dims

NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5)
        self.norm = nn.BatchNorm2d(6)
        self.fc = nn.Linear(6 * 14 * 14, 10)

    def forward(self, x: torch.Tensor):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), (2, 2))
        return self.fc(torch.flatten(x, 1))


model = Classifier().eval()


def outputs_of(file, *inputs):
    try:
        import onnxruntime
    except ImportError:
        raise SystemExit from None
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    feed = {name: each.numpy(force=True) for name, each in zip(names, inputs, strict=True)}
    return session.run(None, feed)
"""

TODAY = """
example_inputs = (torch.randn(1, 1, 32, 32),)
onnx_program = torch.onnx.export(model, example_inputs, dynamo=True)
assert isinstance(onnx_program, torch.onnx.ONNXProgram)
onnx_program.optimize()
onnx_program.save("net.onnx")

import onnx
onnx.checker.check_model(onnx.load("net.onnx"))
(expected,) = onnx_program(*example_inputs)
torch.testing.assert_close(model(*example_inputs), expected)
(found,) = outputs_of("net.onnx", *example_inputs)
torch.testing.assert_close(expected, torch.tensor(found))
"""

SHAPES = """
from torch.export import Dim

batch = Dim("batch", min=1, max=64)
x = torch.randn(2, 1, 32, 32)
program = torch.onnx.export(
    model, (x,), "net.onnx", input_names=["image"], output_names=["scores"],
    dynamic_shapes={"x": {0: batch}}, verbose=False, report=False, external_data=False,
)
sizes = [each.dim_param for each in program.model_proto.graph.input[0].type.tensor_type.shape.dim]
assert sizes == ["batch", "", "", ""], sizes
torch.onnx.export(model, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), dynamo=True)
more = torch.randn(7, 1, 32, 32)
torch.testing.assert_close(model(more), torch.tensor(outputs_of("net.onnx", more)[0]))
"""

OLDER = """
x = torch.randn(1, 1, 32, 32, requires_grad=True)
axes = {"input": {0: "batch_size"}, "output": {0: "batch_size"}}
torch.onnx.export(
    model, x, "net.onnx", export_params=True, opset_version=13, do_constant_folding=True,
    input_names=["input"], output_names=["output"], dynamic_axes=axes, verbose=True,
    training=torch.onnx.TrainingMode.EVAL, dynamo=False,
    operator_export_type=torch.onnx.OperatorExportTypes.ONNX,
)
more = torch.randn(3, 1, 32, 32)
torch.testing.assert_close(model(more), torch.tensor(outputs_of("net.onnx", more)[0]))
"""

BYTES = """
import io

import torch.onnx.utils

x = torch.randn(1, 1, 32, 32)
buffer = io.BytesIO()
with torch.onnx.utils.select_model_mode_for_export(model.train(), torch.onnx.TrainingMode.EVAL):
    assert not model.training
    torch.onnx.utils.export(model, x, buffer)
assert model.training
model.eval()
torch.testing.assert_close(model(x), torch.tensor(outputs_of(buffer.getvalue(), x)[0]))
"""

ASKS = """
class Asking(nn.Module):
    def forward(self, x):
        return x + 1 if torch.onnx.is_in_onnx_export() else x - 1

x = torch.ones(2)
program = torch.onnx.export(Asking(), (x,))
assert program(x)[0].tolist() == [2.0, 2.0]
assert Asking()(x).tolist() == [0.0, 0.0]
assert not torch.onnx.is_in_onnx_export()
try:
    torch.onnx.export(model, x, training=torch.onnx.TrainingMode.TRAINING)
except TypeError as error:
    assert "training" in str(error)
class Reading(nn.Module):
    def forward(self, x):
        return x * float(x.sum())

try:
    torch.onnx.export(Reading(), x)
except torch.onnx.OnnxExporterError as error:
    assert isinstance(error, torch.onnx.errors.UnsupportedOperatorError)
else:
    raise AssertionError
"""


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(TODAY, id="today"),
        pytest.param(SHAPES, id="shapes"),
        pytest.param(OLDER, id="older"),
        pytest.param(BYTES, id="bytes"),
        pytest.param(ASKS, id="asks"),
    ],
)
def test_a_program_exports_unchanged(program, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(NET + program)
    command = [sys.executable, "-P", "-m", "convcore", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_multiples_of_a_size_are_named_as_in_pytorch():
    named = {}
    kinds = [Dim]
    try:
        import torch
    except ImportError:
        pass
    else:
        kinds.append(torch.export.Dim)
    for kind in kinds:
        size = kind("n", min=2, max=10)
        derived = [2 * size, size * 3 + 1, size + 1, size - 1, 2 * (size + 1), (size + 1) * 4 - 4]
        named[kind] = [(each.__name__, each.min, each.max) for each in derived]
    assert named[Dim] == [
        ("2*n", 4, 20), ("3*n + 1", 7, 31), ("n + 1", 3, 11), ("n - 1", 1, 9), ("2*n + 2", 6, 22),
        ("4*n", 8, 40),
    ]  # fmt: skip
    assert all(each == named[Dim] for each in named.values())


def test_sizes_are_made_from_names_and_bounds():
    a, b = dims("a", "b", min=2)
    assert (a.__name__, b.min, b.max) == ("a", 2, None)
    assert repr(Dim("n", min=1, max=3)) == "Dim('n', min=1, max=3)"
    with pytest.raises(AssertionError, match="inconsistent min=3, max=2"):
        Dim("n", min=3, max=2)
    with pytest.raises(AssertionError, match="valid identifier, got a b"):
        Dim("a b")
    with pytest.raises(NotImplementedError, match="a positive int is needed to multiply, got -1"):
        Dim("n") * -1
    with pytest.raises(NotImplementedError, match=r"an int is needed to add, got 1\.5"):
        Dim("n") + 1.5
