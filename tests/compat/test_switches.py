"""Switches and checks of `torch` that only programs written for PyTorch use."""

from __future__ import annotations

import pytest

import convcore
from convcore.compat import torch as door
from convcore.compat.torch import __config__, _switches


def test_the_debug_mode_is_that_of_deterministic_algorithms():
    try:
        _switches.set_deterministic_debug_mode("warn")
        assert convcore.is_deterministic_algorithms_warn_only_enabled()
        convcore.use_deterministic_algorithms(True)
        assert _switches.get_deterministic_debug_mode() == 2
    finally:
        _switches.set_deterministic_debug_mode(0)
    assert not convcore.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 3"):
        _switches.set_deterministic_debug_mode(3)


def test_conditions_are_checked(torch):
    for lib in (door, torch):
        lib._check_value(True)
        with pytest.raises(IndexError, match="far"):
            lib._check_index(False, lambda: "far")
        with pytest.raises(TypeError, match="cond must be a bool"):
            lib._check(3)


def test_the_configuration_is_told():
    assert convcore.__version__ in __config__.show()
    assert f": {convcore.get_num_threads()}\n" in __config__.parallel_info()
    with pytest.raises(RuntimeError, match="positive number of threads"):
        _switches.set_num_interop_threads(-1)
