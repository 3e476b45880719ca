"""Functions under names of a net's own are seen, or refused: never taken for constants."""

import pytest
from onnx_nets import Call

import convcore
from convcore import nn
from convcore.nn import functional as F
from convcore.nn.functional import relu as own_relu

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export

HIDDEN = [F.relu]


class Own(nn.Module):
    """A net that calls functions by an attribute, and by a name of its file."""

    def __init__(self):
        super().__init__()
        self.activation = F.silu
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return own_relu(self.activation(self.layer(x)))


def test_names_of_ones_own_are_seen():
    net, x = Own(), convcore.randn(2, 4)
    program = export(net, convcore.randn(2, 4))
    convcore.testing.assert_close(program(x)[0], net(x).detach())
    assert net.activation is F.silu
    assert own_relu is F.relu


@pytest.mark.parametrize("function", [lambda x: HIDDEN[0](x) * 2, lambda x: HIDDEN[0](x)])
def test_what_is_not_seen_is_refused(function):
    with pytest.raises(OnnxError, match="is not seen, computes from the input"):
        export(Call(function), convcore.ones(2))


def test_weights_keep_their_gradients():
    net = Own()
    net.layer.bias.requires_grad_(False)
    export(net, convcore.ones(1, 4))
    assert [each.requires_grad for each in net.parameters()] == [True, False]
    assert net(convcore.ones(1, 4)).requires_grad


def test_constants_with_gradients_are_constants():
    weight = convcore.ones(4, requires_grad=True)
    product = weight * 2
    program = export(Call(lambda x: x * product + weight), convcore.ones(4))
    assert program(convcore.full((4,), 3.0))[0].tolist() == [7.0] * 4


@pytest.mark.parametrize(
    "function", [convcore.special.expit, convcore.linalg.vector_norm, lambda x: x.T * 2]
)
def test_other_rooms_and_attributes_are_seen(function):
    net = Call(function)
    program = export(net, convcore.zeros(2, 3))
    x = convcore.randn(2, 3)
    convcore.testing.assert_close(program(x)[0], net(x))
