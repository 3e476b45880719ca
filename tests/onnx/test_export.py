"""Nets as ONNX models: the same bits when loaded again, the same numbers in ONNX Runtime."""

import pickle

import numpy as np
import pytest
from onnx_nets import Call, runtime_results
from slim_nets import slim_vgg

import convcore
from convcore import models, nn
from convcore.nn import functional as F

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export, load  # noqa: E402


@pytest.fixture
def check(tmp_path):
    """Return a function that exports a net, and compares what is loaded with it."""

    def checked(net, *inputs, **options):
        file = tmp_path / "net.onnx"
        export(net, inputs, file, **options)
        loaded = load(file)
        with convcore.no_grad():
            expected = net.eval()(*inputs)
            result = loaded(*inputs)
        convcore.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6)
        assert_runtime_agrees(file, inputs, expected)
        return loaded, result, expected

    return checked


def assert_runtime_agrees(file, inputs, expected):
    """Compare with ONNX Runtime, where it is installed."""
    found = runtime_results(file, *inputs)
    if found is None:
        return
    (result,) = found
    expected = expected.numpy()
    assert np.abs(result - expected).max() <= 1e-5 * max(1, np.abs(expected).max())


NETS = {
    "autoencoder": (3, 64),
    "lenet": (1, 28),
    "resnet8": (3, 64),
    "resnet18": (3, 64),
    "resnet34": (3, 64),
    "resnet50": (3, 64),
    "mobilenet_v2": (3, 64),
    "unet": (3, 32),
    "vgg11": (3, 224),
}


@pytest.mark.parametrize("name", NETS)
def test_nets_come_back_with_the_same_bits(name, check, rng):
    channels, size = NETS[name]
    x = convcore.tensor(rng.standard_normal((1, channels, size, size), dtype=np.float32))
    make = getattr(models, name)
    _, result, expected = check(slim_vgg(make) if name == "vgg11" else make(), x)
    assert result.equal(expected)


