"""The examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import convcore.engine

MODULES = ["convcore", "convcore.engine"] + [
    f"convcore.engine.{module.name}" for module in pkgutil.iter_modules(convcore.engine.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_print_what_they_say(name, threads):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0
