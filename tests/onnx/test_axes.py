"""`dynamic_shapes`: which axes of a model are free, as PyTorch's programs say it."""

import numpy as np
import pytest
from onnx_nets import session_of

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.compat.torch.export import Dim  # noqa: E402
from convcore.onnx import export  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x, scale=1.0, *, mask=None):
        y = self.fc(x) * scale
        return y if mask is None else y * mask


class Nested(nn.Module):
    def forward(self, pair, more):
        return pair["b"] - pair["a"], more[0] + more[1]


def sizes(program):
    """Return the sizes of a model's inputs, by name."""
    return {
        each.name: [d.dim_param or d.dim_value for d in each.type.tensor_type.shape.dim]
        for each in program.model_proto.graph.input
    }


SAME = [
    {"x": {0: "batch"}},
    ({0: "batch"},),
    [{0: "batch"}],
    {"x": {0: "batch", 1: None}},
    {"x": {-2: "batch"}},
    {"x": ("batch", None)},
    {"x": ["batch", 4]},
    {"x": {0: Dim("batch")}},
    {"x": (Dim("batch", min=1, max=9), Dim.STATIC)},
]


@pytest.mark.parametrize("shapes", SAME, ids=str)
def test_a_free_axis_is_named_in_each_of_pytorchs_ways(shapes):
    program = export(Net(), (convcore.ones(3, 4),), dynamic_shapes=shapes)
    assert sizes(program) == {"x": ["batch", 4]}


@pytest.mark.parametrize(
    "shapes", [None, {}, (), {"x": None}, {"x": {0: Dim.STATIC}}, {"x": {0: 3}}]
)
def test_nothing_is_free(shapes):
    program = export(Net(), (convcore.ones(3, 4),), dynamic_shapes=shapes)
    assert sizes(program) == {"x": [3, 4]}


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC, Dim.DYNAMIC(min=2, max=5)], ids=str)
def test_a_free_axis_without_a_name_gets_its_inputs(hint):
    program = export(Net(), (convcore.ones(3, 4),), dynamic_shapes={"x": {0: hint}})
    assert sizes(program) == {"x": ["x_0", 4]}


def test_pytorchs_own_objects_are_taken():
    torch = pytest.importorskip("torch")
    batch = torch.export.Dim("batch", min=1)
    hints = torch.export.Dim
    for dim, name in (
        (batch, "batch"),
        (hints.AUTO, "x_0"),
        (hints.DYNAMIC, "x_0"),
        (hints.STATIC, 3),
    ):
        program = export(Net(), (convcore.ones(3, 4),), dynamic_shapes=({0: dim},))
        assert sizes(program) == {"x": [name, 4]}


@pytest.mark.parametrize("shapes", [{"x": {0: "n"}, "mask": {0: "n"}}, ({0: "n"}, None, {0: "n"})])
def test_arguments_by_name_are_in_forwards_order_and_constants_are_none(shapes):
    kwargs = {"mask": convcore.ones(3, 2)}
    program = export(Net(), (convcore.ones(3, 4), 2.0), kwargs=kwargs, dynamic_shapes=shapes)
    assert sizes(program) == {"x": ["n", 4], "mask": ["n", 2]}


@pytest.mark.parametrize("by_name", [False, True])
def test_nested_arguments_are_described_by_nested_shapes(by_name):
    pair, more = {"b": {0: "p"}, "a": {0: "p"}}, [{0: "q"}, {0: "q"}]
    shapes = {"more": more, "pair": pair} if by_name else (pair, more)
    x, y = convcore.ones(3), convcore.ones(2)
    program = export(Nested(), ({"b": x, "a": x}, [y, y]), dynamic_shapes=shapes)
    assert sizes(program) == {"pair_b": ["p"], "pair_a": ["p"], "more_0": ["q"], "more_1": ["q"]}


def test_the_names_are_those_of_forward_and_not_of_the_model():
    program = export(
        Net(), (convcore.ones(3, 4),), input_names=["rows"], dynamic_shapes={"x": {0: Dim.DYNAMIC}}
    )
    assert sizes(program) == {"rows": ["rows_0", 4]}


def test_another_batch_runs_in_onnx_runtime(tmp_path, rng):
    pytest.importorskip("onnxruntime")
    net, file = Net(), tmp_path / "net.onnx"
    export(net, (convcore.ones(3, 4),), file, dynamic_shapes={"x": {0: "batch"}})
    x = rng.standard_normal((7, 4), dtype=np.float32)
    session = session_of(file)
    assert session.get_outputs()[0].shape == ["batch", 2]
    (result,) = session.run(None, {"x": x})
    np.testing.assert_allclose(result, net(convcore.tensor(x)).detach().numpy(), 1e-5, 1e-6)


BAD = [
    ({"z": {0: "n"}}, ValueError, r"dynamic_shapes: there are \['x', 'scale'\], got \['z'\]"),
    (({0: "n"},), ValueError, "has 1 entries, and forward was called with 2 arguments: x, scale"),
    ({"x": {2: "n"}}, ValueError, "of x, which has 2 axes: a dict by axis"),
    ({"x": {"0": "n"}}, ValueError, "of x, which has 2 axes: a dict by axis"),
    ({"x": ("n",)}, ValueError, r"a tuple of 2, got \('n',\)"),
    ({"x": "n"}, ValueError, "a tuple of 2, got 'n'"),
    ({"x": {0: 5}}, ValueError, "of x, axis 0: its size is 3, got 5"),
    ({"x": {0: 2.5}}, TypeError, "of x, axis 0: a name, None, an int, .*, got 2.5"),
    ({"x": {0: Dim}}, TypeError, "of x, axis 0: a name, None, an int"),
    ({"x": {0: Dim("n", min=4)}}, ValueError, r"its size 3 is outside Dim\('n', min=4\)"),
    ({"x": {0: Dim.AUTO(max=2)}}, ValueError, r"its size 3 is outside DimHint\(AUTO, max=2\)"),
    ({"scale": {0: "n"}}, ValueError, "of scale must be None, for that is 2.0"),
    ("n", TypeError, "'dynamic_shapes' must be dict, tuple, list or None, not str"),
]


@pytest.mark.parametrize(("shapes", "error", "text"), BAD, ids=[str(each[0]) for each in BAD])
def test_what_does_not_fit_is_named(shapes, error, text):
    with pytest.raises(error, match=text):
        export(Net(), (convcore.ones(3, 4), 2.0), dynamic_shapes=shapes)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (({"c": None}, None), r"of pair: there are \['b', 'a'\], got \['c'\]"),
        ((None, [None]), r"of more: a tuple or list of 2 is needed, got \[None\]"),
        ((None, [None, {3: "n"}]), r"of more\[1\], which has 1 axes"),
    ],
)
def test_what_does_not_fit_inside_an_argument_is_named(shapes, text):
    x = convcore.ones(3)
    with pytest.raises(ValueError, match=text):
        export(Nested(), ({"b": x, "a": x}, [x, x]), dynamic_shapes=shapes)


def test_both_ways_at_once_are_refused():
    with pytest.raises(ValueError, match="either dynamic_shapes or dynamic_axes, not both"):
        export(Net(), convcore.ones(3, 4), dynamic_shapes=({0: "n"},), dynamic_axes={"x": [0]})
