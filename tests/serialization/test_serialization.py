"""Checkpoints: PyTorch's are read, PyTorch reads convcore's, and code is run only if asked for."""

import copy
import gc
import io
import os
import pickle
import re
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


def test_tensors_with_the_same_gaps_share_memory_again():
    columns = convcore.arange(6.0).view(2, 3)[:, ::2]
    written = {"a": columns, "b": columns.detach(), "c": convcore.arange(6.0).view(2, 3)[:, :2]}
    found = through(written, convcore.save, convcore.load)
    found["a"][0, 0] = 7
    assert found["b"].tolist() == [[7, 2], [3, 5]] and found["c"].tolist() == [[0, 1], [3, 4]]


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_integers_without_a_storage_class_go_both_ways(torch, name):
    def saved(lib):
        one = lib.tensor([[1, 65535, 3]]).to(getattr(lib, name))
        parameter = lib.nn.Parameter(one, requires_grad=False)
        return {"a": one, "b": one.T, "parameter": parameter, "scalar": one[0, 0]}

    for written, read in ((convcore, convcore), (convcore, torch), (torch, convcore)):
        found = through(saved(written), written.save, read.load)
        assert plain(found) == plain(saved(written))
        found["a"][0, 0] = 7
        assert found["b"].tolist() == [[7], [65535], [3]]


@pytest.mark.parametrize("shape", [(1,), (1, 3), (0, 2)])
def test_a_negative_step_that_leads_nowhere_is_none_in_a_file(torch, shape):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)[(slice(None, None, -1),)]
    written = convcore.from_numpy(array)
    for load in (convcore.load, torch.load):
        assert through(written, convcore.save, load).tolist() == array.tolist()


def test_a_number_that_is_not_aligned_has_no_axes_in_a_file(torch):
    array = np.zeros(9, np.uint8)[1:].view(np.float64).reshape(())
    array[...] = 3
    for load in (convcore.load, torch.load):
        found = through(convcore.from_numpy(array), convcore.save, load)
        assert found.shape == () and found == 3


def test_gaps_are_not_written():
    file = io.BytesIO()
    convcore.save(convcore.zeros(1000, 1000)[::100, ::100], file)
    assert len(file.getvalue()) < 3000
    assert convcore.load(file).shape == (10, 10)


@pytest.mark.parametrize("older", [False, True])
def test_bits_of_pytorchs_tensors_are_resolved(torch, older):
    base = torch.tensor([1 + 2j, 3 - 4j])
    written = {
        "conj": base.conj(),
        "view": base.conj()[1:],
        "neg": torch.tensor([1 + 2j]).conj().imag,
        "both": (-torch.tensor([5j]).conj()),
        "parameter": torch.nn.Parameter(torch.tensor([2j])),
    }
    file = io.BytesIO()
    torch.save(written, file, _use_new_zipfile_serialization=not older)
    file.seek(0)
    found = convcore.load(file)
    assert written["conj"].is_conj() and written["neg"].is_neg()
    for key, expected in written.items():
        assert found[key].tolist() == expected.tolist(), key


class Runs:
    def __reduce__(self):
        return print, ("code was run",)


def test_code_is_run_only_if_that_is_asked_for(capsys):
    file = io.BytesIO()
    convcore.save({"a": Runs()}, file)
    for options in ({}, {"weights_only": True}):
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError, match="GLOBAL print was not an allowed global"):
            convcore.load(file, **options)
    assert capsys.readouterr().out == ""
    file.seek(0)
    assert convcore.load(file, weights_only=False) == {"a": None}
    assert capsys.readouterr().out == "code was run\n"
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle"):
        convcore.load(file, pickle_module=pickle, weights_only=True)


def test_a_program_may_have_another_unpickler_meanwhile(tmp_path, monkeypatch):
    class Other(pickle.Unpickler):
        pass

    convcore.save({"a": convcore.ones(2), "b": pickle.Pickler}, tmp_path / "x.pt")
    monkeypatch.setattr(pickle, "Unpickler", Other)
    read = convcore.load(tmp_path / "x.pt", weights_only=False)
    assert read["a"].tolist() == [1, 1] and read["b"] is pickle.Pickler


