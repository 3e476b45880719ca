"""`cpu`, the module of the one device, has PyTorch's answers."""

import pytest

import convcore


def test_a_program_for_any_device_asks_it(lib):
    assert lib.cpu.is_available() and lib.cpu.is_initialized()
    assert lib.cpu.device_count() == 1
    assert lib.cpu.current_device() == "cpu"
    assert lib.cpu.synchronize() is None
    assert lib.cpu.set_device("cpu") is None


def test_another_device_is_refused():
    with pytest.raises(RuntimeError, match="computes on the CPU"):
        convcore.cpu.set_device("cuda")


def test_it_has_only_names_of_pytorch(torch):
    assert set(convcore.cpu.__all__) <= set(dir(torch.cpu))
