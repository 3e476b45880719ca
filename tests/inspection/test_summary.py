"""The summary of a net: rows in the order of calls, totals, and nothing left behind."""

import importlib.util
from pathlib import Path

import pytest

import convcore
from convcore import cli, inspection, models, nn


def test_rows_are_the_calls_in_order():
    found = convcore.summary(models.lenet(), (3, 1, 28, 28))
    assert [(row.name, row.type, row.depth) for row in found.rows] == [
        ("", "LeNet", 0),
        ("conv1", "Conv2d", 1),
        ("conv2", "Conv2d", 1),
        ("conv2_drop", "Dropout2d", 1),
        ("fc1", "Linear", 1),
        ("fc2", "Linear", 1),
    ]
    assert [row.output for row in found.rows[1:3]] == [[3, 10, 24, 24], [3, 20, 8, 8]]
    assert [row.parameters for row in found.rows] == [21840, 260, 5020, 0, 16050, 510]
    assert found.total_params == found.trainable_params == 21840
    assert found.multiply_adds == 3 * 480_500
    assert found.input_bytes == 4 * 3 * 28 * 28 and found.param_bytes == 4 * 21840


def test_resnet18_has_the_totals_that_are_known():
    found = convcore.summary(models.resnet18(), (1, 3, 224, 224))
    assert found.total_params == 11_689_512 and found.buffers == 9_620
    assert found.multiply_adds == 1_814_073_344
    leaves = [row for row in found.rows if row.is_leaf]
    assert sum(row.type == "Conv2d" for row in leaves) == 20 and len(leaves) == 60
    assert found.rows[0].multiply_adds == sum(row.multiply_adds for row in leaves)
    by_name = {row.name: row for row in found.rows}
    assert by_name["layer2.0.downsample.0"].multiply_adds == 128 * 28 * 28 * 64
    assert by_name["layer2.0"].parameters == 230_144


def test_results_are_counted_where_memory_is_taken():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(18, 4))
    found = convcore.summary(net, (1, 1, 5, 5))
    assert [row.output_bytes for row in found.rows] == [72 + 16, 72, 0, 0, 16]
    assert found.total_bytes == 100 + 88 + 4 * found.total_params


def test_multiply_adds_are_those_of_the_definitions():
    layers = {
        nn.Conv1d(4, 6, 3, groups=2): ((2, 4, 9), 2 * 6 * 7 * 2 * 3),
        nn.Conv3d(1, 2, 2): ((1, 1, 3, 3, 3), 2 * 8 * 8),
        nn.ConvTranspose2d(3, 5, 2, stride=2): ((1, 3, 4, 4), 3 * 16 * 5 * 4),
        nn.Linear(7, 2): ((5, 3, 7), 5 * 3 * 2 * 7),
    }
    for layer, (shape, expected) in layers.items():
        assert convcore.summary(layer, shape).multiply_adds == expected


def attention(**options):
    return nn.MultiheadAttention(8, 2, **options)


@pytest.mark.parametrize(
    ("layer", "args", "kwargs"),
    [
        (attention(), [(5, 3, 8)] * 3, {}),
        (attention(batch_first=True), [(3, 5, 8)], {"key": (3, 7, 8), "value": (3, 7, 8)}),
        (attention(kdim=4, vdim=6), [(5, 3, 8), (7, 3, 4), (7, 3, 6)], {}),
        (attention(add_bias_kv=True, add_zero_attn=True), [(5, 3, 8)] * 3, {}),
        (attention(), [(5, 8)] * 3, {}),
        (nn.TransformerEncoderLayer(8, 2, 16), [(5, 3, 8)], {}),
        (nn.TransformerDecoderLayer(8, 2, 16), [(5, 3, 8), (7, 3, 8)], {}),
        (nn.RNN(8, 4, num_layers=2, bidirectional=True), [(5, 3, 8)], {}),
        (nn.GRU(8, 4, batch_first=True), [(3, 5, 8)], {}),
        (nn.LSTM(8, 4, proj_size=2), [], {"input": (5, 3, 8)}),
        (nn.LSTMCell(8, 4), [(3, 8)], {}),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, nn.Module) else "",
)
def test_multiply_adds_of_attention_and_recurrent_layers_are_those_that_a_profile_sees(
    layer, args, kwargs
):
    args = tuple(convcore.rand(shape) for shape in args)
    kwargs = {name: convcore.rand(shape) for name, shape in kwargs.items()}
    with inspection.profile(layer.eval()) as measured:
        layer(*args, **kwargs)
    found = convcore.summary(layer, args, kwargs=kwargs)
    assert found.multiply_adds == measured.multiply_adds > 0
    assert not found.not_counted and not found.not_called


