"""Arguments of forward that become inputs of a model, and those that are fixed in it."""

from collections import namedtuple

import pytest

import convcore
from convcore import nn

onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import export  # noqa: E402

ONE, TWO = convcore.ones(2), convcore.full((2,), 2.0)


class Net(nn.Module):
    def forward(self, x, y=None, *, scale=1.0, mask=None):
        x = x * scale
        x = x if y is None else x + y
        return x if mask is None else x * mask


class Open(nn.Module):
    def forward(self, *parts, **more):
        return parts[0] - parts[1] * more["factor"]


def names(program):
    return [each.name for each in program.model_proto.graph.input]


def test_arguments_by_name_are_inputs_under_their_names():
    program = export(Net(), (ONE,), kwargs={"mask": TWO})
    assert names(program) == ["x", "mask"]
    assert program(TWO, mask=TWO)[0].tolist() == [4.0, 4.0]
    program = export(Net(), (ONE,), kwargs={"mask": TWO}, input_names=["a", "b"])
    assert names(program) == ["a", "b"]
    assert program(TWO, mask=TWO)[0].tolist() == [4.0, 4.0]


def test_inputs_are_in_the_order_in_which_they_are_given():
    program = export(Net(), (), kwargs={"mask": TWO, "x": ONE})
    assert names(program) == ["mask", "x"]
    assert program(x=ONE, mask=TWO)[0].tolist() == [2.0, 2.0]


def test_a_dict_at_the_end_stands_for_arguments_by_name():
    assert names(export(Net(), (ONE, {"mask": TWO}))) == ["x", "mask"]
    assert names(export(Net(), (ONE, {}))) == ["x"]


def test_arguments_without_a_parameter_of_their_own():
    program = export(Open(), (ONE, TWO), kwargs={"factor": TWO})
    assert names(program) == ["parts_0", "parts_1", "factor"]
    assert program(TWO, ONE, factor=ONE)[0].tolist() == [1.0, 1.0]


def test_numbers_and_none_are_fixed_in_the_model():
    program = export(Net(), (ONE, None), kwargs={"scale": 3.0, "mask": TWO})
    assert names(program) == ["x", "mask"]
    assert program(ONE, None, scale=3.0, mask=ONE)[0].tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=r"scale is 3.0 in the model, got 1.0"):
        program(ONE, mask=ONE)
    with pytest.raises(ValueError, match=r"y is None in the model, got tensor"):
        program(ONE, ONE, scale=3.0, mask=ONE)


def test_calls_that_do_not_fit_are_refused():
    program = export(Net(), (ONE,), kwargs={"mask": TWO})
    with pytest.raises(TypeError, match="mask has to be a tensor, got NoneType"):
        program(ONE)
    with pytest.raises(
        TypeError, match=r"do not fit forward\(x, .*missing a required argument: 'x'"
    ):
        program(mask=ONE)
    program = export(Open(), ([ONE][0], ONE), kwargs={"factor": ONE})
    with pytest.raises(ValueError, match=r"parts\[2\] is nothing that the model takes"):
        program(ONE, ONE, ONE, factor=ONE)


def test_tensors_in_tuples_lists_and_dicts_are_inputs():
    Pair = namedtuple("Pair", "first second")

    class Nested(nn.Module):
        def forward(self, pair, table, items):
            assert isinstance(pair, Pair)
            return pair.first - pair.second + table["k"] * items[1]

    args = (Pair(TWO, ONE), {"k": TWO}, [3, TWO])
    program = export(Nested(), args)
    assert names(program) == ["pair_0", "pair_1", "table_k", "items_1"]
    assert program(*args)[0].tolist() == [5.0, 5.0]


def test_the_net_may_change_its_arguments():
    class Changing(nn.Module):
        def forward(self, pair):
            return pair[0].add_(1) * pair[1]

    x = convcore.ones(2)
    program = export(Changing(), ([x, x],))
    assert x.tolist() == [1.0, 1.0]
    assert program([TWO, TWO])[0].tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((ONE, object()), None, "have to be tensors, or numbers, strings or None.*; y is object"),
        ((ONE, [ONE.numpy()]), None, r"; y\[0\] is ndarray"),
        ((), None, "do not fit forward.*: missing a required argument: 'x'"),
        ((ONE,), {"msk": ONE}, "do not fit forward.*: got an unexpected keyword argument 'msk'"),
        ((ONE,), [ONE], "argument 'kwargs' must be dict or None, not list"),
    ],
)
def test_arguments_of_other_kinds_are_refused(args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        export(Net(), args, kwargs=kwargs)
