"""Errors of files are told from those of their readers' callers, and have no control characters."""

import functools
import io
import pickle
import signal
import sys
import tarfile
import zipfile
from collections import OrderedDict

import pytest

import convcore
from convcore.serialization import CheckpointError

ESCAPE = "\x1b]0;title\x07\x9b31m"


def archived(pickled):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    return io.BytesIO(file.getvalue())


def named(module, name):
    return b"\x80\x02" + pickle.GLOBAL + f"{module}\n{name}\n".encode() + b"."


def of_storage(key, dtype=b"ctorch\nFloatStorage\n"):
    text = key.encode()
    size = len(text).to_bytes(4, "little")
    place = b"X\x07\0\0\0storage" + dtype + b"X" + size + text + b"X\x03\0\0\0cpuK\x04"
    return b"\x80\x02(" + place + b"tQ."


HOSTILE = {
    "name": named("a" + ESCAPE, "b" + ESCAPE),
    "module": named("torch.nn." + ESCAPE, ESCAPE),
    "optimizer": named("torch.optim." + ESCAPE, ESCAPE),
    "type": named("torch", "float8" + ESCAPE),
    "builtin": named("builtins", ESCAPE),
    "long": named("a" * 10**6, "b" * 10**6),
    "storage": of_storage(ESCAPE),
    "long_storage": of_storage("a" * 10**6),
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("older", [False, True])
def test_names_in_files_reach_no_terminal_and_are_not_endless(what, weights_only, older):
    content = HOSTILE[what]
    file = archived(content)
    if older:
        head = [0x1950A86A20F9469CFC6C, 1001, {}]
        file = io.BytesIO(b"".join(pickle.dumps(one, 2) for one in head) + content)
    try:
        convcore.load(file, weights_only=weights_only)
    except CheckpointError as error:
        text = str(error).replace("\nHint: ", " ")
        assert text.isprintable() and len(text) < 2000
    except (ImportError, AttributeError):  # Python's own, of code that was to be run
        assert not weights_only


class Stop(Exception):
    pass


def stop(*_):
    raise Stop("in time")


class Stopper:
    def __call__(self, *_):
        stop()

    def method(self, *_):
        raise Stop("in time")


class Interrupted(io.BytesIO):
    """A file in whose reading a signal arrives."""

    def read(self, *args):
        if self.tell() >= 8:
            signal.raise_signal(signal.SIGUSR1)
        return super().read(*args)


HANDLERS = [stop, lambda *_: stop(), functools.partial(stop), Stopper(), Stopper().method]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
@pytest.mark.parametrize("handler", HANDLERS, ids=lambda handler: type(handler).__name__)
@pytest.mark.parametrize("kind", ["torch", "npz", "safetensors"])
def test_what_a_signal_handler_raises_is_passed_on(handler, kind):
    if kind == "safetensors":
        pytest.importorskip("safetensors")
    written = io.BytesIO()
    convcore.save({"a": convcore.ones(3)}, written, format=kind)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(Stop):
            convcore.load(Interrupted(written.getvalue()))
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_timeout_is_no_damage():
    class Slow(io.BytesIO):
        def read(self, *args):
            if self.tell() > 9:
                raise TimeoutError
            return super().read(*args)

    written = io.BytesIO()
    convcore.save([1], written)
    with pytest.raises(TimeoutError):
        convcore.load(Slow(written.getvalue()))


def test_a_caller_near_the_recursion_limit_gets_its_own_error(tmp_path):
    convcore.save([1], tmp_path / "a.pt")
    seen = set()

    def load(depth):
        if depth:
            return load(depth - 1)
        return convcore.load(tmp_path / "a.pt")

    for depth in range(sys.getrecursionlimit() - 200, sys.getrecursionlimit(), 3):
        try:
            assert load(depth) == [1]
        except RecursionError as error:
            seen.add(type(error))
    assert seen == {RecursionError}


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_file_of_pytorch_0_3_is_read(torch, monkeypatch):
    def reduced(tensor, protocol):
        place = (tensor.storage(), tensor.storage_offset(), tuple(tensor.size()), tensor.stride())
        return torch._utils._rebuild_tensor, place

    file = io.BytesIO()
    monkeypatch.setattr(torch.Tensor, "__reduce_ex__", reduced)
    written = OrderedDict(a=torch.arange(6.0).view(2, 3))
    torch.save(written, file, _use_new_zipfile_serialization=False)
    assert b"_rebuild_tensor\n" in file.getvalue()
    file.seek(0)
    assert convcore.load(file)["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_tar_archive_is_named():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))
    file.seek(0)
    with pytest.raises(CheckpointError, match=r"a tar archive.*writes it anew"):
        convcore.load(file)