def test_what_cannot_be_pickled_writes_nothing(tmp_path):
    with pytest.raises((pickle.PicklingError, AttributeError)):
        convcore.save({"a": lambda: 0}, tmp_path / "a.pt")
    assert not (tmp_path / "a.pt").exists()
    with pytest.raises(ValueError, match="read, and not written"):
        convcore.save([1], tmp_path / "a.pt", _use_new_zipfile_serialization=False)


def as_code(file):
    return convcore.load(file, weights_only=False)


COPIES = {
    "file": lambda value: through(value, convcore.save, as_code),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "deepcopy": copy.deepcopy,
}


def small_net(library):
    nn = library.nn
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("name", COPIES)
def test_whole_modules_are_read(name, rng):
    net = small_net(convcore)
    net[1].register_buffer("extra", convcore.ones(2), persistent=False)
    found = COPIES[name](net)
    x = convcore.from_numpy(rng.standard_normal((2, 3, 4, 4), np.float32))
    assert convcore.equal(found(x), net(x)) and found is not net
    assert "1.extra" not in found.state_dict() and found[1].extra.tolist() == [1, 1]
    assert [type(p) for p in found.parameters()] == [type(p) for p in net.parameters()]


@pytest.mark.parametrize("older", [False, True])
def test_pytorchs_whole_modules_are_read(torch, rng, older):
    theirs = small_net(torch).eval()
    options = {"_use_new_zipfile_serialization": not older}
    ours = through(theirs, lambda net, file: torch.save(net, file, **options), as_code)
    assert isinstance(ours, nn.Sequential) and not ours.training
    x = rng.standard_normal((2, 3, 4, 4), np.float32)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    assert np.allclose(ours(convcore.from_numpy(x)).detach().numpy(), expected, atol=1e-6)
    assert ours.state_dict().keys() == theirs.state_dict().keys()


@pytest.mark.parametrize("code", [False, True])
def test_the_older_format_is_read(torch, code):
    base = torch.arange(6.0)
    written = {"a": base.view(2, 3).T, "b": base[2:4], "c": [torch.ones(2, dtype=torch.int8)]}
    written["d"] = torch.nn.Parameter(torch.zeros(0, 2))
    file = io.BytesIO(b"before")
    file.seek(6)
    torch.save(written, file, _use_new_zipfile_serialization=False)
    file.seek(6)
    found = convcore.load(file, weights_only=not code)
    assert plain(found) == plain(written)
    found["a"][2, 0] = 50
    assert found["b"][0] == 50 and isinstance(found["d"], nn.Parameter)
    file.truncate(len(file.getvalue()) - 3)
    file.seek(6)
    with pytest.raises(ValueError, match="is damaged"):
        convcore.load(file, weights_only=not code)


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_optimizers_and_schedules_go_on(name, kind):
    net = nn.Linear(2, 2)
    optimizer = getattr(optim, kind)(net.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 1)

    def step(net, optimizer, schedule):
        optimizer.zero_grad()
        net(convcore.ones(1, 2)).sum().backward()
        optimizer.step()
        schedule.step()
        return net.weight.tolist(), schedule.get_last_lr()

    step(net, optimizer, schedule)
    found = COPIES[name]((net, optimizer, schedule))
    assert found[1].param_groups[0]["params"][0] is found[0].weight
    assert found[2].optimizer is found[1]
    assert step(*found) == step(net, optimizer, schedule)


class Marked(convcore.Tensor):
    """A tensor of a class of its own."""


@pytest.mark.parametrize("name", COPIES)
def test_tensors_keep_class_and_attributes(name):
    marked = convcore._tensor.wrap(np.arange(3.0), Marked)
    marked.note = [1]
    weight = nn.Parameter(convcore.ones(2), requires_grad=False)
    found = COPIES[name]([marked, weight, convcore.ones(2).requires_grad_()])
    assert type(found[0]) is Marked and found[0].tolist() == [0, 1, 2] and found[0].note == [1]
    assert type(found[1]) is nn.Parameter and not found[1].requires_grad
    assert found[2].requires_grad


@pytest.mark.parametrize("one", [0, 1])
def test_attributes_go_both_ways(torch, one):
    writer, reader = [(convcore, torch), (torch, convcore)][one]
    weight, tensor = writer.nn.Parameter(writer.ones(2)), writer.zeros(2)
    weight.tag, tensor.note = "x", [1]
    weight, tensor = through([weight, tensor], writer.save, reader.load)
    assert type(weight) is reader.nn.Parameter and weight.tag == "x" and tensor.note == [1]


