"""A file is replaced when the new one is whole; nothing is left beside it."""

import concurrent.futures
import contextlib
import errno
import gc
import io
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from interrupting import interrupted_at

import convcore
from convcore.serialization import replacing

KILLS = Path(__file__).resolve().parents[1] / "fuzz" / "kills.py"


class Refuses:
    def __reduce__(self):
        raise pickle.PicklingError("no")


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "a.pt"
    convcore.save([1], file)
    with pytest.raises(pickle.PicklingError):
        convcore.save(Refuses(), file)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        convcore.save([2], file)
    assert caught.value.filename == str(file)
    assert convcore.load(file) == [1] and os.listdir(tmp_path) == ["a.pt"]


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "a.pt"
    convcore.save([1], file)

    def interrupt(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        convcore.save([2], file)
    assert convcore.load(file) == [1] and os.listdir(tmp_path) == ["a.pt"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_interrupt_at_any_instruction_leaves_a_whole_file_and_no_descriptor(tmp_path):
    file = tmp_path / "a.pt"
    convcore.save([1], file)
    convcore.save([2], file)
    with open(file, "rb"):
        assert open_in(tmp_path) == [str(file)]
    number, last = 0, 2
    while interrupted_at(
        number, convcore.save, [number], file, where="replacing.py", anywhere=True
    ):
        found = convcore.load(file)[0]
        assert found in (last, number)
        gc.collect()
        assert open_in(tmp_path) == [], f"instruction {number}"
        number, last = number + 1, found
    assert number > 50


def open_in(folder):
    """Return the files of a folder that this process holds open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # listdir's own is closed by now
            found.append(os.readlink(descriptor))
    return [path for path in found if path.startswith(str(folder))]


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permissions and links are POSIX's")
def test_permissions_and_links_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "a.pt", tmp_path / "link.pt"
    link.symlink_to(file)
    convcore.save([1], link)
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert mode(file) == mode(plain) and link.is_symlink()
    file.chmod(0o640)
    convcore.save([2], link)
    assert mode(file) == 0o640 and link.is_symlink() and convcore.load(file) == [2]
    assert os.listdir(tmp_path / "folder") == ["a.pt"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o660, 0o606])
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_file_is_never_open_to_more_than_the_old_one(tmp_path, permissions, umask):
    (tmp_path / "a.pt").write_bytes(b"")
    (tmp_path / "a.pt").chmod(permissions)
    before = os.umask(umask)
    try:
        with replacing.writing(tmp_path / "a.pt") as file:
            (new,) = tmp_path.glob(".convcore-*")
            assert mode(new) & ~permissions == 0 and mode(new) & 0o077 == 0
            file.write(b"content")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a.pt") == permissions


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes are POSIX's")
def test_what_cannot_be_replaced_is_written_in_place(tmp_path, monkeypatch):
    convcore.save([1], os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        read = threads.submit((tmp_path / "pipe").read_bytes)
        convcore.save([3], tmp_path / "link")
        assert convcore.load(io.BytesIO(read.result(20))) == [3]
    file = tmp_path / "a.pt"
    convcore.save([1], file)
    number = file.stat().st_ino

    def refuse(name, mode, **options):
        if mode == "x+b":
            raise PermissionError(errno.EACCES, "Permission denied", "elsewhere")
        return open(name, mode, **options)

    monkeypatch.setattr("convcore.serialization.replacing.open", refuse, raising=False)
    convcore.save([2], file)
    assert convcore.load(file) == [2] and file.stat().st_ino == number
    with pytest.raises(PermissionError, match=r"new\.pt"):
        convcore.save([1], tmp_path / "new.pt")


def test_errors_name_the_file_that_was_given(tmp_path):
    for name in ("nowhere/a.pt", "."):
        with pytest.raises(OSError) as found:
            convcore.save([1], tmp_path / name)
        assert found.value.filename == os.fspath(tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_not_replaced(tmp_path):
    file = tmp_path / "a.pt"
    convcore.save([1], file)
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        convcore.save([2], file)
    assert convcore.load(file) == [1]


@pytest.mark.subprocess
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks")
def test_a_killed_saver_leaves_a_whole_file():
    command = [sys.executable, str(KILLS), "--count=30"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 kills" in done.stdout


NUMBERS = [
    np.longdouble(1) / 3,
    np.clongdouble(1j),
    np.datetime64("2020", "ns"),
    np.timedelta64(3, "s"),
    np.void(b"abc"),
]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_that_python_has_not_keep_their_type(tmp_path, number):
    convcore.save([number], tmp_path / "a.pt")
    (found,) = convcore.load(tmp_path / "a.pt", weights_only=False)
    assert type(found) is type(number) and found == number
    with pytest.raises(pickle.UnpicklingError, match=r"multiarray\.scalar was not an allowed"):
        convcore.load(tmp_path / "a.pt")


def test_tensors_without_values_are_refused(tmp_path):
    with pytest.raises(pickle.PicklingError, match="a tensor o"):
        convcore.save([convcore.zeros(2, device="meta")], tmp_path / "a.pt")
    assert os.listdir(tmp_path) == []
