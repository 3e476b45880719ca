"""Switches that only `torch` has agree with those that they are another way to set."""

import pytest

import convcore
from convcore.compat import torch as door
from convcore.compat.torch import __config__, _switches


@pytest.fixture(params=["convcore", "torch"])
def switches(request):
    """The switches of each library, with that library; PyTorch's are skipped where it is not."""
    if request.param == "convcore":
        return _switches, convcore
    torch = pytest.importorskip("torch")
    return torch, torch


def test_the_debug_mode_is_that_of_deterministic_algorithms(switches):
    named, library = switches
    try:
        library.use_deterministic_algorithms(True)
        assert named.get_deterministic_debug_mode() == 2
        for mode, number in (("warn", 1), ("error", 2), ("default", 0), (1, 1), (0, 0)):
            named.set_deterministic_debug_mode(mode)
            assert named.get_deterministic_debug_mode() == number
            assert library.are_deterministic_algorithms_enabled() == (number > 0)
            assert library.is_deterministic_algorithms_warn_only_enabled() == (number == 1)
        with pytest.raises(RuntimeError, match="expected 0, 1, or 2, but got 5"):
            named.set_deterministic_debug_mode(5)
        with pytest.raises(RuntimeError, match="`error`, but got no"):
            named.set_deterministic_debug_mode("no")
        with pytest.raises(TypeError, match="must be str or int, but got"):
            named.set_deterministic_debug_mode(None)
    finally:
        library.use_deterministic_algorithms(False)


def test_anomaly_detection_is_seen_however_it_was_switched_on(switches):
    named, library = switches
    assert not named.is_anomaly_enabled()
    with library.autograd.set_detect_anomaly(True):
        assert named.is_anomaly_enabled()
    try:
        named.set_anomaly_enabled(True)
        assert named.is_anomaly_enabled()
    finally:
        named.set_anomaly_enabled(False)
    assert not named.is_anomaly_enabled()


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
