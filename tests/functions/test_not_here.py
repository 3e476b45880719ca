"""Attributes of PyTorch's tensors that are not here say why, and are attributes in no other way."""

from __future__ import annotations

import copy

import pytest

import convcore
from convcore import Tensor
from convcore._errors import pytorch as names
from convcore.compat import NotInConvcoreError
from convcore.functions._not_here import NAMES, OF_ARRAYS


def test_the_list_is_what_pytorch_has_and_convcore_has_not():
    missing = {name for name in names.public()["torch.Tensor"] if not hasattr(Tensor, name)}
    assert missing == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_reading_one_says_why_or_what_to_use(name):
    tensor = convcore.ones(2)
    assert not hasattr(tensor, name)
    with pytest.raises(AttributeError, match=r"out of scope for convcore|is missing") as caught:
        getattr(tensor, name)
    assert isinstance(caught.value, NotInConvcoreError)
    assert caught.value.name == name


def test_a_missing_name_says_what_to_use():
    with pytest.raises(AttributeError, match=r"use torch\.linalg\.eig$"):
        _ = convcore.ones(2, 2).eig
    with pytest.raises(AttributeError, match=r"use scipy\.sparse"):
        _ = convcore.ones(2, 2).row_indices


def test_what_is_no_name_of_pytorch_is_python_s_own_error():
    tensor = convcore.ones(2)
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'foo'") as caught:
        _ = tensor.foo
    assert caught.value.obj is tensor  # from which Python finds the name that was meant


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_a_method_of_arrays_has_pythons_text_and_a_hint(name):
    tensor = convcore.ones(2)
    assert not hasattr(tensor, name) and name not in names.public()["torch.Tensor"]
    with pytest.raises(AttributeError) as caught:
        getattr(tensor, name)
    text = f"'Tensor' object has no attribute {name!r}"
    assert str(caught.value) == f"{text}\nHint: use {OF_ARRAYS[name]}"


def test_what_is_used_instead_is_there():
    tensor = convcore.tensor([1.0, 3.0])
    scope = {"x": tensor, "other": tensor, "torch": convcore, "value": 2.0, "values": tensor}
    for call in OF_ARRAYS.values():
        eval(call, scope)


def test_they_are_not_listed_and_can_be_set():
    tensor = convcore.ones(2)
    assert not (NAMES | OF_ARRAYS.keys()) & set(dir(tensor))
    tensor.name = "weight"
    assert tensor.name == copy.deepcopy(tensor).name == "weight"
    assert "name" in dir(tensor)
    del tensor.name
    assert not hasattr(tensor, "name")


def test_a_subclass_may_have_them():
    class Named(Tensor):
        name = "its own"

        def __getattr__(self, name):
            return f"found {name}"

    named = convcore.ones(2).as_subclass(Named)
    assert named.name == "its own" and "name" in dir(named)
    assert named.eig == "found eig"
