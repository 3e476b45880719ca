"""The short form of the interrupts at each place; `instruction_interrupts.py` has the long one."""

import contextlib

import pytest

pytest.importorskip("onnx")

from scripts import fuzz_script

import convcore

interrupts = fuzz_script("instruction_interrupts")
NAMES, Works, faults = interrupts.NAMES, interrupts.Works, interrupts.faults

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_leaves_nothing_and_comes_through(name):
    assert not list(faults(name, most=12))


@pytest.mark.parametrize("name", ["summary", "export", "optimize"])
def test_nor_does_one_at_an_instruction_where_no_signal_comes(name):
    assert not list(faults(name, most=12, anywhere=True))


@contextlib.contextmanager
def left_by_an_interrupt():
    convcore.set_grad_enabled(False)
    convcore.ones(1)
    try:
        yield
    finally:
        convcore.ones(1)
        convcore.set_grad_enabled(True)


def converted():
    try:
        convcore.ones(1)
    except BaseException:
        raise ValueError("another error") from None


def test_a_fault_would_be_found(monkeypatch):
    def leave(self):
        with left_by_an_interrupt():
            pass

    monkeypatch.setattr(Works, "random_numbers", leave)
    found = list(faults("random_numbers", most=1000))
    convcore.set_grad_enabled(True)
    assert any("enabled is False, not True" in fault for fault in found)
    monkeypatch.setattr(Works, "random_numbers", lambda self: converted())
    assert any("became ValueError" in fault for fault in faults("random_numbers", most=1000))