def test_packed_sequences_count_their_steps():
    packed = nn.utils.rnn.pack_sequence([convcore.zeros(5, 8), convcore.zeros(2, 8)])
    assert convcore.summary(nn.GRU(8, 4), (packed,)).multiply_adds == (5 + 2) * 3 * 4 * (8 + 4)


def test_products_of_functions_are_named_where_no_layer_counts_them():
    class Net(nn.Module):
        def forward(self, x):
            return nn.functional.linear(x @ x, x).relu() + x

    found = convcore.summary(nn.Sequential(nn.Linear(4, 4), Net()), (4, 4))
    assert found.not_counted == ["matmul", "linear"] and found.multiply_adds == 64
    assert "\nNot counted    matmul, linear, called as functions\n" in str(found)
    assert "Not counted" not in str(convcore.summary(models.lenet(), (3, 1, 28, 28)))


class Branches(nn.Module):
    """Takes two tensors and an option; returns a dict with a tuple in it."""

    def __init__(self):
        super().__init__()
        self.left = nn.Linear(2, 3)
        self.right = nn.Linear(2, 3)
        self.unused = nn.Linear(9, 9)

    def forward(self, a, b, scale=1):
        return {"both": (self.left(a), self.right(b)), "scaled": a * scale, "name": "x"}


def test_tuples_dicts_and_keyword_arguments():
    a, b = convcore.ones(4, 2), convcore.ones(5, 2)
    found = convcore.summary(Branches(), (a, b), kwargs={"scale": 3})
    assert found.rows[0].output == {"both": ([4, 3], [5, 3]), "scaled": [4, 2], "name": None}
    assert found.not_called == ["unused"] and "Not called     unused" in str(found)
    assert found.total_params == 18 + 90
    assert found.input_bytes == 4 * (8 + 10)


def test_argument_that_is_a_dict():
    class Keyed(nn.Module):
        def forward(self, batch):
            return batch["x"] + 1

    assert convcore.summary(Keyed(), {"x": convcore.ones(3)}).rows[0].output == [3]


def test_integer_inputs():
    class Lookup(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(convcore.randn(10, 4))

        def forward(self, numbers):
            return self.table[numbers]

    found = convcore.summary(Lookup(), convcore.tensor([[1, 2, 3]]))
    assert found.rows[0].output == [1, 3, 4] and found.total_params == 40
    assert convcore.summary(Lookup(), (2, 5), dtype=convcore.int64).rows[0].output == [2, 5, 4]


def test_one_image_without_its_batch_is_said():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 10))
    with pytest.raises(RuntimeError) as caught:
        convcore.summary(net, (3, 8, 8))
    text, hint = str(caught.value).split("\n")
    assert text.startswith("mat1 and mat2 shapes cannot be multiplied")
    assert hint == "Hint: the net takes a batch: summary(model, (1, 3, 8, 8))"
    with pytest.raises(RuntimeError) as caught:
        convcore.summary(net, (3, 9, 9))
    assert "takes a batch" not in str(caught.value)


def test_shared_modules_and_parameters_count_once():
    shared = nn.Linear(3, 3)
    net = nn.Sequential(shared, nn.ReLU(), shared, nn.Linear(3, 3))
    net[3].weight = shared.weight
    found = convcore.summary(net, (2, 3))
    assert found.total_params == 12 + 3
    assert [row.again for row in found.rows] == [False, False, False, True, False]
    assert found.multiply_adds == 3 * 2 * 9
    assert "again" in str(found)


def test_frozen_parameters_are_not_trained():
    net = nn.Linear(3, 2)
    net.weight.requires_grad = False
    found = convcore.summary(net, (1, 3))
    assert (found.trainable_params, found.total_params) == (2, 8)
    assert "2 are trained, 6 are not" in str(found)


def test_model_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    net[0].eval()
    state = convcore.get_rng_state()
    convcore.summary(net, (1, 2))
    assert [m.training for m in net.modules()] == [True, False, True]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())
    assert convcore.equal(convcore.get_rng_state(), state)
    with pytest.raises(RuntimeError):
        convcore.summary(net, (1, 3))
    assert [m.training for m in net.modules()] == [True, False, True]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_table_goes_as_deep_as_asked():
    net = models.resnet8()
    lines = [str(convcore.summary(net, (1, 3, 8, 8), depth=depth)) for depth in (0, 1, None)]
    assert lines[0].count("\n") < lines[1].count("\n") < lines[2].count("\n")
    assert "layer1.0" not in lines[1] and "layer1.0" in lines[2]
    assert all(text.splitlines()[2].startswith("(model)  ") for text in lines)