MODULES = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 9)),
    "conv_same": (nn.Conv2d(4, 6, (2, 4), padding="same", dilation=2), (2, 4, 9, 8)),
    "conv_groups": (nn.Conv2d(4, 8, 3, groups=4, bias=False), (2, 4, 9, 8)),
    "conv3d": (nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 3)),
    "conv_circular": (nn.Conv2d(4, 6, 3, padding=1, padding_mode="replicate"), (2, 4, 9, 8)),
    "conv_transpose": (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
        (2, 4, 5, 6),
    ),
    "conv_transpose1d": (nn.ConvTranspose1d(4, 6, 3, dilation=2, groups=2), (2, 4, 5)),
    "linear": (nn.Linear(5, 3), (4, 5)),
    "linear_3d": (nn.Linear(5, 3), (2, 4, 5)),
    "batch_norm": (nn.BatchNorm2d(4), (2, 4, 3, 3)),
    "batch_norm_plain": (nn.BatchNorm1d(4, affine=False), (2, 4, 3)),
    "instance_norm": (nn.InstanceNorm2d(4, affine=True), (2, 4, 3, 5)),
    "group_norm": (nn.GroupNorm(2, 4), (2, 4, 3, 5)),
    "layer_norm": (nn.LayerNorm((3, 5)), (2, 4, 3, 5)),
    "response_norm": (nn.LocalResponseNorm(3), (2, 5, 3, 4)),
    "relu6": (nn.ReLU6(), (2, 40)),
    "leaky_relu": (nn.LeakyReLU(0.2), (2, 40)),
    "prelu": (nn.PReLU(4), (2, 4, 10)),
    "elu": (nn.ELU(0.7), (2, 40)),
    "selu": (nn.SELU(), (2, 40)),
    "celu": (nn.CELU(1.5), (2, 40)),
    "gelu": (nn.GELU(), (2, 40)),
    "gelu_tanh": (nn.GELU("tanh"), (2, 40)),
    "silu": (nn.SiLU(), (2, 40)),
    "mish": (nn.Mish(), (2, 40)),
    "hardswish": (nn.Hardswish(), (2, 40)),
    "hardsigmoid": (nn.Hardsigmoid(), (2, 40)),
    "hardtanh": (nn.Hardtanh(-0.5, 0.7), (2, 40)),
    "threshold": (nn.Threshold(0.3, -1.0), (2, 40)),
    "softplus": (nn.Softplus(), (2, 40)),
    "softsign": (nn.Softsign(), (2, 40)),
    "softmax": (nn.Softmax(1), (2, 4, 10)),
    "log_softmax": (nn.LogSoftmax(-1), (2, 4, 10)),
    "dropout": (nn.Sequential(nn.Dropout(0.4), nn.Dropout2d()), (2, 4, 3, 3)),
    "max_pool": (nn.MaxPool2d(3, 2, 1), (2, 4, 9, 8)),
    "max_pool_ceil": (nn.MaxPool2d(3, 2, ceil_mode=True), (2, 4, 9, 8)),
    "max_pool_dilated": (nn.MaxPool1d(3, 1, dilation=2), (2, 4, 9)),
    "avg_pool": (nn.AvgPool2d(3, 2, 1), (2, 4, 9, 8)),
    "avg_pool_inside": (nn.AvgPool2d(2, 2, 1, count_include_pad=False), (2, 4, 8, 8)),
    "adaptive_avg": (nn.AdaptiveAvgPool2d((2, 4)), (2, 4, 6, 8)),
    "adaptive_max": (nn.AdaptiveMaxPool2d(1), (2, 4, 6, 8)),
    "upsample": (nn.Upsample(scale_factor=2), (2, 4, 3, 5)),
    "upsample_bilinear": (nn.Upsample(size=(7, 9), mode="bilinear"), (2, 4, 3, 5)),
    "upsample_corners": (
        nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
        (2, 4, 3, 5),
    ),
    "upsample_bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), (2, 4, 5, 5)),
    "reflection_pad": (nn.ReflectionPad2d((1, 2, 0, 1)), (2, 4, 3, 5)),
    "constant_pad": (nn.ConstantPad2d((1, -1, 0, 2), 3.5), (2, 4, 3, 5)),
    "pixel_shuffle": (nn.PixelShuffle(2), (2, 8, 3, 5)),
    "flatten": (nn.Flatten(2), (2, 4, 3, 5)),
    "unflatten": (nn.Unflatten(1, (2, 2)), (2, 4, 3)),
    "views": (Call(lambda x: x.view(x.size(0), -1).reshape(2, 3, 4).permute(0, 2, 1)), (2, 12)),
    "slices": (Call(lambda x: x[:, 1:, ::2, -1].transpose(0, 1)), (2, 4, 5, 3)),
    "new_axes": (Call(lambda x: x[..., None, 0].squeeze(-1)), (2, 4, 5)),
    "joins": (Call(lambda x: convcore.cat([convcore.stack(x.chunk(2, 1), 1)] * 2, 2)), (2, 4, 5)),
    "splits": (Call(lambda x: x.split([1, 3], 1)[1] * 2), (2, 4, 5)),
    "unbind": (Call(lambda x: x.unbind(1)[-1] * x.select(-2, 0) + x.unbind()[1][0]), (2, 4, 4)),
    "arithmetic": (Call(lambda x: (1 - x) * x / 3 + x**2 - (-x).exp()), (2, 4)),
    "in_place": (Call(lambda x: (x * 2).add_(1).relu_().clamp_(max=3.0)), (2, 4)),
    "reductions": (Call(lambda x: x.mean((2, 3)) + x.amax((2, 3)) - x.sum((2, 3))), (2, 4, 3, 3)),
    "attention": (Call(lambda x: (x @ x.transpose(1, 2)).softmax(-1).matmul(x)), (2, 5, 4)),
    "choices": (Call(lambda x: convcore.maximum(x, x.abs().sqrt())), (2, 5)),
    "squeeze_excite": (
        Call(lambda x: x * F.adaptive_avg_pool2d(x, 1).sigmoid().unsqueeze(0).squeeze(0)),
        (2, 5, 4, 4),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_come_back(name, check, rng):
    module, shape = MODULES[name]
    check(module, convcore.tensor(rng.standard_normal(shape, dtype=np.float32)))


@pytest.mark.parametrize("opset", [13, 17, 18, 20, 23])
def test_opsets(opset, check, rng):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), Call(lambda x: x.mean((2, 3))))
    x = convcore.tensor(rng.standard_normal((2, 3, 6, 6), dtype=np.float32))
    check(net, x, opset_version=opset)


