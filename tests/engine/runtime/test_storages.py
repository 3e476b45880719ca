"""Storages: copied once for all views of them, and packed without gaps and repetitions."""

import numpy as np
import pytest

from convcore.engine.runtime import storages


def base():
    return np.arange(24.0).reshape(4, 6).copy()


STRIDED = np.lib.stride_tricks.as_strided
VIEWS = {
    "all": lambda a: a,
    "transposed": lambda a: a.T,
    "rows": lambda a: a[1:3],
    "columns": lambda a: a[:, ::2],
    "reversed": lambda a: a[::-1, ::-1],
    "element": lambda a: a[1, 2],
    "scalar": lambda a: a[1, 2].reshape(()),
    "empty": lambda a: a[2:2],
    "expanded": lambda a: np.broadcast_to(a[1, :, None], (2, 6, 3)),
    "expanded_columns": lambda a: np.broadcast_to(a[:, ::2], (5, 4, 3)),
    "windows": lambda a: STRIDED(a, (22, 3), (8, 8)),
    "windows_with_gaps": lambda a: STRIDED(a, (2, 2, 2), (96, 8, 8)),
    "other_dtype": lambda a: a.view(np.int32)[:, 1::2],
    "unaligned": lambda a: a.reshape(-1).view(np.uint8)[1:-7].view(np.float64),
}
views = pytest.mark.parametrize("name", VIEWS)


def view(name, array):
    return np.asarray(VIEWS[name](array))


@views
def test_a_packed_array_comes_back(name):
    array = view(name, base())
    vector, strides = storages.packed(array)
    found = storages.unpacked(vector, array.shape, strides)
    assert found.dtype == array.dtype and found.tobytes() == array.tobytes()
    assert vector.ndim == 1 and vector.flags.c_contiguous
    assert vector.nbytes <= max(base().nbytes, 8)


@pytest.mark.parametrize(
    ("name", "count"),
    [("columns", 12), ("expanded", 6), ("expanded_columns", 12), ("windows", 24), ("rows", 12),
     ("windows_with_gaps", 15)],
)  # fmt: skip
def test_an_element_of_memory_is_packed_once(name, count):
    assert storages.packed(view(name, base())).vector.size == count


@pytest.mark.parametrize("first", VIEWS)
@pytest.mark.parametrize("second", ["rows", "columns", "windows", "other_dtype", "expanded"])
def test_views_that_are_copied_with_one_memo_share_memory(first, second):
    array, memo = base(), {}
    one, other = (view(name, array) for name in (first, second))
    copies = [storages.copied(each, memo) for each in (one, other)]
    for copy, each in zip(copies, (one, other), strict=True):
        assert copy.tobytes() == each.tobytes() and not np.shares_memory(copy, array)
    assert np.shares_memory(*copies) == np.shares_memory(one, other)


def test_an_array_that_a_program_copies_itself_is_shared_too():
    array = base()
    memo = {id(array): array + 1}
    assert storages.copied(array[1], memo).tolist() == (array[1] + 1).tolist()
    assert storages.copied(array[1], {id(array): "other"}).tolist() == array[1].tolist()


def test_a_storage_in_a_file_is_not_copied_as_a_whole(tmp_path):
    (tmp_path / "a").write_bytes(bytes(80))
    file = np.memmap(tmp_path / "a", np.uint8, "r")
    copy = storages.copied(np.asarray(file)[:2], {})
    assert storages.memory_of(copy).nbytes == 2 and type(copy) is np.ndarray


def test_the_arrays_that_share_elements_are_found():
    array = base()
    arrays = {name: view(name, array) for name in ("rows", "columns", "empty")}
    arrays |= {"even": array[:, ::2], "odd": array[:, 1::2], "apart": base()}
    found = {frozenset(pair) for pair in storages.overlapping(arrays)}
    pairs = [("rows", "columns"), ("rows", "even"), ("rows", "odd"), ("columns", "even")]
    assert found == set(map(frozenset, pairs))
