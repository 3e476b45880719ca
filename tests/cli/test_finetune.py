"""`convcore finetune`: a net from an ONNX file trained on folders of pictures."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import convcore
from convcore import cli, nn

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
image = pytest.importorskip("PIL.Image")

from onnx import numpy_helper, parser  # noqa: E402

COLORS = {"blue": (40, 40, 200), "green": (40, 200, 40), "red": (200, 40, 40)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, rng):
    """The current folder: ten noisy pictures of each of three colors, and a net of four outputs."""
    monkeypatch.chdir(tmp_path)
    for name, color in COLORS.items():
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(10):
            noise = rng.integers(-40, 40, (9, 7, 3))
            pixels = (np.array(color) + noise).astype(np.uint8)
            image.fromarray(pixels).save(f"data/{name}/{number}.png")
    (tmp_path / "three.txt").write_text("red\ngreen\nblue\n")
    (tmp_path / "four.txt").write_text("red\ngreen\nblue\nblack\n")
    (tmp_path / "two.txt").write_text("red\ngreen\n")
    convcore.manual_seed(0)
    export(net_of(4), "net.onnx")
    return tmp_path


def net_of(n_classes, *last):
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(4, n_classes), *last)


def export(net, file, shape=(1, 3, 8, 8), **axes):
    free = {0: "batch"} if not axes else {int(k[1:]): name for k, name in axes.items()}
    convcore.onnx.export(net, convcore.rand(shape), file, dynamic_axes={"input": free})


def finetune(*words, net="net.onnx", data="data"):
    return cli.main(["finetune", net, "--data", data, *words])


KEPT = ["--labels", "four.txt", "--lr", "0.05", "--epochs", "3"]


def weights(file):
    return {k: v.detach().numpy() for k, v in convcore.onnx.load(file).named_parameters()}


def test_a_kept_head_is_trained_and_written_into_its_model(capsys, folder):
    assert finetune(*KEPT) == 0
    said = capsys.readouterr().out
    assert said.startswith(
        "24 pictures of 4 classes, and 6 held out\ntrained: 20 of 140 parameters: "
    )
    assert "frozen: 4 weights, 1 batch norm\n" in said
    first, last = (next(line for line in said.splitlines() if f"epoch {k}/3" in line) for k in "13")
    assert float(last.split()[3][:-1]) < float(first.split()[3][:-1])
    before, after = weights("net.onnx"), weights("tuned.onnx")
    assert [k for k in before if not np.array_equal(before[k], after[k])] == list(before)[-2:]
    command = shlex.split(said.partition("Run it: convcore ")[2])
    assert cli.main(command) == 0
    assert command[-2:] == ["--labels", "four.txt"] and not (folder / "tuned.txt").exists()


def test_a_new_head_and_all_else_learn_the_classes(capsys):
    assert finetune("--new-head", "--train", "*", "--lr", "0.1", "--epochs", "8") == 0
    said = capsys.readouterr().out
    assert "trained: 135 of 135 parameters" in said and "frozen: 0 weights, 0 batch norms\n" in said
    assert "accuracy 100.0%" in said.splitlines()[-2].partition("held out")[2]
    for name in COLORS:
        words = ["-i", f"data/{name}/0.png", "--labels", "tuned.txt", "--top", "1"]
        assert cli.main(["run-model", "tuned.onnx", *words]) == 0
        assert capsys.readouterr().out.split()[-1] == name
    with convcore.no_grad():
        assert convcore.onnx.load("tuned.onnx")(convcore.rand(5, 3, 8, 8)).shape == (5, 3)


def test_a_resumed_training_ends_in_the_same_bits(capsys, folder):
    assert finetune(*KEPT, "--output", "whole.onnx") == 0
    assert finetune(*KEPT[:-1], "2") == 0
    assert finetune(*KEPT, "--resume") == 0
    assert "continued after epoch 2\nepoch 3/3" in capsys.readouterr().out
    whole, resumed = ((folder / f"{name}.onnx").read_bytes() for name in ("whole", "tuned"))
    assert whole == resumed
    assert finetune(*KEPT, "--seed", "1") == 0
    assert (folder / "tuned.onnx").read_bytes() != whole


def test_a_softmax_at_the_end_stays_and_is_not_trained_through(capsys):
    export(net_of(3, nn.Softmax(1)), "soft.onnx")
    assert finetune("--train", "*", "--lr", "0.1", "--epochs", "12", net="soft.onnx") == 0
    # Of probabilities in place of logits it is 0.55 or more.
    assert float(capsys.readouterr().out.rpartition("held out: loss ")[2].split(",")[0]) < 0.5
    with convcore.no_grad():
        found = convcore.onnx.load("tuned.onnx")(convcore.rand(2, 3, 8, 8))
    convcore.testing.assert_close(found.sum(1), convcore.ones(2))


def test_pictures_go_one_by_one_where_the_file_says_so(capsys):
    export(net_of(3), "one.onnx", a2="height", a3="width")
    words = ["--size", "8,8", "--lr", "0.05", "--epochs", "1"]
    assert finetune(*words, net="one.onnx") == 0
    alone = capsys.readouterr().out.partition("epoch")[2].partition("\n")[0]
    export(convcore.onnx.load("one.onnx"), "many.onnx", a0="N", a2="height", a3="width")
    assert finetune(*words, net="many.onnx") == 0
    assert capsys.readouterr().out.partition("epoch")[2].partition("\n")[0] == alone


def write(nodes, **arrays):
    """Write a net of these nodes: from the means f of the channels of x to y."""
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[N, 3, 8, 8] x) => (float[N, 3] y) {{
            p = GlobalAveragePool (x)
            f = Flatten (p)
            {nodes} }}""")
    proto.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in arrays.items())
    with open("own.onnx", "wb") as file:
        file.write(proto.SerializeToString())