def test_other_batches_where_axes_are_dynamic(tmp_path, rng):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), Call(lambda x: x.view(x.size(0), 2, -1)))
    file = tmp_path / "net.onnx"
    axes = {"picture": {0: "batch"}, "result": [0]}
    names = {"input_names": ["picture"], "output_names": ["result"]}
    export(net, convcore.zeros(1, 1, 5, 5), file, dynamic_axes=axes, **names)
    x = convcore.tensor(rng.standard_normal((7, 1, 5, 5), dtype=np.float32))
    assert load(file)(picture=x).equal(net(x))
    proto = onnx.load(file)
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert_runtime_agrees(file, [x], net(x).detach())


def test_a_net_keeps_its_mode_and_its_weights_names(tmp_path):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout()).train()
    net[2].eval()
    file = tmp_path / "net.onnx"
    export(net, convcore.zeros(1, 1, 5, 5), file)
    assert [m.training for m in net] == [True, True, False]
    names = {tensor.name for tensor in onnx.load(file).graph.initializer}
    assert names == {name for name in net.state_dict() if "num_batches" not in name}
    assert [node.name for node in onnx.load(file).graph.node][:2] == [
        *("/0/Conv", "/1/BatchNormalization")
    ]


def test_what_depends_on_data_is_refused_and_says_where(tmp_path):
    def doubled(x):
        return x * 2 if x.sum() > 0 else x

    net = nn.Sequential(nn.ReLU(), Call(doubled))
    file = tmp_path / "net.onnx"
    file.write_bytes(b"old")
    with pytest.raises(
        OnnxError, match=r"depend on the input; called in module '1', .*test_export"
    ):
        export(net, convcore.ones(2), file)
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["net.onnx"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        ((3, convcore.ones(2)), {}, TypeError, "'model' must be Module, got int"),
        ((nn.ReLU(), 1.0), {}, TypeError, "args have to be tensors, got float"),
        (
            (nn.ReLU(), convcore.ones(2)),
            {"opset_version": 9},
            ValueError,
            "13 to 23 .*Leave it out",
        ),
        ((nn.ReLU(), convcore.ones(2)), {"input_names": ["a", "b"]}, ValueError, "1 different"),
        ((nn.ReLU(), convcore.ones(2)), {"dynamic_axes": {"z": [0]}}, ValueError, "names"),
    ],
)
def test_bad_arguments_are_named(arguments, options, error, text, tmp_path):
    with pytest.raises(error, match=text):
        export(*arguments, tmp_path / "net.onnx", **options)


def test_a_file_before_the_inputs_is_seen():
    with pytest.raises(TypeError, match="args have to be tensors, got str") as caught:
        export(nn.ReLU(), "net.onnx", convcore.ones(2))
    hint = "\nHint: inputs come second, and then the file: export(net, x, path)"
    assert str(caught.value).endswith(hint)


def test_a_misspelt_name_is_told_from_what_only_pytorch_has():
    with pytest.raises(AttributeError, match=r"'exprt'\. Did you mean 'export'\?$") as caught:
        convcore.onnx.exprt  # noqa: B018
    assert "Hint: " not in str(caught.value)


def exported(net, *inputs, file, **options):
    export(net, inputs, file, **options)
    return load(file)


@pytest.mark.parametrize("shown", [lambda x: x.detach(), lambda x: x.data])
def test_results_that_leave_the_graph_still_depend_on_the_input(shown, tmp_path):
    net = Call(lambda x: shown(x * 1) * 2)
    loaded = exported(net, convcore.ones(2), file=tmp_path / "net.onnx")
    assert loaded(convcore.tensor([3.0, 4.0])).tolist() == [6.0, 8.0]


