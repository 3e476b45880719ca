"""`convcore bench --nets net.onnx`: files among the nets, run beside what reads them."""

import json

import numpy as np
import pytest

from convcore import cli
from convcore.bench.net_files import is_file, net_in
from convcore.bench.nets import RUN, RUN_ONE, TRAIN, net_named
from convcore.bench.peers import OURS

parser = pytest.importorskip("onnx.parser", reason="pip install onnx && pytest")


def written(folder, text, name="net.onnx"):
    path = folder / name
    path.write_bytes(
        parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString()
    )
    return path


@pytest.fixture
def free(tmp_path):
    return written(
        tmp_path, "g (float[N, 2, H, 4] x) => (float[] y, float[] z) { y = Relu(x) z = Neg(x) }"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("net.onnx", True), ("a/b.ONNX:1x3", True), ("resnet18", False), ("net.onnx:", False)],
)
def test_names_of_files(text, expected):
    assert is_file(text) == expected


def test_sizes_are_given_or_the_files_own(tmp_path, free):
    file = written(tmp_path, "g (float[N, 2, 3] x) => (float[] y) { y = Relu(x) }", "batch.onnx")
    assert net_in(str(file)).shape == (1, 2, 3)  # one of what is free
    net = net_named(f"{free}:5x2x7x4")
    assert net.shape == net.input_shape(RUN) == (5, 2, 7, 4) and net.name == "net"


@pytest.mark.parametrize(
    ("text", "sizes", "words"),
    [
        ("g (float[N, 2, H] x) => (float[] y) { y = Relu(x) }", "", "leaves sizes open (1x2xH)"),
        ("g (float[N, 2] x) => (float[] y) { y = Relu(x) }", ":1x3", "takes Nx2, not 1x3"),
        ("g (float[N, 2] x) => (float[] y) { y = Relu(x) }", ":1x2x3", "takes Nx2, not 1x2x3"),
        ("g (int64[2] x) => (int64[] y) { y = Neg(x) }", "", "one, of float32, can be timed"),
        ("g (float[2] a, float[2] b) => (float[] y) { y = Add(a, b) }", "", "has 2 inputs"),
    ],
)
def test_files_that_cannot_be_timed_are_refused(text, sizes, words, tmp_path):
    file = written(tmp_path, text)
    with pytest.raises(ValueError, match=r"net\.onnx") as error:
        net_in(f"{file}{sizes}")
    assert words in str(error.value)


def test_files_that_cannot_be_read_are_refused(tmp_path, capsys):
    (tmp_path / "broken.onnx").write_bytes(b"\xff" * 99)
    for said in ("broken.onnx cannot be read", "none.onnx: No such file or directory"):
        file = str(tmp_path / said.split(":")[0].split()[0])
        assert cli.main(["bench", "--nets", file, "--peers", "none"]) == 2
        assert said in capsys.readouterr().err


def test_only_inference_and_only_readers(free):
    net = net_in(f"{free}:1x2x3x4")
    assert net.formats(OURS, RUN) == ("", "plain")
    assert net.formats("onnxruntime", RUN) == ("",)
    for peer, task in ((OURS, TRAIN), (OURS, RUN_ONE), ("torch", RUN)):
        assert net.formats(peer, task) == ()


@pytest.mark.subprocess
def test_a_file_is_timed_beside_onnxruntime(free, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    saved = tmp_path / "out.json"
    options = ["--rounds", "1", "--threads", "1", "--peers", "onnxruntime", "--json", str(saved)]
    assert cli.main(["bench", "--nets", f"{free}:3x2x3x4", *options]) == 0
    said = capsys.readouterr().out
    assert "net: 1 task, 1 round each" in said and "ONNX Runtime" in said
    (cell,) = json.loads(saved.read_text())["measured"]
    assert cell["input"] == [3, 2, 3, 4] and set(cell["variants"]) == {
        *("convcore", "convcore/plain", "onnxruntime")
    }
    assert cell["difference"] <= 1e-6 and not cell["failed"]


def test_the_first_of_several_outputs_is_compared(free):
    import convcore

    class Own:
        library = convcore

    net = net_in(f"{free}:1x2x3x4")
    result = net.call(Own())()
    assert net.call(Own(), "plain")().equal(result)
    x = np.random.default_rng(1).random((1, 2, 3, 4), dtype=np.float32)
    assert np.array_equal(result.numpy(), x)
