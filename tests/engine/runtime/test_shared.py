"""Memory that processes share: any array fits, and nothing is left behind."""

import gc
import os
import pickle

import numpy as np
import pytest

from convcore.engine.runtime import shared

pytestmark = pytest.mark.skipif(os.name == "nt", reason="memory is not shared there")


def descriptors():
    """The number of open files; 0 where the system does not tell."""
    gc.collect()  # other tests' files
    return len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (2, 3)])
def test_any_shape_is_shared(shape):
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    found = shared.copy_to_shared(array)
    assert shared.is_shared(found) and not shared.is_shared(array)
    assert np.array_equal(found, array) and found.flags.c_contiguous and found.flags.writeable


def test_order_of_axes_is_kept_and_views_are_shared():
    array = np.arange(24.0).reshape(2, 3, 4).transpose(0, 2, 1)
    found = shared.copy_to_shared(array)
    assert found.strides == array.strides and shared.is_shared(found[1].T)
    gapped = shared.copy_to_shared(array[:, ::2])
    assert np.array_equal(gapped, array[:, ::2]) and gapped.strides == (48, 8, 16)


def test_blocks_are_freed():
    shared.copy_to_shared(np.zeros(5))  # loads what it needs
    before = descriptors()
    arrays = [shared.copy_to_shared(np.zeros(5)) for _ in range(20)]
    del arrays
    assert descriptors() == before


def test_files_are_mapped_or_read(monkeypatch):
    before = descriptors()
    for most in (1, 0):
        monkeypatch.setattr(shared, "MOST_MAPS", shared._n_maps + most)
        fd = shared.new_file(100)
        shared.write(fd, memoryview(bytes(range(50))), 50)
        content = shared.map_file(fd, 100)
        assert bytes(content[:]) == bytes(50) + bytes(range(50))
        assert isinstance(content, shared.Block) == bool(most)
        del content
    assert descriptors() == before


def test_a_pickled_handle_holds_the_values():
    array = shared.copy_to_shared(np.arange(3))
    found = pickle.loads(pickle.dumps(shared.Handle(array)))
    assert found.tolist() == [0, 1, 2] and not shared.is_shared(found)


def test_files_have_no_name_where_the_system_has_no_files_in_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    array = shared.copy_to_shared(np.arange(3))
    assert array.tolist() == [0, 1, 2] and shared.is_shared(array)
