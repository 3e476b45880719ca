"""`convcore inspect`: reports from the command line, of noise, arrays and photographs."""

import sys

import numpy as np
import pytest

import convcore
from convcore import cli
from convcore.serialization.state_dicts import safetensors


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Run the command in a folder; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        code = cli.main(["inspect", *arguments])
        return code, *capsys.readouterr()

    return run


def test_report_of_noise_is_the_same_twice(said, tmp_path):
    for name in ("a.html", "b.html"):
        code, out, _ = said("lenet", "-o", name)
        assert code == 0 and f"Saved to {name}" in out
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text == (tmp_path / "b.html").read_text(encoding="utf-8")
    assert "<title>lenet, random weights</title>" in text


def test_array_and_weights_are_those_of_the_files(said, tmp_path):
    net = convcore.models.lenet()
    net.load_state_dict({name: one * 0 for name, one in net.state_dict().items()})
    convcore.save(net.state_dict(), tmp_path / "zero.pt")
    np.save(tmp_path / "x.npy", np.full((2, 1, 28, 28), 7, np.float32))
    assert said("lenet", "--weights", "zero.pt", "--input", "x.npy")[0] == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<title>lenet on x.npy</title>" in text and "black is 7, white 7" in text
    assert "dark 0 to bright" not in text and "all 0" in text


def test_photograph_is_scaled_to_the_net(said, tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (90, 50), "red").save(tmp_path / "red.png")
    assert said("resnet8", "--input", "red.png", "--imagenet")[0] == 0
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    # red is 1 in the first colour, of mean 0.485 and deviation 0.229; the others are 0
    assert "white 2.25" in text and "black is \N{MINUS SIGN}2.04" in text
    assert "3 \N{MULTIPLICATION SIGN} 32 \N{MULTIPLICATION SIGN} 32" in text


def test_an_array_of_another_dtype_gets_a_hint_for_files(said, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 28, 28)))
    code, _, errors = said("lenet", "--input", "x.npy")
    assert code == 2 and "numpy.save('x.npy', x.astype('float32'))" in errors
    assert "x.float()" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["nothing"],
            "there is no model 'nothing', only autoencoder, lenet, mobilenet_v2, resnet101",
        ),
        (["resnet180"], "vgg19_bn; did you mean resnet18?"),
        (["net.pt"], "name the net, as in `convcore inspect resnet18 --weights net.pt`"),
        (["net.py"], "net.py is a program: have it print convcore.summary(net, (1, 3, 224, 224))"),
        (["lenet", "--input", "1,1,3,3"], "cannot take [1, 1, 3, 3]"),
        (["lenet", "--input", "28,28"], "; --input is N,C,H,W, as 1,1,28,28"),
        (["lenet", "--input", "0,1"], "--input: must be sizes above 0"),
        (["lenet", "--input", "x.txt"], "is no .npy file"),
        (["lenet", "-i", "x.npy"], "--input: No such file or directory: x.npy"),
        (["lenet", "--weights", "x.pt"], "--weights: No such file or directory: x.pt"),
        (["lenet", "-o", "nowhere/x.html"], "no directory nowhere"),
        (["lenet", "--size", "64,64"], "--size is of a photograph, given by --input"),
        (["resnet18", "--imagenet"], "--imagenet is of a photograph, given by --input"),
        (["lenet", "--imagenet", "-i", "1,1,28,28"], "--imagenet is of a photograph"),
    ],
)
def test_slips_are_refused_in_one_line(said, tmp_path, arguments, words):
    code, _, errors = said(*arguments)
    assert code == 2 and words in errors and errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["model", "state_dict", "net"])
def test_weights_are_found_in_a_checkpoint_of_a_training(said, tmp_path, key):
    net = convcore.models.lenet()
    zeros = {name: one * 0 for name, one in net.state_dict().items()}
    convcore.save({"epoch": 3, key: zeros, "optimizer": {"lr": 0.1}}, tmp_path / "last.pt")
    assert said("lenet", "--weights", "last.pt")[0] == 0
    assert "all 0" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_weights_that_stand_twice_in_a_checkpoint_are_not_chosen(said, tmp_path):
    state = convcore.models.lenet().state_dict()
    convcore.save({"model": state, "average": state}, tmp_path / "last.pt")
    code, _, errors = said("lenet", "--weights", "last.pt")
    assert code == 2 and "has several states, 'model', 'average': save the one" in errors


def test_weights_are_found_behind_a_prefix(said, tmp_path):
    state = {
        f"module.{name}": one * 0 for name, one in convcore.models.lenet().state_dict().items()
    }
    for number, saved in enumerate((state, {"epoch": 3, "model": state})):
        convcore.save(saved, tmp_path / f"{number}.pt")
        assert said("lenet", "--weights", f"{number}.pt")[0] == 0
        assert "all 0" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_weights_of_another_net_are_told_by_their_first_keys(said, tmp_path):
    state = convcore.models.lenet().state_dict()
    convcore.save({**state, "head.weight": convcore.ones(2)}, tmp_path / "more.pt")
    convcore.save(convcore.models.resnet8().state_dict(), tmp_path / "other.pt")
    ours, theirs = said("lenet", "--weights", "more.pt"), said("lenet", "--weights", "other.pt")
    assert ours[0] == theirs[0] == 2 and max(len(ours[2]), len(theirs[2])) < 300
    assert ours[2].endswith("is of another net than lenet: only more.pt has 'head.weight'\n")
    assert "only other.pt has 'bn1.weight', 'bn1.bias' and " in theirs[2]
    wrong = {name: one[:1] for name, one in state.items()}
    convcore.save(wrong, tmp_path / "wrong.pt")
    assert "size mismatch for conv1.weight" in said("lenet", "--weights", "wrong.pt")[2]


def test_weights_in_safetensors_are_read_without_the_library(said, tmp_path, monkeypatch):
    arrays = {n: w.numpy() * 0 for n, w in convcore.models.lenet().state_dict().items()}
    entries, n_bytes = {}, 0
    for name, array in arrays.items():
        entries[name] = safetensors.entry(name, array, n_bytes)
        n_bytes += array.nbytes
    memory = b"".join(array.tobytes() for array in arrays.values())
    (tmp_path / "net.safetensors").write_bytes(safetensors.header(entries) + memory)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert said("lenet", "--weights", "net.safetensors")[0] == 0
    assert "all 0" in (tmp_path / "report.html").read_text(encoding="utf-8")