def test_forgotten_input_is_named():
    with pytest.raises(TypeError) as caught:
        convcore.summary(nn.Linear(2, 2))
    assert "(1, 3, 224, 224)" in str(caught.value)
    with pytest.raises(TypeError) as caught:
        convcore.summary(nn.Linear(2, 2), kwargs={"x": 1})
    assert "Hint: " not in str(caught.value)


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="model must be a Module, got int"):
        convcore.summary(3)
    with pytest.raises(ValueError, match="depth must not be negative, got -1"):
        convcore.summary(nn.ReLU(), (1,), depth=-1)


@pytest.mark.parametrize("called", [False, True])
def test_optimized_net_is_refused_whose_parameters_are_prepacked(called):
    net, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), convcore.rand(1, 1, 5, 5)
    fast = convcore.optimize_for_inference(net, *[x] * called)
    for model in (fast, nn.Sequential(fast)):
        with pytest.raises(RuntimeError, match=r"summary cannot tell .*: give it the model that"):
            convcore.summary(model, x)
    assert convcore.summary(net, x).total_params == 20


def test_net_that_was_optimized_in_place_is_refused():
    net, x = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), convcore.rand(1, 1, 5, 5)
    convcore.optimize_for_inference(net, x, inplace=True)
    with pytest.raises(RuntimeError, match="optimize_for_inference"):
        convcore.summary(net, x)


# The command


def test_command_prints_the_table(capsys):
    assert cli.main(["summary", "lenet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split()[:2] == ["conv1", "Conv2d"]
    assert "[1, 10, 24, 24]" in lines[3] and lines[3].endswith("144,000")
    assert lines[-2] == "Multiply-adds  480,500 of the whole batch"


def test_command_takes_sizes_and_depth(capsys):
    arguments = ["--input", "2,3,16,16", "--depth", "0", "--dtype", "float64"]
    assert cli.main(["summary", "resnet8", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "[2, 10]" in printed and "conv1" not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet"], "there is no model 'resnet', only autoencoder, lenet"),
        (["lenet", "--input", "1,3,28,28"], "lenet cannot take [1, 3, 28, 28]: "),
        (["resnet18", "--input", "1,3"], "size: [1, 3]; --input is N,C,H,W, as 1,3,224,224\n"),
    ],
)
def test_command_says_what_is_wrong(capsys, arguments, message):
    assert cli.main(["summary", *arguments]) == 2
    assert message in capsys.readouterr().err


# The torchsummary package

PROGRAM = """if True:
    import importlib, sys
    sys.path[:0] = sys.argv[2:]
    if sys.argv[1] == "convcore":
        import convcore
        import convcore.autograd, convcore.nn
        from convcore import models
        for name in ("", ".nn", ".autograd"):
            sys.modules["torch" + name] = importlib.import_module("convcore" + name)
    else:
        import torch, torch_twins
        models = torch_twins.models_of_torch()
    from torchsummary import summary
    summary(models.lenet(), (1, 28, 28), device="cpu")
    summary(models.resnet18(), (3, 224, 224), device="cpu")
"""


@pytest.mark.subprocess
def test_torchsummary_prints_on_convcore_what_it_prints_on_pytorch(torch, run_child):
    package = importlib.util.find_spec("torchsummary")
    if package is None:
        pytest.skip("torchsummary is not installed")
    paths = [str(Path(__file__).parents[1] / "helpers"), str(Path(package.origin).parents[1])]
    texts = [run_child(PROGRAM, library, *paths) for library in ("convcore", "torch")]
    assert texts[0].splitlines() == texts[1].splitlines()
    lines = texts[0].splitlines()
    assert sum("-" in line and line[:20].strip().count("-") == 1 for line in lines) >= 68 + 5
    for total in ("21,840", "11,689,512", "0.57", "62.79", "44.59", "107.96"):
        assert any(line.endswith(f": {total}") for line in lines), total


def test_a_table_in_a_narrow_terminal_keeps_its_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.main(["summary", "resnet8"]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["Module", "Output", "shape", "Parameters", "Multiply-adds"]
    table = lines[: next(n for n, line in enumerate(lines) if not line.strip("-"))]
    assert {len(line) for line in table} == {len(head)} and len(head) <= 60