HEADS = {
    "MatMul": "m = MatMul (f, w) y = Add (m, b)",
    "Gemm": "y = Gemm (f, w, b)",
    "Conv": "m = Conv (p, k) r = Relu (m) y = Flatten (r)",
}


@pytest.mark.parametrize("kind", HEADS)
def test_heads_of_each_kind_are_replaced(kind, rng):
    shapes = {"w": (3, 5), "b": (5,), "k": (5, 3, 1, 1)}
    write(HEADS[kind], **{name: rng.random(shape, np.float32) for name, shape in shapes.items()})
    assert finetune("--new-head", "--epochs", "1", net="own.onnx") == 0
    net = convcore.onnx.load("tuned.onnx")
    assert net(convcore.rand(4, 3, 8, 8)).shape == (4, 3)
    assert sum(each.numel() for each in net.parameters()) == 12


def test_a_head_of_another_kind_is_not_replaced(capsys):
    write("m = MatMul (f, w) y = PRelu (m, b)", w=np.eye(3, dtype="f4"), b=np.ones(3, "f4"))
    assert finetune("--new-head", net="own.onnx") == 2
    assert "the last layer with weights, 'PRelu_0', is a PRelu" in capsys.readouterr().err


def test_weights_that_were_quantized_are_written_as_a_new_model(capsys, rng):
    array = rng.integers(-90, 90, (3, 3)).astype(np.int8)
    write("w = DequantizeLinear (q, s) y = MatMul (f, w)", q=array, s=np.array(0.01, np.float32))
    assert finetune("--train", "q", "--epochs", "1", net="own.onnx") == 0
    assert "written as a new model: save(): the file cannot hold" in capsys.readouterr().out
    assert convcore.onnx.load("tuned.onnx")(convcore.rand(4, 3, 8, 8)).shape == (4, 3)


