"""Checkpoints: PyTorch's are read, PyTorch reads convcore's, and code is never run."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import convcore
from convcore import models, nn, optim

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def things(library):
    """One of everything that is written."""
    base = library.arange(24.0).view(2, 3, 4)
    tensors = [library.ones(2, dtype=getattr(library, name)) for name in DTYPES]
    return {
        "dtypes": [*tensors, library.ones(2, dtype=library.complex64)],
        "transposed": base.transpose(0, 2),
        "scalar": library.tensor(3),
        "empty": library.zeros(0, 2),
        "leaf": library.ones(1, requires_grad=True),
        "parameter": library.nn.Parameter(library.ones(2)),
        "frozen": library.nn.Parameter(library.ones(2), requires_grad=False),
        "ordered": OrderedDict(a=1, b=(2.5, None, True, "x", b"y", {3})),
        "dtype": library.float64,
        "size": [library.Size([2, 3])] * 2,
        "device": library.device("cpu"),
        "counter": Counter([1, 1, 2]),
        "complex": 2 - 3j,
    }


def plain(value):
    """What can be compared between the libraries."""
    if hasattr(value, "detach"):
        kind = "Parameter" if type(value).__name__ == "Parameter" else "Tensor"
        strides = value.stride() if value.numel() else ()
        return kind, str(value.dtype), value.tolist(), strides, value.requires_grad
    if isinstance(value, dict):
        return type(value), {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return value if isinstance(value, (int, float, complex, set, bytes)) else str(value)


def through(written, save, load):
    file = io.BytesIO()
    save(written, file)
    file.seek(0)
    return load(file)


def test_what_is_saved_is_loaded():
    written = things(convcore)
    assert plain(through(written, convcore.save, convcore.load)) == plain(written)


def test_pytorchs_files_are_read(torch):
    found = through(things(torch), torch.save, convcore.load)
    assert plain(found) == plain(things(torch))


def test_pytorch_reads_our_files(torch):
    found = through(things(convcore), convcore.save, torch.load)
    assert plain(found) == plain(things(torch))


def test_checkpoints_go_both_ways(torch, tmp_path):
    ours, theirs = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), None
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    ours.load_state_dict(convcore.load(tmp_path / "theirs.pth"))
    assert np.array_equal(ours[0].weight.detach().numpy(), theirs[0].weight.detach().numpy())
    with convcore.no_grad():
        ours[0].weight.mul_(2)
    convcore.save(ours.state_dict(), str(tmp_path / "ours.pth"))
    theirs.load_state_dict(torch.load(tmp_path / "ours.pth"))
    assert np.array_equal(ours[0].weight.detach().numpy(), theirs[0].weight.detach().numpy())


def test_training_goes_on_from_a_file(tmp_path):
    net = models.resnet8().to(memory_format=convcore.channels_last)
    adam = optim.AdamW(net.parameters())
    net(convcore.randn(2, 3, 8, 8)).sum().backward()
    adam.step()
    convcore.save({"net": net.state_dict(), "adam": adam.state_dict()}, tmp_path / "state.pt")
    found = convcore.load(tmp_path / "state.pt")
    other = models.resnet8()
    other.load_state_dict(found["net"])
    assert all(map(convcore.equal, net.parameters(), other.parameters()))
    assert found["net"]["conv1.weight"].is_contiguous(memory_format=convcore.channels_last)
    again = optim.AdamW(other.parameters())
    again.load_state_dict(found["adam"])
    key = next(iter(again.state))
    assert again.state[key]["step"].item() == 1


SCHEDULES = {
    "LambdaLR": [lambda epoch: 0.5],
    "MultiStepLR": [[2, 3]],
    "OneCycleLR": [np.float64(0.1), 10],
    "ReduceLROnPlateau": [],
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_go_on_from_a_file(name):
    sgd = optim.SGD([convcore.ones(1, requires_grad=True)], lr=np.float64(0.5))
    schedule = getattr(optim.lr_scheduler, name)(sgd, *SCHEDULES[name])
    state = schedule.state_dict(), sgd.state_dict()
    found = through(state, convcore.save, convcore.load)
    assert found == state
    schedule.load_state_dict(found[0])


def test_numbers_of_numpy_are_written_as_pythons():
    numbers = [np.float64(0.1), np.float32(0.5), np.int64(3), np.bool_(True), np.complex64(1j)]
    found = through(numbers, convcore.save, convcore.load)
    assert found == numbers
    assert [type(number) for number in found] == [float, float, int, bool, complex]


def test_whatever_device_a_checkpoint_names_is_the_cpu(torch):
    found = through([torch.device("cuda:1"), torch.device("cpu")], torch.save, convcore.load)
    assert found == [convcore.device("cpu")] * 2


def test_shared_memory_is_shared_again():
    weight = convcore.ones(3)
    found = through(
        {"a": weight, "b": weight, "c": weight.view(3, 1)}, convcore.save, convcore.load
    )
    found["a"][0] = 7
    assert found["b"] is found["a"] and found["c"].tolist() == [[7], [1], [1]]


def test_gaps_are_not_written():
    file = io.BytesIO()
    convcore.save(convcore.zeros(1000, 1000)[::100, ::100], file)
    assert len(file.getvalue()) < 3000
    assert convcore.load(file).shape == (10, 10)


class Runs:
    def __reduce__(self):
        return print, ("code was run",)


def test_code_is_neither_written_nor_run(capsys):
    with pytest.raises(pickle.PicklingError, match="Runs'> is not written"):
        convcore.save({"a": Runs()}, io.BytesIO())
    with pytest.raises(pickle.PicklingError, match="defaultdict'> is not written"):
        convcore.save(defaultdict(list), io.BytesIO())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", pickle.dumps(Runs()))
    with pytest.raises(pickle.UnpicklingError, match=r"builtins\.print is not read"):
        convcore.load(file)
    assert "code was run" not in capsys.readouterr().out
    with pytest.raises(ValueError, match="weights_only must be True"):
        convcore.load(file, weights_only=False)


def damaged(records):
    """A file with some records left out or replaced."""
    whole, file = io.BytesIO(), io.BytesIO()
    convcore.save([convcore.ones(100)], whole)
    with zipfile.ZipFile(whole) as read, zipfile.ZipFile(file, "w") as written:
        for name in read.namelist():
            content = records.get(name, read.read(name))
            if content is not None:
                written.writestr(name, content)
    return file


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (io.BytesIO(b"what is this"), "is no zip archive"),
        (damaged({"archive/data.pkl": None}), "no data.pkl in it"),
        (damaged({"archive/data/0": b"abcd"}), "storage 0 is damaged: 4 bytes"),
        (damaged({"archive/byteorder": b"middle"}), "another byte order"),
    ],
)
def test_damaged_files_are_refused(file, message):
    with pytest.raises(ValueError, match=message):
        convcore.load(file)