NUMPY = [np.arange(3.0), np.array(["a"])]


@pytest.mark.parametrize("value", NUMPY, ids=str)
def test_arrays_are_read_where_they_are_trusted(torch, value):
    multiarray = np._core.multiarray
    for save in (torch.save, convcore.save):
        for load in (convcore.load, torch.load):
            with pytest.raises(pickle.UnpicklingError, match=r"multiarray.* was not an allowed"):
                through(value, save, load)
        assert np.array_equal(through(value, save, as_code), value)
        trusted = [multiarray._reconstruct, multiarray.scalar, np.ndarray, np.dtype]
        with convcore.serialization.safe_globals(trusted):
            found = through(value, save, convcore.load)
        assert np.array_equal(found, value) and type(found) is type(value)


def test_what_is_trusted_is_read():
    serialization = convcore.serialization
    written = defaultdict(list, a=[1]), convcore.channels_last
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([defaultdict, (list, "builtins.list")])
    name = "convcore._tensor.tensor.channels_last"
    with serialization.safe_globals([(convcore.channels_last, name)]):
        assert through(written, convcore.save, convcore.load) == written
    with pytest.raises(pickle.UnpicklingError, match=rf"GLOBAL {re.escape(name)}"):
        through(written, convcore.save, convcore.load)
    assert serialization.get_safe_globals() == [defaultdict, list]
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL collections\.defaultdict was not"):
        through(written, convcore.save, convcore.load)
    with pytest.raises(ValueError, match="a tuple of one and its name"):
        serialization.add_safe_globals([(list, 1)])


def test_the_operating_system_is_never_trusted():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", b"\x80\x02cposix\nsystem\nX\x00\x00\x00\x00\x85R.")
    file.seek(0)
    with (
        convcore.serialization.safe_globals([(os.system, "posix.system")]),
        pytest.raises(pickle.UnpicklingError, match="module posix is blocked"),
    ):
        convcore.load(file)


def test_names_of_pytorchs_that_are_not_here_are_told():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", b"\x80\x02ctorch.nn.nothing\nSuch\n.")
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"convcore has nothing of that name"):
        as_code(file)


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
        (io.BytesIO(b""), "it is empty"),
        (io.BytesIO(pickle.dumps({"a": 1})), "is no zip archive, and no file of PyTorch's older"),
        (io.BytesIO(b"PK\x03\x04what"), "is damaged"),
        (damaged({"archive/data.pkl": None}), "no data.pkl in it"),
        (damaged({"archive/data/0": b"abcd"}), "storage 0 is damaged: 4 bytes"),
        (damaged({"archive/byteorder": b"middle"}), "neither little nor big"),
    ],
)
def test_damaged_files_are_refused(file, message):
    file.seek(0)
    with pytest.raises(ValueError, match=message):
        convcore.load(file)


def test_the_default_protocol_is_the_one_that_files_have(tmp_path):
    from convcore.serialization import DEFAULT_PROTOCOL

    convcore.save([1], tmp_path / "a.pt")
    convcore.save([1], tmp_path / "b.pt", pickle_protocol=DEFAULT_PROTOCOL)
    assert (tmp_path / "a.pt").stat().st_size == (tmp_path / "b.pt").stat().st_size
    assert DEFAULT_PROTOCOL == 2


def test_the_same_object_is_saved_as_the_same_bytes(monkeypatch):
    files = []
    for year in (2001, 2031):
        now = (year, 2, 3, 4, 5, 6, 0, 34, 0)
        monkeypatch.setattr("time.localtime", lambda *seconds, now=now: now)
        files.append(io.BytesIO())
        convcore.save(things(convcore), files[-1])
    assert files[0].getvalue() == files[1].getvalue()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_a_record_is_closed_is_no_other_error(monkeypatch, tmp_path):
    def close(self):
        raise KeyboardInterrupt

    convcore.save({"a": 1}, tmp_path / "a.pt")
    before = (tmp_path / "a.pt").read_bytes()
    monkeypatch.setattr(zipfile._ZipWriteFile, "close", close)
    try:
        convcore.save(things(convcore), tmp_path / "a.pt")
    except KeyboardInterrupt:
        interrupted = True
    gc.collect()  # the archive, whose end Python reports and ignores
    assert interrupted
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.pt", before)]