def test_an_output_that_has_left_the_graph_depends_on_the_input():
    program = export(Call(lambda x: (x * 2).data), convcore.ones(2))
    assert program(convcore.tensor([3.0, 4.0]))[0].tolist() == [6.0, 8.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * float(x.sum()),
        lambda x: x * x.sum().item(),
        lambda x: x + convcore.tensor(x.tolist()),
        lambda x: x * 2 if bool(x.sum() > 0) else x,
        lambda x: convcore.exp(x, out=convcore.empty(2)),
    ],
)
def test_values_that_are_read_are_refused(function, tmp_path):
    with pytest.raises(OnnxError, match=r"cannot be exported"):
        export(Call(function), convcore.ones(2), tmp_path / "net.onnx")


def test_a_constant_is_taken_as_it_was_before_a_write(tmp_path):
    def summed(x):
        total = convcore.zeros(2)
        total += x
        return total

    loaded = exported(Call(summed), convcore.ones(2), file=tmp_path / "net.onnx")
    assert loaded(convcore.tensor([3.0, 4.0])).tolist() == [3.0, 4.0]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", convcore.zeros(1))

    def forward(self, x):
        first = x + self.n
        self.n.add_(1)
        return first + self.n


def test_a_buffer_that_is_changed_is_two_constants_and_put_back(tmp_path):
    net = Counting()
    loaded = exported(net, convcore.ones(2), file=tmp_path / "net.onnx")
    assert net.n.item() == 0
    assert loaded(convcore.tensor([3.0, 4.0])).tolist() == [4.0, 5.0]


def test_writes_into_views_are_refused(tmp_path):
    def written(x):
        y = x * 2
        y[0].add_(100)
        return y

    with pytest.raises(OnnxError, match="writes into memory that another tensor shows"):
        export(Call(written), convcore.ones(2), tmp_path / "net.onnx")


def test_one_tensor_given_twice_is_two_inputs_and_stays_as_it_was(tmp_path):
    def difference(a, b):
        return a.mul_(3) - b

    x = convcore.ones(2)
    loaded = exported(Call(difference), x, x, file=tmp_path / "net.onnx")
    assert x.tolist() == [1.0, 1.0]
    assert loaded(convcore.tensor([2.0]).expand(2).clone(), x).tolist() == [5.0, 5.0]


def test_names_of_weights_and_of_values_do_not_collide(tmp_path):
    net = nn.Module()
    net.constant, net.input, net.output = (nn.Parameter(convcore.ones(2) * k) for k in (1, 2, 3))
    net.forward = lambda x: x * 5 + net.constant + net.input * net.output
    loaded = exported(net, convcore.ones(2), file=tmp_path / "net.onnx")
    assert loaded(convcore.ones(2)).tolist() == [12.0, 12.0]


