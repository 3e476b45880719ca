"""`convcore run-model`: photographs and arrays through a net from an ONNX file."""

import numpy as np
import pytest

from convcore import cli

parser = pytest.importorskip("onnx.parser", reason="pip install onnx && pytest")


def written(folder, text):
    path = folder / "net.onnx"
    path.write_bytes(
        parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}').SerializeToString()
    )
    return path


@pytest.fixture
def means(tmp_path):
    """A net that gives the mean of each channel."""
    return written(
        tmp_path,
        "means (float[N, 3, H, W] image) => (float[N, 3] colors)"
        "{ means = GlobalAveragePool(image) colors = Flatten(means) }",
    )


@pytest.fixture
def photograph(tmp_path):
    """A picture of 4 x 6 pixels of one color, (255, 51, 102)."""
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "color.png"
    image.fromarray(np.full((4, 6, 3), (255, 51, 102), np.uint8)).save(path)
    return path


def arrays(path):
    """Return the arrays of a .npz file by name."""
    with np.load(path) as found:
        return dict(found)


def run(*words):
    return cli.main(["run-model", *map(str, words)])


def test_a_photograph_becomes_an_input(means, photograph, capsys):
    assert run(means, "--input", photograph) == 0
    said = capsys.readouterr().out.split("\n")
    assert said[0].endswith("color.png: 6 x 4 pixels, RGB, values from 0.2 to 1")
    assert said[2] == "colors: 1 x 3 of float32"
    assert [line.split() for line in said[3:6]] == [["0", "1"], ["2", "0.4"], ["1", "0.2"]]


def test_values_are_scaled_as_asked(means, photograph, capsys, tmp_path):
    output = tmp_path / "out.npz"
    options = ["--mean", "55,51,2", "--std", "2", "--largest", "255", "--size", "8,5", "--top", "1"]
    assert run(means, "--input", photograph, *options, "--output", output) == 0
    said = capsys.readouterr().out
    assert "resized to 5 x 8, RGB, values from 0 to 100" in said
    assert np.allclose(arrays(output)["colors"], [[100, 0, 50]])


def test_a_photograph_is_given_in_the_units_of_imagenet(means, photograph, tmp_path):
    output = tmp_path / "out.npz"
    assert run(means, "--input", photograph, "--imagenet", "--output", output) == 0
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    assert np.allclose(arrays(output)["colors"], [([1, 0.2, 0.4] - mean) / std])


@pytest.mark.parametrize(
    ("sizes", "words"),
    [("2, 1, 3, 5", "resized to 5 x 3, grey"), ("1, 7, 5, 3", "resized to 5 x 7, RGB")],
)
def test_a_photograph_is_resized_to_the_inputs_size(sizes, words, photograph, tmp_path, capsys):
    file = written(tmp_path, f"g (float[{sizes}] x) => (float[{sizes}] y) {{ y = Relu(x) }}")
    output = tmp_path / "out.npz"
    assert run(file, "--input", photograph, "--output", output) == 0
    assert words in capsys.readouterr().out
    assert arrays(output)["y"].shape == tuple(map(int, sizes.split(",")))


def test_a_size_is_asked_for_where_the_photographs_own_does_not_do(photograph, tmp_path, capsys):
    graph = "g (float[1, 3, H, W] x) => (float[1, 6] y) { y = Reshape(x, shape) }"
    graph = graph.replace("{", "<int64[2] shape = {1, 6}> {")
    file = written(tmp_path, graph)
    assert run(file, "--input", photograph) == 2
    assert "a photograph is resized by --size H,W" in capsys.readouterr().err
    assert run(file, "--input", photograph, "--size", "1,2") == 0


def test_labels_and_times_are_printed(means, photograph, capsys, tmp_path):
    (tmp_path / "names.txt").write_text("red\ngreen\nblue\n")
    assert run(means, "--input", photograph, "--labels", tmp_path / "names.txt", "--time") == 0
    said = capsys.readouterr().out
    assert "1  red" in said and "0.4  blue" in said
    assert "A call takes" in said and "optimized" in said


def test_a_labels_escape_sequences_do_not_reach_the_terminal(means, photograph, capsys, tmp_path):
    (tmp_path / "names.txt").write_text("\x1b]0;title\x07\n" * 3, encoding="utf-8")
    assert run(means, "--input", photograph, "--labels", tmp_path / "names.txt") == 0
    out = capsys.readouterr().out
    assert r"\x1b]0;title\x07" in out and "\x1b" not in out


