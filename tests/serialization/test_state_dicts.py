"""safetensors and npz: what goes in comes out; strangers' files are data."""

import importlib.util
import io
import json
import os
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

import convcore
from convcore import nn
from convcore.serialization import CheckpointError, bfloat16, read_metadata

SAFETENSORS = pytest.param(
    "safetensors",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("safetensors") is None, reason="needs safetensors"
    ),
)
both = pytest.mark.parametrize("kind", [SAFETENSORS, "npz"])
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def need_safetensors():
    return pytest.importorskip("safetensors.numpy", reason="needs safetensors")


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)


def others(kind, path):
    """The arrays of a file, as the format's own library reads them."""
    if kind == "npz":
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if name != "__metadata__"}
    return need_safetensors().load_file(path)


@both
def test_tensors_come_back(kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    dtypes = {name: convcore.ones(2, 3, dtype=getattr(convcore, name)) for name in DTYPES}
    more = {
        "scalar": convcore.tensor(3),
        "empty": convcore.zeros(0, 2),
        "a.b/c": convcore.arange(6.0).view(2, 3).T,
        "expanded": convcore.ones(1).expand(3),
        "parameter": nn.Parameter(convcore.ones(1)),
        "complex": convcore.full((1,), 1j, dtype=convcore.complex64),
    }
    written = dtypes | more
    convcore.save(written, path)
    found, theirs = convcore.load(path), others(kind, path)
    assert found.keys() == written.keys() == theirs.keys()
    for name, value in written.items():
        assert type(found[name]) is convcore.Tensor and found[name].dtype is value.dtype, name
        assert found[name].shape == value.shape and convcore.equal(found[name], value.detach())
        assert np.array_equal(theirs[name], value.detach().numpy()), name
        found[name].fill_(0)  # memory of its own, that may be written


@both
def test_others_files_are_read(kind, tmp_path, rng):
    path = tmp_path / f"a.{kind}"
    arrays = {"w": rng.standard_normal((2, 3)), "n": np.arange(3, dtype=np.int16), "s": np.ones(())}
    if kind == "npz":
        np.savez_compressed(path, big=arrays["w"].astype(">f4"), fortran=arrays["w"].T, **arrays)
    else:
        need_safetensors().save_file(arrays, path, metadata={"format": "np"})
        assert read_metadata(path) == {"format": "np"}
    found = convcore.load(path)
    for name, value in others(kind, path).items():
        assert np.array_equal(found[name].numpy(), value), name


@both
def test_tied_weights_stay_tied(kind, tmp_path):
    net, path = Tied(), tmp_path / f"a.{kind}"
    convcore.save(net.state_dict(), path, metadata={"epoch": "3"})
    assert "second.weight" not in others(kind, path)
    found = convcore.load(path)
    assert found["second.weight"].data_ptr() == found["first.weight"].data_ptr()
    assert found["second.bias"].data_ptr() != found["first.bias"].data_ptr()
    assert read_metadata(path) == {"epoch": "3"}
    again = Tied()
    again.load_state_dict(found)
    assert convcore.equal(again.second.weight, net.first.weight)
    assert again.second.weight is again.first.weight


def test_tied_weights_are_written_as_the_library_does(tmp_path, torch):
    theirs = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    theirs.save_model(net, str(tmp_path / "theirs.safetensors"))
    found = convcore.load(tmp_path / "theirs.safetensors")
    assert found.keys() == net.state_dict().keys()
    assert found["0.weight"].data_ptr() == found["1.weight"].data_ptr()
    convcore.save(found, tmp_path / "ours.safetensors")
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    other[1].weight = other[0].weight
    theirs.load_model(other, str(tmp_path / "ours.safetensors"))
    assert torch.equal(other[1].weight, net[1].weight)


@both
def test_the_content_tells_the_format_and_the_keyword_insists(kind, tmp_path):
    path = tmp_path / "weights.bin"
    convcore.save({"a": convcore.ones(1)}, path, format=kind)
    assert convcore.load(path)["a"].item() == convcore.load(path, format=kind)["a"].item() == 1
    with pytest.raises(CheckpointError, match=f"no file of the format torch, but of {kind}"):
        convcore.load(path, format="torch")
    file = io.BytesIO()
    convcore.save({}, file, format=kind)
    assert convcore.load(file, format=kind) == {}
    convcore.save({"a": 1}, path, format="torch")
    assert convcore.load(path) == {"a": 1}
    with pytest.raises(CheckpointError, match="of torch"):
        convcore.load(path, format=kind)
    for call in (convcore.load, lambda f, **options: convcore.save({}, f, **options)):
        with pytest.raises(ValueError, match="format: expected one of torch, safetensors, npz"):
            call(path, format="onnx")


WRONG = {
    "no dict": ([convcore.ones(1)], TypeError, "a {kind} file holds a dict of tensors by name"),
    "a number": ({"a": convcore.ones(1), "lr": 0.1}, TypeError, r"obj\['lr'\]: .* got float"),
    "nested": ({"model": {"a": convcore.ones(1)}}, TypeError, r"obj\['model'\]: .* got dict"),
    "a key": ({3: convcore.ones(1)}, TypeError, "keys of a {kind} file are str, got 3"),
    "meta": ({"a": convcore.ones(1, device="meta")}, TypeError, r"obj\['a'\]: .*'meta'"),
    "reserved": ({"__metadata__": convcore.ones(1)}, ValueError, "__metadata__"),
    "complex": ({"a": convcore.ones(1, dtype=convcore.complex128)}, TypeError, "no complex128"),
}


@both
@pytest.mark.parametrize("what", WRONG)
def test_what_a_format_has_not_is_named_and_nothing_is_written(kind, what, tmp_path):
    obj, error, message = WRONG[what]
    if (kind, what) == ("npz", "complex"):
        return
    path = tmp_path / f"a.{kind}"
    path.write_bytes(b"old")
    with pytest.raises(error, match=message.replace("{kind}", kind)):
        convcore.save(obj, path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == [path.name]


@both
def test_views_are_refused_but_not_neighbours(kind, tmp_path):
    base, path = convcore.arange(12.0), tmp_path / f"a.{kind}"
    with pytest.raises(ValueError, match=r"obj\['b'\] and obj\['a'\] share a part"):
        convcore.save({"a": base, "b": base[4:]}, path)
    columns = base.view(6, 2)
    written = {"a": base[:6], "b": base[6:]} if kind == "npz" else dict(enumerate(columns.T))
    written = {str(name): value for name, value in written.items()}
    convcore.save(written, path)
    found = convcore.load(path)
    assert all(convcore.equal(found[name], value) for name, value in written.items())


@both
def test_metadata_are_texts_that_mean_no_tied_weights(kind, tmp_path):
    path, one = tmp_path / f"a.{kind}", {"a": convcore.ones(1)}
    for metadata in ({"epoch": 3}, {3: "x"}, ["x"]):
        with pytest.raises(TypeError, match="metadata: expected str by str"):
            convcore.save(one, path, metadata=metadata)
    with pytest.raises(ValueError, match="would be taken for the name of a tied weight"):
        convcore.save(one, path, metadata={"best": "a"})
    with pytest.raises(ValueError, match="only safetensors and npz"):
        convcore.save(one, tmp_path / "a.pt", metadata={"a": "b"})
    convcore.save(one, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match="only safetensors and npz"):
        read_metadata(tmp_path / "a.pt")
    convcore.save(one, path)
    assert read_metadata(path) == {}


@both
def test_what_fails_leaves_the_old_file(kind, tmp_path, monkeypatch):
    path = tmp_path / f"a.{kind}"
    convcore.save({"a": convcore.ones(1)}, path)

    def interrupt(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        convcore.save({"a": convcore.zeros(1)}, path)
    assert convcore.load(path)["a"].item() == 1 and os.listdir(tmp_path) == [path.name]


def test_bfloat16_is_read_as_it_is_where_ml_dtypes_is(tmp_path, monkeypatch):
    need_safetensors()
    numbers = np.array([1.5, -0.0, np.inf, 2**-130, 3.390625], np.float32)
    bits = (numbers.view(np.uint32) >> 16).astype("<u2")
    path = tmp_path / "a.safetensors"
    entry = {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}
    path.write_bytes(framed({"a": entry}, bits.tobytes()))
    with monkeypatch.context() as patched:
        patched.setattr(bfloat16, "numbers", lambda bits: None)
        with pytest.warns(UserWarning, match="bfloat16 is read as float32") as told:
            found = convcore.load(path)["a"]
    assert len(told) == 1 and found.dtype is convcore.float32
    assert np.array_equal(found.numpy(), numbers)
    pytest.importorskip("ml_dtypes")
    convcore.save({"a": found.to(convcore.bfloat16)}, tmp_path / "b.safetensors")
    for name in "ab":
        again = convcore.load(tmp_path / f"{name}.safetensors")["a"]
        assert again.dtype is convcore.bfloat16
        assert np.array_equal(again.float().numpy(), numbers)
    with pytest.raises(TypeError, match="npz files have no bfloat16"):
        convcore.save({"a": found.to(convcore.bfloat16)}, tmp_path / "b.npz")


def framed(header, memory=b"", length=None):
    """A safetensors file of a header, as an object or as bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + memory


def one(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


DAMAGED = {
    "cut off": (framed({"a": one()}, bytes(7)), "cut off"),
    "longer": (framed({"a": one()}, bytes(9)), "take 8 bytes, and 9"),
    "no bytes": (b"\x08\0\0", "no safetensors file"),
    "length": (framed({"a": one()}, length=2**60), "cut off"),
    "overlap": (framed({"a": one(), "b": one(offsets=(4, 12))}, bytes(12)), "overlaps another"),
    "same place": (framed({"a": one(), "b": one()}, bytes(8)), "overlaps another"),
    "gap": (framed({"a": one(), "b": one(offsets=(9, 17))}, bytes(17)), "leaves a gap"),
    "outside": (framed({"a": one(shape=(2**40,), offsets=(0, 2**42))}, bytes(8)), "cut off"),
    "size": (framed({"a": one(shape=(3,))}, bytes(8)), "takes 12 bytes"),
    "reversed": (framed({"a": one(offsets=(8, 0))}, bytes(8)), "its place is"),
    "negative": (framed({"a": one(shape=(-2, -1))}, bytes(8)), "are no numbers"),
    "flags": (framed({"a": one(shape=(True, 2))}, bytes(8)), "are no numbers"),
    "axes": (framed({"a": one(shape=(1,) * 65 + (2,))}, bytes(8)), "are no numbers"),
    "places": (framed({"a": one(offsets=(0, 4, 8))}, bytes(8)), "no start and end"),
    "dtype": (framed({"a": one("F8_E4M3", (8,))}, bytes(8)), "dtype 'F8_E4M3': BOOL"),
    "keys": (framed({"a": one(x=1)}, bytes(8)), "no dtype, shape"),
    "twice": (framed(b'{"a":{},"a":{}}'), "twice"),
    "no json": (framed(b"{nothing"), r"damaged: its parts .* \(JSONDecodeError"),
    "no text": (framed(b"{\xff"), "damaged: a text in it cannot be decoded"),
    "deep": (framed(b'{"a":' + b"[" * 9999), "damaged: its objects are nested too deeply"),
    "digits": (framed(b'{"a":' + b"9" * 9999 + b"}"), r"damaged: its parts .* \(ValueError"),
    "no dict": (framed(b"[]"), "something else"),
    "metadata": (framed({"__metadata__": {"a": 1}}), "metadata are damaged"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_safetensors_are_one_error(what, tmp_path):
    need_safetensors()
    content, message = DAMAGED[what]
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    for read in (convcore.load, read_metadata):
        with pytest.raises(CheckpointError, match=message) as caught:
            read(path)
        assert "a.safetensors" in str(caught.value)
    assert bounded(content)


def test_long_headers_are_refused(monkeypatch):
    need_safetensors()
    monkeypatch.setattr("convcore.serialization.state_dicts.safetensors.LONGEST_HEADER", 10)
    with pytest.raises(CheckpointError, match="header is too long"):
        convcore.load(io.BytesIO(framed({"a": one()}, bytes(8))))


def peak_of_load(content, **options):
    """Return the largest number of bytes held during a load, and its result or CheckpointError."""
    tracemalloc.start()
    try:
        result = convcore.load(io.BytesIO(content), **options)
    except CheckpointError as error:
        result = error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak, result


def bounded(content):
    """Whether loading is refused, in no more memory than SECURITY.md allows."""
    peak, result = peak_of_load(content)
    return isinstance(result, CheckpointError) and peak < 500 * len(content) + 200_000


def empty_entries(count, shape):
    entry = {"dtype": "U8", "shape": shape, "data_offsets": [0, 0]}
    return {format(i, "x"): entry for i in range(count)}


HEADERS_ALONE = {
    "empty tensors": empty_entries(20_000, [0]),
    "empty tensors of 64 axes": empty_entries(5_000, [0] * 64),
    "objects": {format(i, "x"): {} for i in range(20_000)},
    "nested lists": {"a": [[]] * 50_000},
    "metadata": {"__metadata__": {format(i, "x"): "" for i in range(20_000)}},
    "tied names": {
        **empty_entries(1, [0]),
        "__metadata__": {f"{i:x}z": "0" for i in range(20_000)},
    },
}


@pytest.mark.parametrize("what", HEADERS_ALONE)
def test_a_safetensors_header_takes_at_most_50_times_its_bytes(what):
    content = framed(json.dumps(HEADERS_ALONE[what], separators=(",", ":")).encode())
    peak, _ = peak_of_load(content, format="safetensors")
    assert peak < 50 * len(content)


def test_tensors_of_safetensors_take_their_bytes_once():
    sizes = 4 << 20, 1 << 20
    offsets = [0, sizes[0]], [sizes[0], sum(sizes)]
    header = {
        name: one("U8", (size,), place)
        for name, size, place in zip("ab", sizes, offsets, strict=True)
    }
    content = framed(header, bytes(sum(sizes)))
    peak, tensors = peak_of_load(content)
    assert [tensor.numel() for tensor in tensors.values()] == list(sizes)
    assert peak < 1.5 * sum(sizes)


def test_a_safetensors_file_that_shrinks_while_it_is_read_is_refused():
    class Shrinking(io.BytesIO):
        def seek(self, offset, whence=0):
            position = super().seek(offset, whence)
            if whence == 2:
                self.truncate(position - 1)
            return position

    with pytest.raises(CheckpointError, match="tensor 'a' is cut off: the file became shorter"):
        convcore.load(Shrinking(framed({"a": one()}, bytes(8))))


def zipped(entries, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


def of_header(text, data=b"", version=b"\x01\x00"):
    width = 2 if version[0] == 1 else 4
    return b"\x93NUMPY" + version + len(text).to_bytes(width, "little") + text.encode() + data


def header(descr="'<f4'", shape="(2,)", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


class Runs:
    def __reduce__(self):
        return print, ("this was run",)


DAMAGED_NPZ = {
    "objects": (zipped({"a": npy(np.array([Runs()], object))}), "holds pickled objects"),
    "text": (zipped({"a": npy(np.array(["x"]))}), "of <U1, which no tensor has"),
    "records": (zipped({"a": npy(np.zeros(2, "f4,i4"))}), "which no tensor has"),
    "cut off": (zipped({"a": npy(np.zeros(2))[:-1]}), "15 bytes are there"),
    "longer": (zipped({"a": npy(np.zeros(2)) + b"x"}), "17 bytes are there"),
    "huge": (zipped({"a": of_header(header(shape="(2**60,)"), bytes(8))}), "damaged"),
    "large": (zipped({"a": of_header(header(shape=f"({2**60},)"), bytes(8))}), "takes 4611"),
    "negative": (zipped({"a": of_header(header(shape="(-2, -1)"), bytes(8))}), "8 bytes are there"),
    "bomb": (zipped({"a": npy(np.zeros(10**6))}, zipfile.ZIP_DEFLATED), "inflates to more than"),
    "method": (zipped({"a": npy(np.zeros(9))}, zipfile.ZIP_BZIP2), "other means than deflate"),
    "version": (zipped({"a": of_header(header(), bytes(8), b"\x03\x00")}), "version"),
    "no header": (zipped({"a": b"abcdefgh"}), r"damaged: its parts .* \(ValueError"),
    "long header": (zipped({"a": of_header(header() + " " * 20000, bytes(8))}), "damaged"),
    "metadata": (zipped({"__metadata__": npy(np.zeros(2, np.uint8))}), "damaged"),
    "no texts": (
        zipped({"__metadata__": npy(np.frombuffer(b'{"a":1}', np.uint8))}),
        "metadata are damaged",
    ),
}


@pytest.mark.parametrize("what", DAMAGED_NPZ)
def test_damaged_npz_are_one_error(what, tmp_path, capsys):
    content, message = DAMAGED_NPZ[what]
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        convcore.load(path)
    assert bounded(content) and capsys.readouterr().out == ""


def test_a_changed_byte_of_an_npz_is_found(tmp_path):
    file = io.BytesIO()
    convcore.save({"a": convcore.ones(4)}, file, format="npz")
    content = bytearray(file.getvalue())
    content[content.index(np.ones(4, np.float32).tobytes())] ^= 1
    with pytest.raises(CheckpointError, match="damaged"):
        convcore.load(io.BytesIO(bytes(content)))


def test_pytorchs_checkpoints_of_any_name_are_read(tmp_path):
    for name in ("a.npz", "a.safetensors"):
        convcore.save([1], tmp_path / name, format="torch")
        assert convcore.load(tmp_path / name) == [1]


@both
def test_a_module_stays_as_it_is_where_a_file_is_refused(kind, tmp_path):
    path, net = tmp_path / f"a.{kind}", Tied()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    convcore.save({name: value + 1 for name, value in before.items()}, path)
    whole = path.read_bytes()
    for end in range(0, len(whole), 40):
        path.write_bytes(whole[:end])
        with pytest.raises(CheckpointError):
            net.load_state_dict(convcore.load(path))
    assert all(convcore.equal(value, before[name]) for name, value in net.state_dict().items())


def test_only_writing_safetensors_needs_the_library(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    path.write_bytes(framed({"a": one()}, np.array([1.5, -2], "<f4").tobytes()))
    monkeypatch.setitem(sys.modules, "safetensors", None)
    assert convcore.load(path)["a"].tolist() == [1.5, -2]
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'convcore\[safetensors\]'"):
        convcore.save({}, path)


def test_names_that_a_zip_archive_would_cut_off_are_refused():
    file = io.BytesIO()
    with pytest.raises(ValueError, match="null character"):
        convcore.save({"a\0b": convcore.ones(1)}, file, format="npz")
    assert not file.getvalue()


def test_names_that_are_too_long_for_a_zip_archive_are_refused():
    file, longest = io.BytesIO(), "ü" * 32_765 + "n"
    with pytest.raises(ValueError, match="at most 65,531 bytes, got 65,532"):
        convcore.save({longest + "n": convcore.ones(1)}, file, format="npz")
    assert not file.getvalue()
    convcore.save({longest: convcore.ones(1)}, file, format="npz")
    assert list(convcore.load(file)) == [longest]


@both
def test_texts_that_utf_8_has_not_are_refused(kind):
    one, file = convcore.ones(1), io.BytesIO()
    with pytest.raises(ValueError, match=r"obj\['a.ud800'\]: a .* file has text .* UTF-8, got"):
        convcore.save({"a\ud800": one}, file, format=kind)
    for metadata in ({"a\ud800": "b"}, {"a": "b\ud800"}):
        with pytest.raises(ValueError, match=r"metadata: a .* UTF-8"):
            convcore.save({"a": one}, file, format=kind, metadata=metadata)
    assert not file.getvalue()