@pytest.mark.parametrize("size", [4, 7, (5, 9)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_resizing_is_exact_and_leaves_the_batch_free(mode, size, tmp_path, rng):
    net = Call(lambda x: F.interpolate(x, size=size, mode=mode))
    axes = {"inputs_0": {0: "n"}}
    file = tmp_path / "net.onnx"
    loaded = exported(net, convcore.zeros(1, 2, 6, 6), file=file, dynamic_axes=axes)
    x = convcore.tensor(rng.standard_normal((3, 2, 6, 6), dtype=np.float32))
    convcore.testing.assert_close(loaded(x), net(x), rtol=1e-5, atol=1e-6)
    assert_runtime_agrees(file, [x], net(x))


def test_a_given_factor_is_kept(tmp_path, rng):
    net = nn.Upsample(scale_factor=2.5, mode="bilinear")
    x = convcore.tensor(rng.standard_normal((1, 2, 3, 3), dtype=np.float32))
    loaded = exported(net, x, file=tmp_path / "net.onnx")
    convcore.testing.assert_close(loaded(x), net(x))


@pytest.mark.parametrize(
    ("function", "shape", "text"),
    [
        (lambda x: F.max_pool2d(x, 2), (2, 4, 4), "without a batch"),
        (lambda x: F.conv_transpose2d(x, convcore.ones(2, 1, 2, 2)), (2, 4, 4), "without a batch"),
        (lambda x: F.softmax(x, 0, dtype=convcore.float64), (3,), "dtype"),
        (lambda x: x.round(decimals=1), (3,), "decimals"),
        (lambda x: x.argmax(keepdim=True), (3, 2), "keepdim"),
    ],
)
def test_options_that_nodes_have_not_are_refused(function, shape, text, tmp_path):
    with pytest.raises(OnnxError, match=text):
        export(Call(function), convcore.ones(shape), tmp_path / "net.onnx")


def test_sums_of_integers_are_cast(tmp_path):
    loaded = exported(
        Call(lambda x: x.sum(0)), convcore.ones(3, dtype=convcore.int32), file=tmp_path / "n.onnx"
    )
    y = loaded(convcore.full((3,), 2, dtype=convcore.int32))
    assert y.dtype is convcore.int64 and y.item() == 6


def test_outputs_that_are_no_tensors_are_refused(tmp_path):
    for function in (lambda x: (x * 2, 3), lambda x: None):
        with pytest.raises(TypeError, match="no tensor"):
            export(Call(function), convcore.ones(2), tmp_path / "net.onnx")


def test_free_axes_have_to_be_there(tmp_path):
    with pytest.raises(ValueError, match="'input' has 1 axes, got"):
        export(nn.ReLU(), convcore.ones(2), tmp_path / "n.onnx", dynamic_axes={"input": {5: "n"}})


def test_arguments_of_other_types_and_autocast_are_refused(tmp_path):
    net, x, file = nn.Conv2d(1, 1, 3), convcore.ones(1, 1, 5, 5), tmp_path / "a.onnx"
    with pytest.raises(TypeError, match="'opset_version' must be int, not str"):
        convcore.onnx.export(net, x, file, opset_version="17")
    with pytest.raises(TypeError, match="'dynamic_axes' must be dict or None, not int"):
        convcore.onnx.export(net, x, file, dynamic_axes=3)
    pytest.importorskip("ml_dtypes")
    with convcore.autocast("cpu"), pytest.raises(OnnxError, match="leave autocast first"):
        convcore.onnx.export(net, x, file)
    assert not file.exists()


def test_an_optimized_net_is_refused():
    fast = convcore.optimize_for_inference(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()))
    with pytest.raises(OnnxError, match="export the model that it was made of"):
        export(nn.Sequential(fast), (convcore.rand(1, 1, 5, 5),))


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_arrays_of_another_process_are_inputs(dtype):
    # Their dtype is equal to NumPy's, and another object.
    array = pickle.loads(pickle.dumps(np.dtype(dtype)))
    x = convcore.from_numpy(np.ones((2, 3), array))
    program = export(nn.ReLU(), (x,))
    assert program(x)[0].dtype == x.dtype


def test_nothing_is_written_without_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = export(nn.Linear(2, 3), convcore.rand(1, 2))
    assert isinstance(program, convcore.onnx.ONNXProgram)
    assert not list(tmp_path.iterdir())


def test_inputs_have_the_names_of_forwards_arguments(tmp_path):
    class Net(nn.Module):
        def forward(self, image, mask):
            return image * mask

    program = export(Net(), (convcore.ones(2), convcore.ones(2)))
    assert [each.name for each in program.model_proto.graph.input] == ["image", "mask"]
    program = export(Net(), (convcore.ones(2), convcore.ones(2)), input_names=["picture"])
    assert [each.name for each in program.model_proto.graph.input] == ["picture", "mask"]


def test_an_outputs_name_is_none_of_an_inputs():
    with pytest.raises(ValueError, match=r"output_names: \['x'\] are names of inputs"):
        export(nn.ReLU(), convcore.ones(2), input_names=["x"], output_names=["x"])


def test_names_are_a_list():
    with pytest.raises(TypeError, match="input_names must be a list of names, got 'x'"):
        export(nn.ReLU(), convcore.ones(2), input_names="x")


def test_nested_outputs_are_outputs_in_order():
    def parts(x):
        return x * 2, {"b": [x + 1, None], "a": x - 1}

    program = export(Call(parts), convcore.ones(2), output_names=["first"])
    names = [each.name for each in program.model_proto.graph.output]
    assert names == ["first", "output_1", "output_2"]
    assert [each.tolist() for each in program(convcore.ones(2))] == [[2, 2], [2, 2], [0, 0]]


def test_a_net_may_ask_whether_it_is_exported(capsys):
    def telling(x):
        print(convcore.onnx.is_in_onnx_export())
        return x * 2

    export(Call(telling), convcore.ones(2))
    with pytest.raises(OnnxError):
        export(Call(lambda x: x * x.sum().item()), convcore.ones(2))
    print(convcore.onnx.is_in_onnx_export())
    # A net runs twice: test_constancy.py.  What it keeps is put back, what it prints is not.
    assert capsys.readouterr().out.split() == ["True", "True", "False"]


@pytest.mark.parametrize("option", ["dynamic_axes", "dynamic_shapes"])
def test_outputs_sizes_follow_those_of_inputs(option):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(18, 4))
    program = export(net, convcore.zeros(2, 1, 5, 5), **{option: {"input": {0: "batch"}}})
    (output,) = program.model_proto.graph.output
    sizes = output.type.tensor_type.shape.dim
    assert (sizes[0].dim_param, sizes[1].dim_value) == ("batch", 4)


