"""Free axes whose sizes would be written as numbers are refused: the model is for one size."""

import math

import pytest

import convcore
from convcore import nn
from convcore.nn import functional as F

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export  # noqa: E402


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(convcore.ones(1, 1, 4))

    def forward(self, *inputs):
        return self.function(self, *inputs)


NUMBERS = {
    "int": (lambda net, x: x.sum(0) / int(x.shape[0]), "div"),
    "root": (lambda net, x: x * (1 / math.sqrt(x.shape[0])), "mul"),
    "half": (lambda net, x: x[: int(x.shape[0] / 2)], "getitem"),
    "loop": (lambda net, x: convcore.stack([x[k] for k in range(x.shape[0])]), "stack"),
    "average": (lambda net, x: F.avg_pool1d(x.permute(1, 2, 0), x.shape[0]), "avg_pool1d"),
    "output": (lambda net, x: convcore.zeros(int(x.shape[0]), 3), ""),
}


@pytest.mark.parametrize(("function", "name"), NUMBERS.values(), ids=NUMBERS)
def test_a_size_that_would_be_a_number_is_refused(function, name):
    net = nn.Sequential(nn.ReLU(), Call(function))
    with pytest.raises(OnnxError, match=r"'batch' cannot be a free axis: .*size") as caught:
        export(net, convcore.ones(4, 2, 4), dynamic_shapes=({0: "batch"},))
    assert f"{name}() called in module '1', {__file__}:" in str(caught.value) or not name
    assert "leave this axis fixed" in str(caught.value)


@pytest.mark.parametrize("function", [each for each, _ in NUMBERS.values()], ids=NUMBERS)
def test_the_same_is_written_where_the_axis_is_fixed(function):
    net, x = Call(function), convcore.rand(4, 2, 4)
    program = export(net, x, dynamic_shapes=[({1: "more"},)])
    convcore.testing.assert_close(program(x)[0], net(x))
    assert "Shape" not in [node.op_type for node in program.model_proto.graph.node]


def test_the_axis_of_several_is_named():
    net = Call(lambda net, x: x * math.sqrt(x.shape[1]))
    export(net, convcore.ones(3, 4), dynamic_shapes=[({0: "batch"},)])
    for shapes in (
        {"dynamic_shapes": [({0: "batch", 1: "n"},)]},
        {"dynamic_axes": {"inputs_0": [1]}},
    ):
        with pytest.raises(OnnxError, match=r"'(n|inputs_0_1)' cannot be a free axis"):
            export(net, convcore.ones(3, 4), **shapes)


def test_axes_of_one_name_have_one_size():
    net = Call(lambda net, x, y: (x + y) * math.sqrt(x.shape[0]))
    given = convcore.ones(3), convcore.ones(3)
    for names in (("n", "n"), ("n", "m")):  # two names whose sizes have to be equal
        with pytest.raises(OnnxError, match=r"'n'.* cannot be a free axis"):
            export(net, given, dynamic_shapes=[({0: names[0]}, {0: names[1]})])


def test_a_net_that_runs_at_odd_sizes_alone_is_found_out():
    def odd(net, x):
        assert x.shape[0] % 2 or x.shape[0] == 4
        return x * math.sqrt(x.shape[0])

    with pytest.raises(OnnxError, match="'n' cannot be a free axis"):
        export(Call(odd), convcore.ones(4), dynamic_shapes=[({0: "n"},)])


def test_a_net_that_runs_at_no_other_size_is_written():
    net = Call(lambda net, x: x + convcore.ones(3))
    assert export(net, convcore.zeros(3), dynamic_shapes=[({0: "n"},)])


def test_a_net_that_is_another_at_each_call_is_written():
    def growing(net, x):
        net.calls = getattr(net, "calls", 0) + 1
        return x * net.calls

    program = export(Call(growing), convcore.ones(3), dynamic_shapes=[({0: "n"},)])
    assert program(convcore.ones(5))[0].tolist() == [1] * 5


def test_numbers_are_drawn_as_if_the_net_ran_once():
    net = Call(lambda net, x: x + convcore.rand(1))
    convcore.manual_seed(3)
    export(net, convcore.zeros(3), dynamic_shapes=[({0: "n"},)])
    after = convcore.rand(1)
    convcore.manual_seed(3)
    convcore.rand(1)
    assert after.equal(convcore.rand(1))
