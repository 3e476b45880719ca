"""Files as PyTorch has written them since 1.0: what they may hold is read, or refused by name."""

import io
import pickle
import struct
import sys
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from pickled import TENSOR, archive, call, checkpoint, name, older, storage, tensor, value

import convcore
from convcore import nn, optim
from convcore.serialization import CheckpointError, bfloat16

FORMS = {"archive": True, "stream": False}
forms = pytest.mark.parametrize("zipped", FORMS.values(), ids=FORMS)


def written(torch, obj, zipped, **options):
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=zipped, **options)
    file.seek(0)
    return file


def load(file):
    return convcore.load(file)


# What PyTorch writes.

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
DTYPES += ("complex64", "complex128", "uint16", "uint32", "uint64")


@forms
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_tensors_of_every_dtype(torch, zipped, protocol):
    kinds = {kind: torch.tensor([1, 0, 3]).to(getattr(torch, kind)) for kind in DTYPES}
    found = load(written(torch, kinds, zipped, pickle_protocol=protocol))
    for kind, theirs in kinds.items():
        assert str(found[kind].dtype) == f"torch.{kind}"
        assert np.array_equal(found[kind].numpy(), theirs.numpy())


@pytest.fixture
def no_ml_dtypes(monkeypatch):
    monkeypatch.setattr(bfloat16, "numbers", lambda bits: None)


@forms
def test_bfloat16_is_read_as_it_is_and_shared(torch, zipped):
    pytest.importorskip("ml_dtypes")
    base = torch.tensor([1.5, -2.0, float("inf"), 2.0**-130, 0.0, 3.0]).to(torch.bfloat16)
    saved = [base, base[2:], base.view(2, 3).T, torch.nn.Parameter(base[:2])]
    found = load(written(torch, saved, zipped))
    for ours, theirs in zip(found, saved, strict=True):
        assert ours.dtype is convcore.bfloat16 and ours.tolist() == theirs.tolist()
    assert found[3].requires_grad
    found[0][4] = 7
    assert found[1][2].item() == found[2][1, 1].item() == 7


@forms
def test_bfloat16_is_float32_and_shared_without_ml_dtypes(torch, zipped, no_ml_dtypes):
    base = torch.tensor([1.5, -2.0, float("inf"), 2.0**-130, 0.0, 3.0]).to(torch.bfloat16)
    saved = [base, base[2:], base.view(2, 3).T, torch.nn.Parameter(base[:2]), base.to(torch.int8)]
    with pytest.warns(UserWarning, match="bfloat16 is read as float32") as told:
        found = load(written(torch, saved, zipped))
    assert len(told) == 1
    for ours, theirs in zip(found, saved, strict=True):
        assert np.array_equal(ours.detach().numpy(), theirs.detach().float().numpy())
    assert [one.dtype for one in found[:4]] == [convcore.float32] * 4
    found[0][4] = 7
    assert found[1][2].item() == found[2][1, 1].item() == 7


def test_bfloat16_is_written_as_it_is(torch):
    pytest.importorskip("ml_dtypes")
    base = convcore.tensor([[1.5, -2.0, 3.0], [0.0, 4.0, 5.0]]).to(convcore.bfloat16)
    file = io.BytesIO()
    tensors = [base, base.T, base[:, ::2], base[0, 0]]
    convcore.save(tensors, file)
    file.seek(0)
    for theirs, ours in zip(torch.load(file), tensors, strict=True):
        assert theirs.dtype is torch.bfloat16
        assert np.array_equal(theirs.float().numpy(), ours.to(convcore.float32).numpy())
    file.seek(0)
    for again, ours in zip(convcore.load(file), tensors, strict=True):
        assert again.dtype is convcore.bfloat16 and again.tolist() == ours.tolist()


@forms
def test_views_share_their_storage(torch, zipped):
    base = torch.arange(12.0)
    saved = {"a": base, "b": base[3:9:2], "c": base.view(3, 4).T, "d": base.expand(2, 12)}
    saved |= {"e": base[0], "u": torch.arange(6).to(torch.uint16)[2:]}
    found = load(written(torch, saved, zipped))
    for key, theirs in saved.items():
        assert np.array_equal(found[key].numpy(), theirs.numpy())
        assert found[key].stride() == theirs.stride()
    found["a"].fill_(5)
    assert all((found[key] == 5).all() for key in "abcde")