def test_pytorchs_arguments_are_taken(tmp_path):
    net, x, file = nn.Linear(2, 3), convcore.rand(1, 2), tmp_path / "net.onnx"
    convcore.onnx.export(
        net, (x,), f=file, verbose=True, dynamo=False, export_params=True, training=None,
        do_constant_folding=True, opset_version=None, kwargs=None, operator_export_type=0,
        custom_opsets={}, verify=False, optimize=True, keep_initializers_as_inputs=False,
    )  # fmt: skip
    assert convcore.onnx.load(file)(x).equal(net(x))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"f": 3}, "'destination' must be a path or file object, got int"),
        ({"f": "net.onnx", "report": True}, "report must be False, got True"),
        ({"f": "net.onnx", "training": 2}, "nets are exported in evaluation mode"),
        ({"f": "net.onnx", "verbos": True}, "Did you mean 'verbose'?"),
        ({"f": "net.onnx", "dynamic_shape": {}}, "Did you mean 'dynamic_shapes'?"),
    ],
)
def test_other_arguments_are_refused(given, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError) as caught:
        convcore.onnx.export(nn.Linear(2, 3), (convcore.rand(1, 2),), **given)
    assert meant in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_views_that_nobody_has_any_more_do_not_hinder_a_write(tmp_path):
    def scaled(x):
        y = x * 1
        y[:, :2] = y[:, :2] * 8
        y[:, 2:] = (y[:, 2:] * 2) ** 2
        return y

    loaded = exported(Call(scaled), convcore.ones(1, 3), file=tmp_path / "net.onnx")
    assert loaded(convcore.tensor([[1.0, 2.0, 3.0]])).tolist() == [[8.0, 16.0, 36.0]]


def test_axes_that_are_joined_with_the_batch_stay_free():
    net = Call(lambda x: x.reshape(x.size(0) * x.size(1), 4).view(x.size(0) * 3, 2, 2) * 2)
    program = export(net, convcore.ones(2, 3, 4), dynamic_shapes=[({0: "batch"},)])
    x = convcore.rand(5, 3, 4)
    assert program(x)[0].equal(net(x))


def test_a_batch_that_is_split_stays_free():
    def windows(x):
        y = x.reshape(x.size(0), 2, 2, 4).permute(0, 2, 1, 3).reshape(-1, 2, 4)
        return y.view(y.size(0) // 2, 2, 2, -1)

    net = Call(windows)
    program = export(net, convcore.ones(3, 4, 4), dynamic_shapes=[({0: "batch"},)])
    for batch in (3, 6, 1):
        x = convcore.rand(batch, 4, 4)
        assert program(x)[0].equal(net(x))
