"""Nodes of loaded nets by the names that the file has: as modules, captured and patched."""

import pytest

import convcore
from convcore import inspection

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from onnx import parser  # noqa: E402

from convcore.onnx import load  # noqa: E402


@pytest.fixture
def net():
    return load(
        parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x, bool yes) => (float[2] y, float[1] s, float[1] t) {
            ["layer1.0.relu"] a = Relu (x)
            ["/layer1/neg"] b = Neg (a)
            c = Abs (b)
            ["a[0]"] d = Exp (c)
            ["layer1.0.relu"] e = Relu (d)
            ["If_1"] f = If (yes) <
                then_branch = one () => (float[2] g) { ["in.then"] g = Neg (e) },
                else_branch = two () => (float[2] h) { h = Abs (e) }>
            y = Identity (f)
            ["the.split"] s, t = Split (y)
        }""")
    )


X = convcore.tensor([-1.0, 2.0])
YES = convcore.tensor(True)


def test_nodes_are_modules_by_their_names(net):
    assert list(net.nodes) == [
        *("layer1.0.relu", "/layer1/neg", "Abs_0", "a[0]", "layer1_0_relu_1", "If_1"),
        *("Identity_0", "the.split", "in.then", "If_1.else_branch.Abs_0"),
    ]
    assert net.nodes["layer1.0.relu"] is net.get_submodule("layer1_0_relu")
    assert net.nodes["in.then"] is net.get_submodule("If_1.then_branch.in_then")
    assert net.nodes.get("no such node") is None
    net.Abs_0 = convcore.nn.ReLU()
    assert net.nodes["Abs_0"] is net.Abs_0


def test_an_unknown_node_is_refused_with_near_names(net):
    with pytest.raises(KeyError, match=r"no node has the name 'layer1.0.rlu'; .* 'layer1.0.relu'"):
        net.nodes["layer1.0.rlu"]


def test_nodes_are_captured_by_their_names(net):
    names = ["layer1.0.*", "in.then", "the.split", "a[0]"]
    with inspection.capture(net, names) as found:
        net(X, YES)
    assert list(found) == [
        *("layer1_0_relu", "a[0]", "layer1_0_relu_1", "If_1.then_branch.in_then"),
        *("the_split[0]", "the_split[1]"),
    ]
    assert found["layer1.0.relu"].tolist() == [0, 2]  # the first of the two
    assert found["in.then"].equal(found["If_1.then_branch.in_then"])
    assert found["the.split[1]"].equal(found["the_split[1]"])
    assert "the.split[0]" in found and "the.split[2]" not in found
    with pytest.raises(KeyError, match=r"the\.split"):
        found["the.split"]


def test_nodes_are_patched_by_their_names(net):
    with inspection.patch(net, {"in.then": inspection.zero, "/layer1/neg": inspection.scale(2)}):
        y, *_ = net(X, YES)
    assert y.tolist() == [0, 0]
    with (
        pytest.raises(ValueError, match="no layer or call has the name"),
        inspection.patch(net, {"in.them": inspection.zero}),
    ):
        net(X, YES)


def test_gradients_are_read_by_the_names_of_nodes(net):
    x = X.clone().requires_grad_()
    with inspection.capture(net, "layer1.0.relu") as found:
        net(x, YES)[0].sum().backward()
    assert found.grad["layer1.0.relu"].equal(found.grad["layer1_0_relu"])