REFUSED = {
    "no net": ({"net": "no.onnx"}, [], "no.onnx: No such file"),
    "no folder": ({"data": "no"}, [], "--data no: No such file"),
    "one class": ({"data": "single"}, [], "--data single has 1 folders: one for each class"),
    "no pictures": ({"data": "empty"}, [], "empty/b has no pictures: files that end in .bmp"),
    "broken": ({"data": "broken"}, [], "broken/b/x.png: this is no picture"),
    "cut": ({"data": "cut"}, ["--new-head"], "cut/b/x.png: this is no picture"),
    "outputs": ({}, [], "the net has 4 outputs for 3 classes: --labels names"),
    "unlabelled": ({}, ["--labels", "two.txt"], "--labels two.txt lacks 'blue' of data\n"),
    "no folder of a label": (
        {},
        ["--labels", "four.txt", "--new-head"],
        "--data data has no folder 'black', of --labels",
    ),
    "no labels": ({}, ["--labels", "no.txt"], "--labels no.txt: No such file"),
    "no weights": (
        {},
        [*KEPT, "--train", "clasifier*"],
        "--train: no parameter has the name 'clasifier*'; there are ",
    ),
    "probabilities": ({"net": "sigmoid.onnx"}, [], "not logits: node '/6/Sigmoid' is a Sigmoid"),
    "maps": ({"net": "maps.onnx"}, [], "floats of (N, classes), but float32[1, 4, 6, 6]"),
    "size": ({}, [*KEPT, "--size", "9,9"], "--size: the net takes pictures of 8 x 8"),
    "no size": ({"net": "free.onnx"}, [], "height or width free: give them, as --size 224,224"),
    "another size": (
        {"net": "free.onnx"},
        ["--size", "9,9", "--labels", "four.txt"],
        "free.onnx cannot take [1, 3, 9, 9]: ",
    ),
    "rows": ({"net": "rows.onnx"}, [], "a picture is for an input (N, C, H, W)"),
    "batch": ({"net": "batch.onnx"}, [], "the net takes 2 pictures at once"),
    "diverges": ({}, [*KEPT, "--lr", "1e38"], "choose a smaller --lr"),
    "nothing saved": ({}, [*KEPT, "--resume"], "--resume: there is no tuned.pt"),
    "output": ({}, [*KEPT, "-o", "no/net.onnx"], "--output: there is no directory no"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_is_refused_in_one_line(name, folder, capsys):
    files, words, expected = REFUSED[name]
    for data in ("single", "empty", "broken", "cut"):
        for each in "ab" if data != "single" else "a":
            (folder / data / each).mkdir(parents=True)
            if (data, each) != ("empty", "b"):
                image.new("RGB", (64, 64)).save(f"{data}/{each}/x.png")
    (folder / "broken/b/x.png").write_bytes(b"nothing")
    (folder / "cut/b/x.png").write_bytes((folder / "cut/a/x.png").read_bytes()[:-30])
    export(net_of(3, nn.Sigmoid()), "sigmoid.onnx")
    export(net_of(3)[:1], "maps.onnx")
    export(nn.Sequential(nn.Flatten(), nn.Linear(192, 4)), "free.onnx", a2="H", a3="W")
    export(nn.Linear(4, 3), "rows.onnx", shape=(1, 4))
    convcore.onnx.export(net_of(3), convcore.rand(2, 3, 8, 8), "batch.onnx")
    assert finetune(*words, **files) == 2
    error = capsys.readouterr().err
    assert expected in error and error.count("\n") == 1
    assert not (folder / "tuned.onnx").exists()


def test_another_training_is_not_continued(capsys):
    assert finetune(*KEPT[:-1], "1") == 0
    assert finetune(*KEPT, "--resume", "--batch", "3") == 2
    assert "tuned.pt was saved with batch 16, not 3\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lr", "0"], "must be a number above 0"),
        (["--lr", "nan"], "must be a number above 0"),
        (["--validation", "1"], "must be 0 or more and below 1"),
    ],
)
def test_numbers_out_of_range_are_refused(words, said, capsys):
    with pytest.raises(SystemExit):
        finetune(*words)
    assert said in capsys.readouterr().err