def test_arrays_by_name(tmp_path, capsys):
    file = written(tmp_path, "g (float[2] a, int64[2] b) => (int64[2] d, float[2] c)"
                   "{ f = Cast <to = 1> (b) c = Add(a, f) d = Neg(b) }")  # fmt: skip
    np.savez(tmp_path / "x.npz", a=np.array([1.0, 2.0]), b=np.array([5, 3], np.int32))
    assert run(file, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz") == 0
    found = arrays(tmp_path / "y.npz")
    assert found["c"].tolist() == [6, 5] and found["d"].tolist() == [-5, -3]
    said = capsys.readouterr().out
    assert said.index("d: 2 of int64") < said.index("c: 2 of float32")


REFUSED = {
    "no net": (["no.onnx", "--input", "x.npy"], "no.onnx: No such file"),
    "no net at all": (["x.npy", "--input", "x.npy"], "x.npy:"),
    "a net's name": (["resnet18", "--input", "x.npy"], "`convcore inspect resnet18 --input FILE`"),
    "no text": (
        ["net.onnx", "--input", "x.npy", "-o", "out.txt"],
        "--output out.txt: arrays are written to a file.npz",
    ),
    "no labels": (
        ["net.onnx", "--input", "x.npy", "--labels", "no.txt"],
        "--labels no.txt: No such file or directory\n",
    ),
    "no input": (["net.onnx", "--input", "no.npy"], "no.npy: No such file"),
    "no picture": (["net.onnx", "--input", "names.png"], "names.png: this is no picture"),
    "no arrays": (["net.onnx", "--input", "broken.npy"], "broken.npy: no arrays can be read"),
    "another kind": (["net.onnx", "--input", "x.txt"], "allowed are files that end in .npy"),
    "other names": (["net.onnx", "--input", "other.npz"], "the net's inputs are image"),
    "other sizes": (["net.onnx", "--input", "flat.npy"], "[N, 3, H, W], got an array of [4]"),
    "other dtype": (["net.onnx", "--input", "whole.npy"], "is float32, got an array of int64"),
    "numbers": (["net.onnx", "--input", "color.png", "--mean", "1,2"], "--mean has 2 numbers"),
    "two scales": (
        ["net.onnx", "--input", "color.png", "--imagenet", "--std", "2"],
        "--imagenet sets --mean and --std: give it, or those\n",
    ),
    "many arrays": (
        ["net.onnx", "--input", "many.npz"],
        "many.npz has 'w0', 'w1' and 98 more; the net's inputs are image\n",
    ),
    "an array's units": (
        ["net.onnx", "--input", "x.npy", "--imagenet"],
        "--imagenet is of a photograph, not of --input x.npy\n",
    ),
    "labels": (["net.onnx", "--input", "x.npy", "--labels", "no.txt"], "--labels no.txt"),
    "output": (
        ["net.onnx", "--input", "x.npy", "--output", "no/y.npz"],
        "--output: there is no directory no",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused_in_one_line(
    name, means, photograph, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((1, 3, 2, 2), np.float32))
    np.save("flat.npy", np.zeros(4, np.float32))
    np.save("whole.npy", np.zeros((1, 3, 2, 2), np.int64))
    np.savez("other.npz", picture=np.zeros(3))
    np.savez("many.npz", **{f"w{number}": np.zeros(1) for number in range(100)})
    for broken in ("names.png", "broken.npy", "x.txt"):
        (tmp_path / broken).write_bytes(b"nothing")
    words, expected = REFUSED[name]
    assert run(*words) == 2
    error = capsys.readouterr().err
    assert expected in error and error.count("\n") == 1


def test_arrays_of_objects_are_not_read(means, tmp_path, capsys):
    with open(tmp_path / "x.npy", "wb") as stream:
        np.lib.format.write_array(stream, np.array([{}], object), allow_pickle=True)
    assert run(means, "--input", tmp_path / "x.npy") == 2
    assert "no arrays can be read" in capsys.readouterr().err


def test_a_picture_for_a_net_of_rows_is_refused(tmp_path, photograph, capsys):
    file = written(tmp_path, "g (float[N, 5] x) => (float[N, 5] y) { y = Relu(x) }")
    assert run(file, "--input", photograph) == 2
    assert "give an array, as --input x.npy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "array", "words"),
    [
        ("float", np.array([0.5, 2.0]), "x: float64 taken as float32"),
        ("int32", np.array([3, -4]), "x: int64 taken as int32"),
        ("float", np.array([0.5, 1e300]), "'x' is float32, which cannot hold 1e+300 of an array"),
        ("int32", np.array([3, 1 << 40]), "'x' is int32, which cannot hold 1099511627776 of"),
    ],
)
def test_other_dtypes_are_cast_with_a_word_or_refused(kind, array, words, tmp_path, capsys):
    file = written(tmp_path, f"g ({kind}[2] x) => ({kind}[2] y) {{ y = Add(x, x) }}")
    np.save(tmp_path / "x.npy", array)
    code = run(file, "--input", tmp_path / "x.npy")
    said = capsys.readouterr()
    assert words in said.out + said.err
    assert code == (2 if "cannot" in words else 0)


def test_each_picture_of_a_batch_has_its_largest(tmp_path, capsys):
    file = written(tmp_path, "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }")
    np.save(tmp_path / "x.npy", np.array([[1, 9, 2], [3, 0, 1]], "f4"))
    assert run(file, "--input", tmp_path / "x.npy", "--top", "2") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "," in line[:14]]
    assert lines == [["0,", "1", "9"], ["0,", "2", "2"], ["1,", "0", "3"], ["1,", "2", "1"]]


def test_a_file_that_is_no_net_is_named_once(tmp_path, capsys):
    (tmp_path / "net.onnx").write_text("nothing")
    assert run(tmp_path / "net.onnx", "--input", "x.npy") == 2
    assert capsys.readouterr().err.count("net.onnx") == 1
