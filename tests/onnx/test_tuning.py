"""Loaded nets are trained in part, cut, and given other modules; quantized ones are trained too."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")
pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")

import onnx_round_trip as trips  # noqa: E402
from onnx import numpy_helper, parser  # noqa: E402

from convcore.onnx import OnnxError, cut, export, load, save, train_only  # noqa: E402

NET = """
g (float[n, 3, 6, 6] x) => (float[n, 5] y) {
    ["/features/0/Conv"] c = Conv (x, features_w)
    ["/features/1/BatchNormalization"] b = BatchNormalization (c, scale, shift, mean, var)
    ["features.2"] r = Relu (b)
    d = Dropout (r)
    p = GlobalAveragePool (d)
    f = Flatten (p)
    ["/classifier/MatMul"] m = MatMul (f, onnx_MatMul_7)
    ["/classifier/Add"] y = Add (m, classifier_bias)
}"""
SHAPES = {
    **{"features_w": (4, 3, 3, 3), "scale": (4,), "shift": (4,), "mean": (4,), "var": (4,)},
    **{"onnx_MatMul_7": (4, 5), "classifier_bias": (5,)},
}


def net_of(text, arrays, opset=17):
    proto = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    for name, array in arrays.items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return load(proto)


@pytest.fixture
def net(rng):
    return net_of(NET, {k: rng.random(v, np.float32) + 0.1 for k, v in SHAPES.items()})


@pytest.fixture
def x(rng):
    return convcore.from_numpy(rng.random((2, 3, 6, 6), np.float32))


def check_export(net, x, folder, **options):
    """Export a net, and compare with ONNX Runtime."""
    export(net, (x,), folder / "new.onnx", **options)
    (name,) = net.input_names
    found = trips.by_runtime(folder / "new.onnx", {name: x.numpy()})
    net.eval()
    y = net(x)
    own = [each.detach().numpy() for each in (y if isinstance(y, tuple) else (y,))]
    assert trips.distance(own, found) < 1e-5


# Training


@pytest.mark.parametrize(
    ("select", "trained"),
    [
        ("classifier*", ["/classifier/MatMul.B", "/classifier/Add.B"]),
        ("/classifier/MatMul", ["/classifier/MatMul.B"]),
        ("onnx_MatMul_7", ["/classifier/MatMul.B"]),
        ("*Add.B", ["/classifier/Add.B"]),
        (["shift", "*bias"], ["/features/1/BatchNormalization.bias", "/classifier/Add.B"]),
    ],
)
def test_weights_are_chosen_by_names_of_nodes_parameters_and_initializers(select, trained, net, x):
    assert train_only(net, select) == trained
    net(x).sum().backward()
    found = [name for name, each in net.named_parameters() if each.grad is not None]
    assert found == trained


def test_frozen_batch_norms_keep_their_statistics_and_dropouts_drop(net, x):
    norm = net.nodes["/features/1/BatchNormalization"]
    before = norm.running_mean.clone()
    train_only(net, "classifier*")
    assert not net(x).equal(net(x))
    assert norm.running_mean.equal(before)
    train_only(net, ["classifier*", "scale"])
    net(x)
    assert not norm.running_mean.equal(before)
    net.eval()
    assert net(x).equal(net(x))


def test_chosen_weights_alone_are_written(net, x, tmp_path):
    path = tmp_path / "net.onnx"
    save(net, path)
    net = load(path)
    optimizer = convcore.optim.SGD(net.parameters(), lr=0.1)
    train_only(net, "classifier*")
    net(x).square().sum().backward()
    optimizer.step()
    save(net, tmp_path / "tuned.onnx")
    changed = trips.changed_tensors(path, tmp_path / "tuned.onnx")
    assert changed == {"onnx_MatMul_7", "classifier_bias"}


def test_names_that_fit_nothing_are_refused_with_near_names(net):
    net.requires_grad_(False)
    with pytest.raises(ValueError, match=r"'clasifier_bias'; there are 'classifier_bias'"):
        train_only(net, ["*", "clasifier_bias"])
    assert not any(each.requires_grad for each in net.parameters())


# Other modules, and parts


def test_a_head_is_replaced_by_assigning_to_its_node(net, x, tmp_path):
    net.nodes["/classifier/MatMul"] = nn.Linear(4, 2)
    net.nodes["/classifier/Add"] = nn.Identity()
    assert net(x).shape == (2, 2)
    check_export(net, x, tmp_path, dynamic_axes={"x": {0: "batch"}})
    assert train_only(net, "classifier*") == [f"/classifier/MatMul.{k}" for k in ("weight", "bias")]


def test_a_module_is_inserted_around_a_node(net, x, tmp_path):
    relu = net.nodes["features.2"]
    net.nodes["features.2"] = nn.Sequential(relu, nn.Conv2d(4, 4, 1), nn.Dropout(0.5)).eval()
    assert net.nodes["features.2"][0] is relu
    check_export(net, x, tmp_path)
    assert train_only(net, "features.2*") == [f"features_2.1.{k}" for k in ("weight", "bias")]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_know_the_names_of_replaced_nodes(copied, net):
    net.nodes["features.2"] = nn.Identity()
    assert isinstance(copied(net).nodes["features.2"], nn.Identity)


def test_only_nodes_are_replaced_and_only_by_modules(net):
    with pytest.raises(KeyError, match=r"no node has the name 'features.3'; .*'features.2'"):
        net.nodes["features.3"] = nn.Identity()
    with pytest.raises(TypeError, match=r"nodes\['features.2'\]: .* got function"):
        net.nodes["features.2"] = convcore.relu


def test_a_part_ends_at_a_tensor_or_node_and_has_the_same_modules(net, x, tmp_path):
    features = cut(net, "f")
    assert features(x).shape == (2, 4) and features.output_names == ("f",)
    assert cut(net, "Flatten_0")(x).equal(features(x))
    assert features.nodes["features.2"] is net.nodes["features.2"]
    check_export(features, x, tmp_path)
    maps, scores = cut(net, ["features.2", "y"])(x)
    assert maps.shape == (2, 4, 4, 4) and scores.equal(net(x))
    head = cut(net, "y", inputs="f")
    assert head(features(x)).equal(net(x))
    assert list(head.nodes) == ["/classifier/MatMul", "/classifier/Add"]
    check_export(head, features(x).detach(), tmp_path)


def test_a_part_is_trained_under_the_names_of_the_whole(net, x):
    assert train_only(cut(net, "f"), "features_w") == ["/features/0/Conv.weight"]
    cut(net, "f")(x).sum().backward()
    assert net.nodes["/features/0/Conv"].weight.grad is not None
    with pytest.raises(TypeError, match=r"must be made by convcore.onnx.load"):
        save(cut(net, "f"), "net.onnx")


def test_parts_that_need_more_or_do_not_exist_are_refused(rng):
    net = net_of("g (float[2] a, float[2] b) => (float[2] y) { h = Neg (a) y = Add (h, b) }", {})
    assert cut(net, "h").input_names == ("a",)
    assert cut(net, "y", ["h", "b"])(convcore.ones(2), convcore.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="the part needs 'b' too"):
        cut(net, "y", "h")
    with pytest.raises(ValueError, match="outputs has 'z', which is no tensor"):
        cut(net, "z")


def test_a_part_keeps_inputs_with_a_default():
    text = """g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> {
        v = Neg (w)
        h = Mul (x, v)
        y = Abs (h) }"""
    part, one = cut(net_of(text, {}), "h"), convcore.ones(2)
    assert part.optional_names == ("w",)
    assert part(one).tolist() == [-1, -2] and part(one, 3 * one).tolist() == [-3, -3]


# Quantized nets

QUANTIZED = """
g (float[n, 4] x) => (float[n, 2] y) {
    a = QuantizeLinear (x, s, z)
    b = DequantizeLinear (a, s, z)
    w = DequantizeLinear (wq, ws)
    h = MatMul (b, w)
    [relu] r = Relu (h)
    [quantize] c = QuantizeLinear (r, s, z)
    d = DequantizeLinear (c, s, z)
    v = DequantizeLinear (vq, ws)
    y = MatMul (d, v)
}"""


@pytest.fixture
def quantized(rng):
    arrays = {"s": np.float32(0.02), "z": np.int8(3), "ws": np.float32(0.01)}
    weights = {
        name: rng.integers(-90, 90, shape).astype(np.int8)
        for name, shape in (("wq", (4, 3)), ("vq", (3, 2)))
    }
    return net_of(QUANTIZED, arrays | weights)


def test_gradients_pass_straight_through_where_values_fit(quantized):
    x = convcore.tensor([[0.5, -0.3, 9.0, -9.0]], requires_grad=True)
    part = cut(quantized, "b")
    y = part(x)
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 0, 0]]
    convcore.testing.assert_close(y, convcore.tensor([[0.5, -0.3, 2.48, -2.62]]))
    with convcore.no_grad():
        assert part(x).equal(y)


def test_a_quantized_net_is_trained_with_the_values_of_the_runtime(quantized, rng, tmp_path):
    x = convcore.from_numpy(rng.random((8, 4), np.float32))
    target = convcore.from_numpy(rng.random((8, 2), np.float32))
    save(quantized, tmp_path / "net.onnx")
    found = trips.by_runtime(tmp_path / "net.onnx", {"x": x.numpy()})
    assert trips.distance([quantized(x).detach().numpy()], found) < 1e-6
    assert train_only(quantized, ["wq", "vq"]) == ["MatMul_0.B", "MatMul_1.B"]
    optimizer, losses = convcore.optim.SGD(quantized.parameters(), lr=0.1), []
    for _ in range(30):
        optimizer.zero_grad()
        losses.append(nn.functional.mse_loss(quantized(x), target))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0] / 2
    check_export(quantized, x, tmp_path)
    with pytest.raises(OnnxError, match=r"MatMul_0.B as it is now: it was computed from"):
        save(quantized, tmp_path / "tuned.onnx")


INTEGERS = {
    "QuantizeLinear": "q = QuantizeLinear (h, s, z) t = Transpose (q) y = DequantizeLinear (t, s)",
    "QuantizeLinear of opset 19": "q = QuantizeLinear (h, s, f) y = DequantizeLinear (q, s, f)",
    "DynamicQuantizeLinear": """q, u, k = DynamicQuantizeLinear (h)
        i = MatMulInteger (q, wq, k)
        y = Cast <to = 1> (i)""",
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_after_trained_weights_are_refused_by_name(name):
    text = f"g (float[2, 2] x) => (float[2, 2] y) {{ h = Mul (x, w) {INTEGERS[name]} }}"
    float8 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E4M3FN)
    arrays = {"w": np.ones(2, np.float32), "wq": np.ones((2, 2), np.uint8)}
    arrays |= {"s": np.float32(1), "z": np.int8(0), "f": np.zeros((), float8)}
    with pytest.raises(OnnxError, match=f"{name}.* computes integers"):
        train_only(net_of(text, arrays, opset=19), "w")
