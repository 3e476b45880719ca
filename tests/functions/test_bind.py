"""Which functions are methods of Tensor, and that no two families bind one name."""

from __future__ import annotations

import importlib
import pkgutil
import types

import pytest

import convcore
from convcore import Tensor, functions
from convcore.autograd import traversal
from convcore.functions import _bind
from convcore.functions.elementwise import arithmetic

PREFIX = "convcore.functions."
NAMES = [
    found.name.removeprefix(PREFIX)
    for found in pkgutil.walk_packages(functions.__path__, PREFIX)
    if not (found.ispkg or "._" in found.name or ".linalg." in found.name)
]
MODULES = {name: importlib.import_module(PREFIX + name) for name in NAMES}


def family(**attributes):
    """Return a module of functions that binds what is given."""
    module = types.ModuleType("family")
    vars(module).update({"__all__": []} | attributes)
    return module


@pytest.mark.parametrize("module", _bind.FAMILIES, ids=lambda module: module.__name__)
def test_every_function_of_a_family_is_a_method_unless_it_is_functions_only(module):
    functions_only = set(getattr(module, "FUNCTIONS_ONLY", ()))
    assert functions_only <= set(module.__all__)
    own_forms = getattr(module, "METHODS", {})
    for name in set(module.__all__) - functions_only:
        assert vars(Tensor)[name] is own_forms.get(name, getattr(module, name))


@pytest.mark.parametrize("module", _bind.FAMILIES, ids=lambda module: module.__name__)
def test_what_is_functions_only_is_no_method_of_that_function(module):
    for name in getattr(module, "FUNCTIONS_ONLY", ()):
        assert vars(Tensor).get(name) is not getattr(module, name), name


@pytest.mark.parametrize("name", NAMES)
def test_modules_that_are_no_family_bind_nothing_and_are_found_in_nn_functional(name):
    module = MODULES[name]
    if module in _bind.FAMILIES:
        return
    assert not getattr(module, "METHODS", {})
    assert set(module.__all__) <= set(convcore.nn.functional.__all__)


def test_methods_of_a_family_are_its_names_and_its_further_methods():
    module = family(
        __all__=["one", "two"], one=1, two=2, FUNCTIONS_ONLY={"two"}, METHODS={"__three__": 3}
    )
    assert _bind.methods_of(module) == {"one": 1, "__three__": 3}


def test_two_families_with_one_name_are_refused_before_anything_is_bound(monkeypatch):
    first = family(METHODS={"new_method": abs, "same": abs})
    second = family(METHODS={"same": abs})
    monkeypatch.setattr(_bind, "FAMILIES", [first, second])
    with pytest.raises(AssertionError, match=r"bound twice: \['same'\]"):
        _bind.bind()
    assert not hasattr(Tensor, "new_method")


def test_a_family_may_not_take_a_name_of_the_graph(monkeypatch):
    monkeypatch.setattr(_bind, "FAMILIES", [family(METHODS={"backward": abs})])
    with pytest.raises(AssertionError, match="backward"):
        _bind.bind()


def test_traversal_adds_gradients_by_the_differentiable_sum():
    assert traversal.add is arithmetic.add
    x = convcore.tensor(2.0, requires_grad=True)
    (grad,) = convcore.autograd.grad(x * x + x**3, x, create_graph=True)
    assert convcore.autograd.grad(grad, x)[0].item() == 2 + 6 * 2


def test_names_of_two_families_are_not_exported_twice():
    exported = functions.__all__
    assert len(exported) == len(set(exported))
