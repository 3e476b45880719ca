"""Objects one behind the other in a file, and files that cannot go back."""

import bz2
import gzip
import io
import lzma
import os
import tempfile
import zipfile

import numpy as np
import pytest

import convcore
from convcore.serialization import CheckpointError, archives


def obj(number):
    return {"a": convcore.full((3,), float(number)), "number": number}


def check(found, number):
    assert found["number"] == number and found["a"].tolist() == [number] * 3


def opened(path, how):
    """Open a new file for writing."""
    if how == "O_APPEND":
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "wb")
    return open(path, how.split()[0], **({"buffering": 0} if how.endswith("unbuffered") else {}))


@pytest.mark.parametrize("how", ["wb", "ab", "x+b", "wb unbuffered", "O_APPEND"])
def test_three_objects_are_read_one_by_one(how, tmp_path):
    with opened(tmp_path / "a.pt", how) as file:
        for number in range(3):
            convcore.save(obj(number), file)
    with open(tmp_path / "a.pt", "rb") as file:
        for number in range(3):
            check(convcore.load(file), number)
        with pytest.raises(EOFError, match="no more objects"):
            convcore.load(file)
    check(convcore.load(tmp_path / "a.pt"), 0)


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("weights_only", [False, True])
def test_pytorchs_objects_are_read_one_by_one(torch, older, weights_only):
    file = io.BytesIO(b"before")
    file.seek(6)
    for number in range(3):
        written = {"a": torch.full((3,), float(number)), "number": number}
        torch.save(written, file, _use_new_zipfile_serialization=not older)
    file.seek(6)
    for number in range(3):
        check(convcore.load(file, weights_only=weights_only), number)


def test_appending_to_a_file_leaves_what_is_there(tmp_path, torch):
    path = tmp_path / "a.pt"
    for number in range(2):
        with open(path, "ab") as file:
            convcore.save(obj(number), file)
    with open(path, "rb") as file:
        content = file.read()
        file.seek(0)
        for number in range(2):
            check(convcore.load(file), number)
    check(torch.load(io.BytesIO(content[len(content) // 2 :])), 1)


def test_objects_of_both_formats_and_arrays_in_one_file():
    file = io.BytesIO()
    convcore.save({"a": convcore.ones(2)}, file, format="npz")
    convcore.save(obj(1), file)
    convcore.save({"a": convcore.zeros(2)}, file, format="npz")
    file.seek(0)
    assert convcore.load(file)["a"].tolist() == [1, 1]
    check(convcore.load(file), 1)
    assert convcore.load(file)["a"].tolist() == [0, 0]


def test_an_object_may_hold_an_archive():
    inner, file = io.BytesIO(), io.BytesIO()
    convcore.save(obj(7), inner)
    written = convcore.from_numpy(np.frombuffer(inner.getvalue(), np.uint8).copy())
    for _ in range(2):
        convcore.save(written, file)
    file.seek(0)
    for _ in range(2):
        assert convcore.load(file).equal(written)


def test_a_cut_off_object_behind_whole_ones_is_damaged():
    file = io.BytesIO()
    for number in range(2):
        convcore.save(obj(number), file)
    file = io.BytesIO(file.getvalue()[:-30])
    check(convcore.load(file), 0)
    with pytest.raises(CheckpointError, match="no whole zip"):
        convcore.load(file)


def test_a_file_of_ends_is_refused_in_time():
    with pytest.raises(CheckpointError):
        convcore.load(io.BytesIO(b"PK\x03\x04" + (b"PK\x05\x06" + bytes(18)) * 10**5))


@pytest.mark.parametrize("module", [gzip, bz2, lzma], ids=lambda module: module.__name__)
@pytest.mark.parametrize("kind", ["torch", "npz", "safetensors"])
def test_compressed_files(module, kind, tmp_path, torch):
    if kind == "safetensors":
        pytest.importorskip("safetensors")
    with module.open(tmp_path / "a", "wb") as file:
        convcore.save({"a": convcore.arange(99.0)}, file, format=kind)
    for load in (convcore.load, torch.load) if kind == "torch" else (convcore.load,):
        with module.open(tmp_path / "a", "rb") as file:
            assert load(file)["a"].tolist() == list(range(99))


def test_an_entry_of_another_archive(tmp_path, torch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as outer, outer.open("a.pt", "w") as file:
        convcore.save(obj(1), file)
    with zipfile.ZipFile(tmp_path / "a.zip") as outer:
        check(convcore.load(io.BytesIO(outer.read("a.pt"))), 1)
        check(torch.load(io.BytesIO(outer.read("a.pt"))), 1)


def test_files_that_do_nothing_but_write():
    class Writer:
        def __init__(self):
            self.content = b""

        def write(self, content):
            self.content += bytes(content)
            return len(content)

    file = Writer()
    convcore.save(obj(1), file)
    check(convcore.load(io.BytesIO(file.content)), 1)


def test_pythons_own_files_are_written_as_ever(tmp_path):
    plain = io.BytesIO()
    convcore.save(obj(1), plain)
    for make, args in ((open, (tmp_path / "a", "w+b")), (tempfile.TemporaryFile, ())):
        with make(*args) as file:
            assert archives.rewritable(file) is file
            convcore.save(obj(1), file)
            file.seek(0)
            assert file.read() == plain.getvalue()


def test_a_part_is_a_file():
    part = archives.Part(io.BytesIO(b"0123456789"), 2, 6)
    assert part.read() == b"2345" and part.read() == b"" and part.tell() == 4
    assert part.seek(-1, os.SEEK_END) == 3 and part.seek(-2, os.SEEK_CUR) == 1
    assert part.read(2) == b"34" and part.readable() and part.seekable()
    with pytest.raises(ValueError, match="negative seek"):
        part.seek(-1)
