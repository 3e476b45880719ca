"""Storages: addresses, sizes and elements of the memory that tensors share."""

import copy
import pickle
import sys
import weakref

import numpy as np
import pytest

import convcore


def test_an_untyped_storage_is_the_bytes():
    x = convcore.tensor([1, 2], dtype=convcore.int16)
    storage = x.untyped_storage()
    assert (len(storage), storage.nbytes(), storage.element_size()) == (4, 4, 1)
    assert storage.tolist() == [1, 0, 2, 0]
    assert storage[2] == 2 and storage[:2].tolist() == [1, 0]
    assert storage == x[1:].untyped_storage() and storage != x.clone().untyped_storage()
    assert hash(storage) == hash(x.untyped_storage())
    assert storage.device == x.device and not storage.is_cuda and not storage.is_shared()
    assert storage._cdata == x.data_ptr()


def test_a_typed_storage_is_the_elements():
    x = convcore.arange(4.0).reshape(2, 2).t()
    storage = x.storage()
    assert (len(storage), storage.nbytes(), storage.element_size()) == (4, 16, 4)
    assert storage.tolist() == [0, 1, 2, 3]
    assert storage[1] == 1 and storage[1:3] == [1, 2]
    storage[1] = 7
    assert x[1, 0] == 7
    assert storage.untyped() == x.untyped_storage()
    assert storage.data_ptr() == x.data_ptr() and storage.device == x.device
    assert not storage.is_shared()


def test_a_storage_in_shared_memory_says_so(lib):
    x = lib.arange(4.0).share_memory_()
    assert x.untyped_storage().is_shared() and x[1:].untyped_storage().is_shared()
    assert not lib.arange(4.0).untyped_storage().is_shared()


def test_storages_are_told_from_tensors():
    x = convcore.zeros(1)
    assert convcore.is_storage(x.storage()) and convcore.is_storage(x.untyped_storage())
    assert not convcore.is_storage(x)


def test_a_storage_is_that_of_the_array_at_the_bottom():
    x = convcore.from_numpy(np.lib.stride_tricks.as_strided(np.zeros(9), (3,), (24,)))
    assert x.untyped_storage().nbytes() == 72


@pytest.mark.parametrize("name", ["strided", "sparse_coo", "sparse_csr"])
def test_a_layout_is_one_object(name):
    layout = getattr(convcore, name)
    assert repr(layout) == f"torch.{name}"
    assert copy.copy(layout) is layout is pickle.loads(pickle.dumps(layout))


def test_a_storage_of_a_file_is_shared_with_tensors_and_not_with_the_file(tmp_path):
    path = tmp_path / "bytes"
    np.arange(4, dtype=np.float32).tofile(path)
    storage = convcore.UntypedStorage.from_file(str(path), nbytes=16).untyped()
    x = convcore.asarray(storage[4:12], dtype=convcore.uint8).view(dtype=convcore.float32)
    assert x.tolist() == [1.0, 2.0]
    x[0] = 7
    assert convcore.asarray(storage).view(convcore.float32).tolist() == [0.0, 7.0, 2.0, 3.0]
    assert np.fromfile(path, np.float32).tolist() == [0.0, 1.0, 2.0, 3.0]
    shared = convcore.UntypedStorage.from_file(str(path), shared=True, nbytes=16)
    convcore.asarray(shared)[:] = 0
    assert np.fromfile(path, np.float32).tolist() == [0.0] * 4
    assert len(convcore.UntypedStorage.from_file(str(path))) == 0


def test_getsizeof_counts_the_bytes():
    few, many = (sys.getsizeof(convcore.ones(n).untyped_storage()) for n in (1, 1001))
    assert many - few == 4000


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_is_copied_as_numbers(torch):
    for m in (convcore, torch):
        storage = m.tensor([1.0, 2.0]).storage()
        copy = storage.clone()
        storage[0] = 7
        assert copy.tolist() == [1, 2] and m.tensor(storage).tolist() == [7, 2]
        assert m.tensor(storage.untyped().clone(), dtype=m.int16).tolist() == [0, 16608, 0, 16384]
        with pytest.raises(RuntimeError, match="Expected a Storage of type Short"):
            m.tensor(storage, dtype=m.int16)
        assert storage.untyped().filename is None


def test_a_storage_of_so_many_bytes(torch):
    for m in (convcore, torch):
        storage = m.UntypedStorage(3)
        storage.note = "kept"
        assert weakref.ref(storage)() is storage and (storage.nbytes(), storage.note) == (3, "kept")
        assert m.UntypedStorage([1, 2]).tolist() == [1, 2] and len(m.UntypedStorage()) == 0


def test_storages_are_made_of_numbers_or_a_size(torch):
    for make in (
        lambda lib: lib.TypedStorage(),
        lambda lib: lib.TypedStorage([1, 2]),
        lambda lib: lib.TypedStorage([1, 2], dtype=lib.int32),
        lambda lib: lib.UntypedStorage([1, 2]),
        lambda lib: lib.UntypedStorage(b"ab"),
        lambda lib: lib.UntypedStorage(bytearray(3)),
        lambda lib: lib.UntypedStorage(range(3)),
        lambda lib: lib.TypedStorage(range(3), dtype=lib.int32),
    ):
        ours, theirs = make(convcore), make(torch)
        assert ours.tolist() == theirs.tolist() and ours.nbytes() == theirs.nbytes()
    assert convcore.TypedStorage(3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: convcore.TypedStorage(convcore.ones(2)), "'data' must be int or a sequence"),
        (
            lambda: convcore.TypedStorage("2"),
            "'data' must be int or a sequence of numbers, not str",
        ),
        (lambda: convcore.TypedStorage(["2"]), "'data' must be Number, not str"),
        (lambda: convcore.TypedStorage(wrap_storage=convcore.ones(2)), "must be UntypedStorage"),
        (lambda: convcore.TypedStorage(2, dtype="float32"), "'dtype' must be torch.dtype, not str"),
        (lambda: convcore.UntypedStorage("2"), "'memory' must be int or a sequence"),
    ],
)
def test_what_no_storage_is_made_of_is_named(make, what):
    with pytest.raises(TypeError, match=what):
        make()


def test_sizes_and_bytes_of_storages_that_cannot_be_are_refused():
    with pytest.raises(RuntimeError, match="'memory' must not be negative, got -1"):
        convcore.UntypedStorage(-1)
    with pytest.raises(RuntimeError, match="without overflow"):
        convcore.UntypedStorage([256])
