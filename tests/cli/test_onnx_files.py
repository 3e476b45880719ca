"""`convcore summary model.onnx`: the table of a model's file, and what is refused."""

import numpy as np
import pytest

import convcore
from convcore import cli, nn


@pytest.fixture
def file(tmp_path):
    """A net's export, of 2 pictures of 1 channel."""
    pytest.importorskip("onnx")
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))
    path = tmp_path / "net.onnx"
    convcore.onnx.export(net, convcore.zeros(2, 1, 4, 4), path)
    return path


@pytest.fixture
def free(tmp_path):
    """A model whose batch and height are free."""
    onnx = pytest.importorskip("onnx.parser")
    model = onnx.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>'
        "free (float[N, 1, H, 4] image) => (float[N, 1, H, 4] y) { y = Relu(image) }"
    )
    path = tmp_path / "free.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_summary_of_a_file_counts_as_that_of_the_net(file, capsys):
    assert cli.main(["summary", str(file)]) == 0
    said = capsys.readouterr().out
    # 4 of 3x3 and a bias each, 16 -> 3 and biases; 2 pictures of 2x2 positions.
    assert f"{4 * 9 + 4 + 16 * 3 + 3:,}" in said
    assert f"{2 * (4 * 4 * 9 + 16 * 3):,}" in said
    assert "2, 4, 2, 2" in said


def test_summary_asks_for_sizes_that_are_free(free, capsys):
    assert cli.main(["summary", str(free)]) == 2
    said = capsys.readouterr().err
    assert "input 'image' is [N, 1, H, 4]: give its sizes, as --input 1,1,224,4\n" in said
    assert cli.main(["summary", str(free), "--input-size", "1,1,6,4"]) == 0
    assert "1, 1, 6, 4" in capsys.readouterr().out


def test_a_report_takes_a_photograph_or_an_array_where_sizes_are_free(free, tmp_path, capsys):
    image = pytest.importorskip("PIL.Image")
    photograph, array = tmp_path / "gray.png", tmp_path / "x.npy"
    image.new("L", (9, 7), 80).save(photograph)
    np.save(array, np.ones((1, 1, 5, 4), "f4"))
    output = ["-o", str(tmp_path / "report.html")]
    asked = ["inspect", str(free), "--input", str(photograph)]
    assert cli.main([*asked, "--size", "6,4", *output]) == 0
    assert cli.main(["inspect", str(free), "--input", str(array), *output]) == 0
    assert "Saved to" in capsys.readouterr().out
    assert cli.main([*asked, "--size", "6,5", *output]) == 2
    assert "--size: the net takes pictures of H x 4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--input-size", "2,1,5,4"], "input 'input' is [2, 1, 4, 4], got --input 2,1,5,4"),
        (["--input-size", "2,1,4"], "got --input 2,1,4"),
        (["--dtype", "float64"], "--dtype"),
    ],
)
def test_summary_refuses_what_does_not_fit_in_one_line(file, options, words, capsys):
    assert cli.main(["summary", str(file), *options]) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.splitlines()) == 1


def test_summary_refuses_broken_and_missing_files_in_one_line(file, tmp_path, capsys):
    (tmp_path / "cut.onnx").write_bytes(file.read_bytes()[:-20])
    for name, words in (("cut.onnx", "cannot be parsed"), ("none.onnx", "No such file")):
        assert cli.main(["summary", str(tmp_path / name)]) == 2
        said = capsys.readouterr().err
        assert words in said and len(said.splitlines()) == 1