def trained(library, optimizer, schedule):
    weight = library.nn.Parameter(library.ones(2, 2))
    made = getattr(library.optim, optimizer)([weight], lr=np.float64(0.1))
    return weight, made, getattr(library.optim.lr_scheduler, schedule)(made, np.int64(3))


def train(weight, optimizer, schedule):
    optimizer.zero_grad()
    (weight**2).sum().backward()
    optimizer.step()
    schedule.step()


@forms
@pytest.mark.parametrize("names", [("Adam", "CosineAnnealingLR"), ("RMSprop", "StepLR")], ids=str)
def test_optimizers_and_schedules_go_on(torch, zipped, names):
    theirs, ours = trained(torch, *names), trained(convcore, *names)
    train(*theirs)
    states = [theirs[0], theirs[1].state_dict(), theirs[2].state_dict()]
    found = load(written(torch, states, zipped))
    with convcore.no_grad():
        ours[0].copy_(found[0])
    ours[1].load_state_dict(found[1])
    ours[2].load_state_dict(found[2])
    train(*ours)
    train(*theirs)
    assert np.allclose(ours[0].detach().numpy(), theirs[0].detach().numpy(), rtol=1e-6)
    assert ours[2].get_last_lr() == theirs[2].get_last_lr()


@forms
def test_all_else_that_is_data(torch, zipped):
    saved = {
        "numbers": [np.float64(0.1), np.float32(0.5), np.int64(-3), np.bool_(True), np.uint8(7)],
        "complex": np.complex128(1 - 2j),
        "half": np.float16(1.5),
        "size": torch.Size([2, 3]),
        "layout": torch.strided,
        "dtype": torch.bfloat16,
        "device": torch.device("cuda:1"),
        "ordered": OrderedDict(a=(1, None, {2}), b=b"x"),
        "parameters": torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))]).state_dict(),
    }
    found = load(written(torch, saved, zipped))
    assert found["numbers"] == saved["numbers"] and found["complex"] == saved["complex"]
    kinds = [type(number) for number in (*found["numbers"], found["complex"], found["half"])]
    assert kinds == [
        type(number) for number in (*saved["numbers"], saved["complex"], saved["half"])
    ]
    assert found["size"] == (2, 3) and type(found["size"]) is convcore.Size
    assert found["layout"] is convcore.strided and found["dtype"] is convcore.bfloat16
    assert found["device"] == convcore.device("cpu") and found["ordered"] == saved["ordered"]


@forms
def test_storages_alone(torch, zipped):
    untyped = torch.tensor([1.0, 2.0]).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=untyped, dtype=torch.float32, _internal=True)
    found = load(written(torch, [typed, untyped.clone()], zipped))
    assert list(found[0]) == [1, 2] and bytes(found[1]) == struct.pack("2f", 1, 2)


FLOAT8 = (
    r"^[^:]*: it holds tensors of torch.float8_e4m3fn, which are not read: cast them in PyTorch "
    "first$"
)


def refusals(torch):
    weight = torch.nn.Parameter(torch.ones(2))
    return {
        "sparse": (torch.eye(2).to_sparse(), r"a sparse tensor: save its to_dense\(\)"),
        "csr": (torch.eye(2).to_sparse_csr(), r"a sparse tensor: save its to_dense\(\)"),
        "quantized": (
            torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
            r"a quantized tensor: save its dequantize\(\)",
        ),
        "meta": (torch.ones(2, device="meta"), "which has no values"),
        "float8": (torch.ones(2).to(torch.float8_e4m3fn), FLOAT8),
        "qint8": (torch.qint8, "torch.qint8, which are not read"),
        "module": (
            torch.nn.Sequential(torch.nn.Linear(1, 1)),
            r"whole module, torch.nn.modules.container.Sequential.*load\(file, "
            r"weights_only=False\)\.state_dict\(\), 'weights.pt'\) keeps its weights .*are read\.$",
        ),
        "optimizer": (torch.optim.SGD([weight], 0.1), r"torch.optim.sgd.SGD.*save its state_dict"),
        "array": (np.ones(2), "multiarray._reconstruct was not an allowed"),
    }


