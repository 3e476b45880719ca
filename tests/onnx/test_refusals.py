"""What cannot be exported is refused with its reason, and with what is written in its place."""

import pytest
from onnx_nets import Call

import convcore
from convcore.nn import functional as F

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

from convcore.onnx import OnnxError, export
from convcore.onnx.refusals import _ADVICE, _READERS, NO_TRANSLATION, READ_VALUES
from convcore.onnx.translation import TRANSLATIONS


def refused(function, shape=(3, 4)):
    with pytest.raises(OnnxError) as caught:
        export(Call(function), convcore.ones(shape))
    return caught.value


def mask_of_many(x):
    y = x * 1
    y[x > 0] = x[x > 0]
    return y


READERS = {
    "item": lambda x: x * x.sum().item(),
    "bool": lambda x: x if x.sum() > 0 else -x,
    "int": lambda x: x[: int(x.sum())],
    "tolist": lambda x: x + convcore.tensor(x.tolist()),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: convcore.where(x > 0)[0],
    "unique": lambda x: x.unique(),
    "masked_select": lambda x: x.masked_select(x > 0),
}


@pytest.mark.parametrize("name", READERS)
def test_functions_that_read_values_are_told_from_others(name):
    error = refused(READERS[name])
    assert str(error).startswith(f"{name}() cannot be exported: {READ_VALUES}; called in module")
    assert "\nHint: " in str(error)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.select(1, x.argmax()),
        lambda x: x.topk(x.argmax() + 1, 1)[0],
        lambda x: x.narrow(1, 0, x.argmax() + 1),
    ],
)
def test_computed_tensors_are_no_numbers(function):
    assert "depend on the input" in str(refused(function))


OTHERS = {
    "cumprod": lambda x: x.cumprod(0),
    "inv": lambda x: convcore.linalg.inv(x[:, :3]),
    "multinomial": lambda x: x.multinomial(1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_functions_without_a_translation_are_named_with_advice(name):
    error = refused(OTHERS[name])
    assert str(error).startswith(f"{name}() cannot be exported: {NO_TRANSLATION}; called in module")
    assert "\nHint: " in str(error)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x[x > 0], "how many elements a computed mask reads depends on the input"),
        (mask_of_many, "how many elements a computed mask reads"),
        (lambda x: F.one_hot(x.argmax(1)), "give num_classes"),
        (lambda x: convcore.exp(x, out=convcore.empty(3, 4)), "it writes into out="),
        (lambda x: convcore.linalg.norm(x, 2), "the matrix norm 2"),
    ],
)
def test_other_reasons(function, text):
    assert text in str(refused(function))


def test_memory_that_was_written_to_by_another_name_is_refused():
    def written(x):
        zeros = convcore.zeros(3, 4)
        zeros[0].copy_(x[0])
        return zeros * x

    assert "a computed value was written unseen" in str(refused(written))


def test_no_advice_is_for_what_can_be_exported():
    assert not (_ADVICE.keys() & TRANSLATIONS.keys()) - {"where"}
    assert not _READERS & TRANSLATIONS.keys()
