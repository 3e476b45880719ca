"""What a net computes by functions that are not seen is refused: it would be a constant."""

import copy

import pytest

import convcore
from convcore import nn
from convcore.nn.utils.rnn import pad_sequence

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export  # noqa: E402


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x * 2)


HIDDEN = {"exp": convcore.exp}
UNSEEN = {
    "list": lambda x: HIDDEN["exp"](x) + 1,
    "output": lambda x: HIDDEN["exp"](x),
    "copy": lambda x: copy.deepcopy(x) + x,
    "padding": lambda x: pad_sequence([x[0], x[1]]),
}


@pytest.mark.parametrize("make", [convcore.zeros, convcore.ones, convcore.rand])
@pytest.mark.parametrize("function", UNSEEN.values(), ids=UNSEEN)
def test_unseen_functions_are_refused(function, make):
    with pytest.raises(OnnxError, match="module 'Call' cannot be exported") as caught:
        export(Call(function), make(2, 3))
    assert "torch.f(x), F.f(x) or x.f()" in str(caught.value)


def test_it_is_said_in_which_module():
    net = nn.Sequential(nn.ReLU(), Call(UNSEEN["copy"]))
    with pytest.raises(OnnxError, match="module '1' cannot be exported"):
        export(net, convcore.ones(2, 3))


def test_integers_are_others_that_were_there():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(3, 4)

        def forward(self, ids):
            return HIDDEN["exp"](self.table(ids))

    with pytest.raises(OnnxError, match="cannot be exported"):
        export(Net(), convcore.tensor([0, 2, 1, 2]))


def test_a_module_of_ones_own_may_return_a_constant():
    class Positions(nn.Module):
        def forward(self, x):
            return convcore.arange(x.shape[1]).float()

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = Positions()

        def forward(self, x):
            return x + self.positions(x), convcore.special.expit(self.positions(x) * 0)

    program = export(Net(), convcore.zeros(2, 3))
    found, constant = program(convcore.ones(2, 3))
    assert found.tolist() == [[1, 2, 3], [1, 2, 3]] and constant.tolist() == [0.5, 0.5, 0.5]


def test_random_numbers_are_new_ones_at_each_call():
    class Noisy(nn.Module):
        def forward(self, x):
            return x + convcore.rand(3)

    convcore.manual_seed(5)
    program = export(Noisy(), convcore.zeros(3))
    after = convcore.rand(1)
    assert not program(convcore.zeros(3))[0].equal(program(convcore.zeros(3))[0])
    convcore.manual_seed(5)
    convcore.rand(3)
    assert after.equal(convcore.rand(1))


def test_a_net_that_makes_a_buffer_at_its_first_call():
    class Caching(nn.Module):
        def forward(self, x):
            if not hasattr(self, "offset"):
                self.register_buffer("offset", convcore.full((3,), 2.0))
            return x * self.offset + convcore.ones(3)

    assert export(Caching(), convcore.zeros(3))(convcore.ones(3))[0].tolist() == [3, 3, 3]


def test_a_net_that_takes_no_other_values():
    class Choosy(nn.Module):
        def forward(self, x):
            assert x is not None and not self.asked, "only once"
            self.asked = True
            return x + 1

    net = Choosy()
    net.asked = False
    assert export(net, convcore.zeros(3))(convcore.ones(3))[0].tolist() == [2, 2, 2]


def test_a_net_that_is_another_at_its_second_call():
    class Growing(nn.Module):
        scale = 1

        def forward(self, x):
            for _ in range(self.scale):
                x = x + convcore.full((3,), float(self.scale))
            self.scale += 1
            return x

    assert export(Growing(), convcore.zeros(3))(convcore.ones(3))[0].tolist() == [2, 2, 2]