@forms
@pytest.mark.parametrize(
    "kind",
    ["sparse", "csr", "quantized", "meta", "float8", "qint8", "module", "optimizer", "array"],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_data_or_no_tensor_of_ours_is_named(torch, kind, zipped):
    obj, message = refusals(torch)[kind]
    with pytest.raises(CheckpointError, match=message):
        load(written(torch, {"a": obj}, zipped))


@forms
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_tensor_of_ours_is_named_to_who_trusts_the_file_too(torch, zipped):
    file = written(torch, [torch.ones(2).to(torch.float8_e4m3fn)], zipped)
    with pytest.raises(CheckpointError, match=FLOAT8):
        convcore.load(file, weights_only=False)


@pytest.mark.filterwarnings("ignore")
def test_programs_are_named(torch, tmp_path):
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(tmp_path / "a.pt"))
    torch.jit.trace(torch.nn.Linear(1, 1), torch.ones(1)).save(str(tmp_path / "b.pt"))
    says = (
        r"': it is a TorchScript archive, a program, which convcore does not read: in PyTorch, "
        r"torch\.save\(torch\.jit\.load\(file\)\.state_dict\(\), 'weights\.pt'\)"
    )
    for file in ("a.pt", "b.pt"):
        for weights_only in (True, False):
            with pytest.raises(CheckpointError, match=says):
                convcore.load(tmp_path / file, weights_only=weights_only)


# Without PyTorch.


class Whole(nn.Module):
    """A module of a program of its own."""


def test_a_module_of_a_program_is_told_how_to_get_its_weights(tmp_path):
    convcore.save(Whole(), tmp_path / "a.pt")
    with pytest.raises(
        CheckpointError, match=r"Whole was not .* If it is of a whole module: in Py"
    ):
        load(tmp_path / "a.pt")


def test_a_whole_net_without_its_class_gets_a_hint(tmp_path, monkeypatch):
    convcore.save(Whole(), tmp_path / "a.pt")
    monkeypatch.delitem(globals(), "Whole")
    with pytest.raises(AttributeError, match="Whole") as caught:
        convcore.load(tmp_path / "a.pt", weights_only=False)
    assert "torch.save(net.state_dict(), file)" in str(caught.value)


def rebuilt(key="0", count=4, kind="UntypedStorage", dtype="uint16", size=(2,), offset=0, **more):
    """Push a tensor of new types, as `_rebuild_tensor_v3` makes it."""
    parts = [value("storage"), name("torch.storage" if kind[0] == "U" else "torch", kind)]
    parts += [value(key), value("cpu"), value(count)]
    where = pickle.MARK + b"".join(parts) + pickle.TUPLE + pickle.BINPERSID
    rest = [value(offset), value(size), value((1,)), value(False), value(None)]
    last = [value(metadata) for metadata in more.values()]
    function = name("torch._utils", "_rebuild_tensor_v3")
    return call(function, where, *rest, name("torch", dtype), *last)


BYTES = struct.pack("<2H", 1, 65535)


def by_hand(part, content=BYTES, count=4):
    stream = struct.pack("<q", count) + content
    yield archive(b"\x80\x02" + part + pickle.STOP, {"0": content})
    yield older(part, storages=stream)


def test_tensors_of_untyped_storages_by_hand():
    for file in by_hand(rebuilt()):
        found = load(file)
        assert found.dtype is convcore.uint16 and found.tolist() == [1, 65535]
    for file in by_hand(rebuilt(size=(1,), offset=1, metadata={})):
        assert load(file).tolist() == [65535]


