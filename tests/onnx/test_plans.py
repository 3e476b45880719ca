"""Plans of loaded nets: what depends on shapes alone is static, what depends on elements is not."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install onnx && pytest")

import onnx

import convcore
from convcore.onnx import load


def model(text, opset=17):
    """Return a net of one input x, (N, 4, H, W), and weights w, (4, 4, 3, 3)."""
    weights = onnx.numpy_helper.from_array(
        np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype(np.float32), "w"
    )
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> net (float[n, 4, h, v] x) => (float[] y)'
        f"<float[4, 4, 3, 3] w = {{{', '.join(['0'] * 144)}}}, float[4, 1, 1] slope = "
        "{0.5, 0.25, -1, 2}, float low = {-0.5}, float high = {0.75}, "
        "float[4] twice = {1, 1, 2, 2}, int64[1] last = {-1}, int64 first = {0}, "
        "int64[2] picked = {3, 1}>"
        f"{{ z = Conv <pads = [1, 1, 1, 1]> (x, w) {text} }}"
    )
    proto.graph.initializer[0].CopyFrom(weights)
    return load(proto).eval()


PLANNED = {
    "a shape is computed": (
        "s = Shape(z) n = Gather <axis = 0> (s, first) axes = Constant <value_ints = [0]> () "
        "m = Unsqueeze(n, axes) t = Concat <axis = 0> (m, last) y = Reshape(z, t)"
    ),
    "numbers of a shape": (
        "s = Shape <start = 2> (z) f = Cast <to = 1> (s) "
        "m = ReduceMax <keepdims = 0> (f) y = Div(z, m)"
    ),
    "slopes of a PRelu": "y = PRelu(z, slope)",
    "bounds of a Clip": "y = Clip(z, low, high)",
    "pixels twice": 'none = Constant <value_floats = [1.0]> () y = Resize <mode = "nearest", '
    'coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (z, , twice)',
    "pixels picked": "y = Gather <axis = 1> (z, picked)",
    "pads on one side": "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], "
    "pads = [0, 0, 1, 1]> (z)",
    "a range": (
        "s = Shape <start = 3> (z) n = Squeeze(s) one = Constant <value_int = 1> () "
        "r = Range(first, n, one) f = Cast <to = 1> (r) y = Add(z, f)"
    ),
    "a branch that a shape decides": (
        "s = Shape <start = 0, end = 1> (z) n = Squeeze(s) c = Greater(n, first) "
        "y = If(c) <then_branch = g () => (float[] a) { a = Relu(z) }, "
        "else_branch = h () => (float[] b) { b = Neg(z) }>"
    ),
}
UNPLANNED = {
    "a branch that an element decides": (
        "m = ReduceMax <keepdims = 0> (z) zero = Constant <value_float = 0.0> () "
        "c = Greater(m, zero) y = If(c) <then_branch = g () => (float[] a) { a = Relu(z) }, "
        "else_branch = h () => (float[] b) { b = Neg(z) }>"
    ),
    "sizes that elements decide": (
        "n = Cast <to = 7> (z) o = ReduceMax <keepdims = 0> (n) p = Abs(o) q = Mul(p, first) "
        "axes = Constant <value_ints = [0]> () r = Unsqueeze(q, axes) "
        "t = Concat <axis = 0> (r, last) y = Reshape(z, t)"
    ),
    "noise": "r = RandomNormalLike <seed = 1.0> (z) s = Shape(z) e = Expand(low, s) "
    "n = RandomUniformLike <seed = 1.0> (e) y = Add(z, n)",
}


def assert_agrees(net, planned):
    x = convcore.from_numpy(np.random.default_rng(1).standard_normal((2, 4, 6, 8)).astype("f"))
    with convcore.no_grad():
        expected = net(x)
    fast = convcore.optimize_for_inference(net, x)
    for _ in range(2):
        assert convcore.allclose(fast(x), expected, atol=1e-5)
    assert any(fast._plans._kinds.values()) == planned


@pytest.mark.parametrize("name", PLANNED)
def test_what_shapes_decide_is_planned(name):
    assert_agrees(model(PLANNED[name]), planned=True)


@pytest.mark.parametrize("name", [name for name in UNPLANNED if name != "noise"])
def test_what_elements_decide_is_not_planned(name):
    assert_agrees(model(UNPLANNED[name]), planned=False)


def test_noise_is_drawn_anew():
    net = model(UNPLANNED["noise"])
    x = convcore.zeros(1, 4, 6, 6)
    fast = convcore.optimize_for_inference(net, x)
    fast(x)
    assert not any(fast._plans._kinds.values())


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_are_planned(op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    rng = np.random.default_rng(2)
    sizes = {"w": (2, 5 * gates, 4), "r": (2, 5 * gates, 5), "b": (2, 10 * gates)}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, list("xwrb"), ["y"], hidden_size=5, direction="bidirectional")],
        "net",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["t", "n", 4])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["t", 2, "n", 5])],
        [
            onnx.numpy_helper.from_array(rng.standard_normal(size).astype("f"), name)
            for name, size in sizes.items()
        ],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    net = load(onnx.helper.make_model(graph, opset_imports=opsets)).eval()
    x = convcore.randn(6, 3, 4)
    with convcore.no_grad():
        expected = net(x)
    fast = convcore.optimize_for_inference(net, x)
    assert convcore.allclose(fast(x), expected, atol=1e-5)
    assert any(fast._plans._kinds.values())


def test_several_outputs_are_planned():
    net = model("y = Relu(z)")
    net.output_names = ("y", "z")
    net.steps = tuple(step._replace(released=()) for step in net.steps)
    x = convcore.randn(1, 4, 5, 5)
    with convcore.no_grad():
        expected = net(x)
    fast = convcore.optimize_for_inference(net, x)
    for result, wanted in zip(fast(x), expected, strict=True):
        assert convcore.allclose(result, wanted, atol=1e-5)
    assert any(fast._plans._kinds.values())
