"""Recurrent layers and cells as ONNX nodes: for other inputs, batches and numbers of steps."""

import numpy as np
import pytest
from onnx_nets import runtime_results

import convcore
from convcore import nn
from convcore.nn.utils.rnn import pack_sequence

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export  # noqa: E402
from convcore.onnx.nesting import tensors_in  # noqa: E402

FREE = {0: "n", 1: "m"}


def assert_agree(program, net, *inputs):
    """Compare a program, here and in ONNX Runtime, with its net."""
    expected = tensors_in(net(*inputs))
    for found, value in zip(program(*inputs), expected, strict=True):
        convcore.testing.assert_close(found, value, rtol=1e-5, atol=1e-6)
    found = runtime_results(program.model_proto.SerializeToString(), *tensors_in(inputs))
    for one, value in zip(found or (), expected, strict=found is not None):
        np.testing.assert_allclose(one, value.detach().numpy(), 1e-5, 1e-5)


OPTIONS = {
    "plain": {},
    "batch_first": {"batch_first": True},
    "both_ways": {"bidirectional": True},
    "no_bias": {"bias": False},
    "deep": {"num_layers": 3, "bidirectional": True, "batch_first": True, "dropout": 0.5},
}


@pytest.mark.parametrize("given", [False, True], ids=["zeros", "states"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_layers_run_for_other_batches_and_steps(kind, options, given):
    net = getattr(nn, kind)(4, 3, **options).eval()
    count = net.num_layers * (2 if net.bidirectional else 1)

    def inputs(*sizes):
        batch = sizes[0] if net.batch_first else sizes[1]
        state = convcore.randn(count, batch, 3)
        states = ((state, state * 2) if kind == "LSTM" else state,) if given else ()
        return (convcore.randn(*sizes, 4), *states)

    shape = {1: "n"}
    of_states = ((shape, shape) if kind == "LSTM" else shape,) if given else ()
    program = export(net, inputs(2, 5), dynamic_shapes=(FREE, *of_states))
    assert_agree(program, net, *inputs(2, 5))
    assert_agree(program, net, *inputs(6, 3))


def test_a_layer_with_relu():
    net = nn.RNN(4, 3, nonlinearity="relu", bidirectional=True)
    program = export(net, convcore.randn(5, 2, 4), opset_version=13)
    assert_agree(program, net, convcore.randn(5, 2, 4))


@pytest.mark.parametrize(
    "cell", [nn.LSTMCell(4, 3), nn.GRUCell(4, 3, bias=False), nn.RNNCell(4, 3, nonlinearity="relu")]
)
def test_cells_in_a_loop(cell):
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell

        def forward(self, x):
            state = None
            for step in x.unbind(1):
                state = self.cell(step, state)
            return state

    net = Loop()
    program = export(net, convcore.randn(2, 3, 4), dynamic_shapes=({0: "n"},))
    assert_agree(program, net, convcore.randn(5, 3, 4))


def test_a_classifier_of_texts():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(20, 6), nn.LSTM(6, 5, batch_first=True)
            self.fc = nn.Linear(5, 2)

        def forward(self, ids):
            _, (h, _) = self.lstm(self.embedding(ids))
            return self.fc(h[-1])

    net = Net()
    program = export(net, convcore.randint(0, 20, (2, 7)), dynamic_shapes=(FREE,))
    assert_agree(program, net, convcore.randint(0, 20, (4, 9)))


def test_hooks_of_a_layer_are_seen():
    net = nn.Sequential(nn.GRUCell(4, 3))
    net[0].register_forward_hook(lambda module, args, output: output * 2)
    net[0].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    program = export(net, convcore.randn(2, 4))
    assert_agree(program, net, convcore.randn(2, 4))


def test_a_subclass_is_the_layer_unless_it_computes_otherwise():
    class Same(nn.GRU):
        pass

    class Other(nn.GRU):
        def forward(self, input):
            return super().forward(input)[0] * 2

    net, x = Same(4, 3), convcore.randn(5, 2, 4)
    assert_agree(export(net, x), net, convcore.randn(5, 2, 4))
    with pytest.raises(OnnxError, match=r"cannot be exported"):
        export(Other(4, 3), x)


@pytest.mark.parametrize(
    ("net", "x", "text"),
    [
        (nn.LSTM(4, 3, proj_size=2), convcore.ones(5, 2, 4), r"LSTM\(\) .*: it has a proj_size"),
        (nn.GRU(4, 3), convcore.ones(5, 4), r"GRU\(\) .*: an input without a batch"),
        (nn.RNNCell(4, 3), convcore.ones(4), r"RNNCell\(\) .*: an input without a batch"),
    ],
)
def test_what_nodes_cannot_do_is_refused(net, x, text):
    with pytest.raises(OnnxError, match=text):
        export(net, x)


def test_packed_sequences_are_refused():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(4, 3)

        def forward(self, x):
            return self.gru(pack_sequence([x, x[:2]]))[1]

    with pytest.raises(OnnxError, match="its input is PackedSequence, no tensor"):
        export(Net(), convcore.ones(5, 4))