WRONG = {
    "outside": (rebuilt(size=(3,)), "reaches outside"),
    "typed": (rebuilt(kind="ShortStorage", count=2), "storage of another type"),
    "bfloat16": (rebuilt(dtype="bfloat16"), "torch.bfloat16 are not read"),
    "metadata": (rebuilt(metadata={"conj": True}), "are not read"),
    "dtype": (rebuilt(dtype="FloatStorage"), "are not read: cast"),
    "a layout": (
        call(name("torch.serialization", "_get_layout"), value("torch.float32")),
        "layout",
    ),
    "a key": (call(name("torch.serialization", "_get_layout"), value([1])), "."),
    "an untyped tensor": (tensor(0, (2,), (1,), kind="UntypedStorage"), "."),
    "no scalar": (call(name("numpy", "dtype"), value("O"), value(False)), "scalar was not an all"),
    "long": (call(name("numpy", "dtype"), value("f16")), "scalar was not an allowed"),
    "no text": (call(name("numpy", "dtype"), value([("a", "f4")])), "scalar was not an allowed"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_calls_are_refused(what):
    part, message = WRONG[what]
    with pytest.raises(CheckpointError, match=message):
        load(checkpoint(part, storages={"0": BYTES}))


def test_bfloat16_by_hand(no_ml_dtypes):
    bits = struct.pack("<4H", 0x3FC0, 0xC000, 0x7F80, 1)
    part = tensor(1, (3,), (1,), kind="BFloat16Storage")
    for file in by_hand(part, bits):
        with pytest.warns(UserWarning, match="bfloat16"):
            found = load(file)
        assert found.dtype is convcore.float32
        assert found.tolist() == [-2, float("inf"), 2.0**-133]


def scalar(kind, content, module="numpy.core.multiarray", state=None, dtype=None):
    made = call(name("numpy", "dtype"), value(kind), value(False), value(True))
    if state is not None:
        made += value(state) + pickle.BUILD
    return call(name(module, "scalar"), dtype or made, value(content))


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_scalars_of_numpy_by_hand(module):
    little = (3, "<", None, None, None, -1, -1, 0)
    for order, pack in (("<", "<d"), (">", ">d")):
        state = (3, order, *little[2:])
        found = load(checkpoint(scalar("f8", struct.pack(pack, 0.1), module, state)))
        assert type(found) is np.float64 and found == 0.1
    found = load(checkpoint(scalar("i8", struct.pack("<q", -7), module)))
    assert type(found) is np.int64 and found == -7


BROKEN = {
    "short": (scalar("f8", b"abc"), "has 8 bytes, got 3"),
    "no bytes": (scalar("f8", 3), "made of a dtype and bytes"),
    "no dtype": (scalar("f8", bytes(8), dtype=value("f8")), "made of a dtype and bytes"),
    "order": (scalar("f8", bytes(8), state=(3, "x")), "dtype of a NumPy scalar is damaged"),
    "state": (scalar("f8", bytes(8), state={"names": 1}), "dtype of a NumPy scalar is damaged"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_scalars_are_refused(what):
    part, message = BROKEN[what]
    with pytest.raises(CheckpointError, match=message):
        load(checkpoint(part))


def test_no_bytes_are_a_call_in_early_protocols():
    for protocol in range(5):
        file = io.BytesIO()
        convcore.save({"a": b""}, file, pickle_protocol=protocol)
        assert load(file) == {"a": b""}
    with pytest.raises(CheckpointError):
        load(checkpoint(call(name("builtins", "bytes"), value(2**40))))


def of_order(order, *parts, **storages):
    file = archive(b"\x80\x02" + b"".join(parts) + pickle.STOP, storages)
    with zipfile.ZipFile(file, "a") as opened:
        opened.writestr("archive/byteorder", order)
    return file


def test_files_of_another_byte_order_are_read():
    if sys.byteorder != "little":
        pytest.skip("the files are of big-endian machines")
    contents = {"0": struct.pack(">4f", 0, 1, 2, 3)}
    assert load(of_order("big", tensor(0, (4,), (1,)), **contents)).tolist() == [0, 1, 2, 3]
    contents = {"0": struct.pack(">4f", 1, 2, 3, 4)}
    complex_tensor = call(
        TENSOR,
        storage(kind="ComplexFloatStorage", count=2),
        *map(value, (0, (2,), (1,), False, None)),
    )
    assert load(of_order("big", complex_tensor, **contents)).tolist() == [1 + 2j, 3 + 4j]
    with pytest.raises(CheckpointError, match="types that it does not say"):
        load(of_order("big", rebuilt(), **{"0": BYTES}))
    assert load(of_order("little", rebuilt(), **{"0": BYTES})).tolist() == [1, 65535]


def test_streams_of_big_endian_machines_have_the_same_storages():
    file = older(tensor(0, (4,), (1,)))
    content = file.getvalue().replace(b"little_endianq\x01\x88", b"little_endianq\x01\x89")
    assert content != file.getvalue()
    assert load(io.BytesIO(content)).tolist() == [0, 1, 2, 3]


def test_a_state_dict_of_an_optimizer_of_ours_with_numpys_rate_is_read_by_both(torch):
    sgd = optim.SGD([convcore.ones(1, requires_grad=True)], lr=np.float64(0.5))
    file = io.BytesIO()
    convcore.save(sgd.state_dict(), file)
    for library in (convcore, torch):
        file.seek(0)
        assert library.load(file)["param_groups"][0]["lr"] == 0.5
