"""A file that somebody sends changes nothing, takes no more than its size, and says what is wrong.

Each file here is put together by hand; `world` compares all that the process has before and after.
"""

import copyreg
import io
import os
import pickle
import struct
import sys
import time
import tracemalloc
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pickled
import pytest
import world
from pickled import ORDERED, TENSOR, call, checkpoint, name, older, storage, tensor, value

import convcore
from convcore import nn
from convcore.serialization import CheckpointError, safe_globals

BUILD, REDUCE, NEWOBJ = pickle.BUILD, pickle.REDUCE, pickle.NEWOBJ
PARAMETER = name("torch._utils", "_rebuild_parameter")
OF_TYPE = name("torch._tensor", "_rebuild_from_type_v2")
FACTOR = 500  # of the file's bytes, the most that loading takes: as `load` says


@pytest.fixture(scope="module", autouse=True)
def unchanged():
    """Nothing that the process has in common is another after all of these tests."""
    found = convcore.load(checkpoint(tensor(0, (2,), (1,))))
    assert convcore.equal(found, convcore.arange(2.0))  # and what loads lazily is there
    if "convcore.overrides" in sys.modules:  # as after each test; another file may have a subclass
        sys.modules["convcore.overrides"].uninstall()
    before = world.look()
    yield
    assert world.changes(before, world.look()) == []


def refused(file, message=".", **options):
    with pytest.raises(CheckpointError, match=message) as found:
        convcore.load(file, **options)
    assert isinstance(found.value, (ValueError)) and isinstance(found.value, RuntimeError)
    assert isinstance(found.value, pickle.UnpicklingError)


NAMES = {
    "dtype": name("torch", "float32"),
    "storage class": name("torch", "FloatStorage"),
    "Size": name("torch", "Size"),
    "Counter": name("collections", "Counter"),
    "OrderedDict": ORDERED,
    "Tensor": name("torch", "Tensor"),
    "Parameter": name("torch.nn.parameter", "Parameter"),
    "function": TENSOR,
    "codec": name("_codecs", "encode"),
}
INSTANCES = {
    "tensor": tensor(0, (2,), (1,)),
    "parameter": call(PARAMETER, tensor(0, (2,), (1,)), value(True), value(None)),
    "storage": storage(),
    "Size": call(name("torch", "Size"), value((1, 2))),
    "device": call(name("torch", "device"), value("cpu")),
    "list": value([1]),
    "dict": value({"a": 1}),
    "set": call(name("builtins", "set"), value([1])),
    "part of a state": call(ORDERED) + value({"a": 1}) + BUILD + b"0" + value((1,)),
}
STATES = {
    "attributes": value({"numpy": 3, "numel": 3, "update": 3, "_array": 3, "__defaults__": ()}),
    "slots": value((None, {"numpy": 3, "numel": 3, "update": 3, "_array": 3, "__defaults__": ()})),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", [*NAMES, *INSTANCES])
def test_no_state_is_set_of_what_is_named_or_is_no_container(kind, state):
    made = (NAMES | INSTANCES)[kind]
    refused(checkpoint(made, STATES[state], BUILD), "No state is set of")
    refused(older(made, STATES[state], BUILD), "No state is set of")


def test_ordered_dicts_have_attributes_but_not_their_methods():
    found = convcore.load(checkpoint(call(ORDERED), value({"_metadata": {"a": 1}}), BUILD))
    assert type(found) is OrderedDict and found._metadata == {"a": 1}
    for state in ({"update": 1}, {"__class__": 1}, {1: 2}, (None, {"items": 1}), [1], "ab"):
        refused(checkpoint(call(ORDERED), value(state), BUILD), "attribute")
    assert type(OrderedDict().update) is not int


@pytest.mark.parametrize("attribute", ["_array", "grad", "requires_grad", "__class__", "numpy"])
def test_what_tensors_are_made_of_is_no_attribute(attribute):
    for cls, rebuild in (("Tensor", TENSOR), ("Parameter", PARAMETER)):
        plain = b"".join([storage(), value(0), value((2,)), value((1,)), value(False), value(None)])
        args = plain if cls == "Tensor" else tensor(0, (2,), (1,)) + value(True)
        known = name("torch", "Tensor") if cls == "Tensor" else NAMES["Parameter"]
        given = pickle.MARK + args + pickle.TUPLE
        for state in ({attribute: 3}, (None, {attribute: 3})):
            refused(checkpoint(call(OF_TYPE, rebuild, known, given, value(state))), attribute)
    found = convcore.load(
        checkpoint(call(OF_TYPE, rebuild, known, given, value(({"tag": 3}, {"note": 4}))))
    )
    assert type(found) is nn.Parameter and (found.tag, found.note) == (3, 4)


CALLS = {
    "setattr": call(name("builtins", "setattr"), NAMES["Size"], value("numel"), value(1)),
    "getattr": call(name("builtins", "getattr"), NAMES["Size"], value("numel")),
    "eval": call(name("builtins", "eval"), value("1")),
    "of a function's own": call(name("convcore.serialization.load", "load"), value("a")),
    "torch's hub": call(name("torch.hub", "load"), value("a")),
    "dtype": call(NAMES["dtype"]),
    "storage class": call(NAMES["storage class"], value(2**40)),
    "Tensor": call(NAMES["Tensor"], value(2**40)),
    "Parameter": call(NAMES["Parameter"]),
    "tensor": call(tensor(0, (2,), (1,))),
    "list": call(value([])),
    "bytes": call(value(b"abc")),
    "new": NAMES["Tensor"] + value((2,)) + NEWOBJ,
    "new Size": NAMES["Size"] + value(((2,),)) + NEWOBJ,
    "new dict": ORDERED + value(()) + NEWOBJ,
    "no class": value([]) + value(()) + NEWOBJ,
    "new with options": NAMES["Tensor"] + value(()) + value({}) + pickle.NEWOBJ_EX,
    "no tuple": ORDERED + value([]) + REDUCE,
}


@pytest.mark.parametrize("kind", CALLS)
def test_nothing_but_constructors_is_called(kind):
    refused(checkpoint(CALLS[kind]))


CONSTRUCTORS = {
    "bytearray": ("builtins", "bytearray", [(2**40,), ([256],), (None,), ("a",) * 3]),
    "complex": ("builtins", "complex", [("1",), (1,), (1, "a"), (1, 2, 3)]),
    "set": ("builtins", "set", [("abc",), (3,), ([[]],), ([{}],)]),
    "bytes": ("_codecs", "encode", [(3, "a"), ("\u1234", "utf-8"), (b"a",)]),
    "Counter": ("collections", "Counter", [("abc",), ([1],), ({}, {})]),
    "OrderedDict": ("collections", "OrderedDict", [({"a": 1},), ("ab",), ([1],), ([()],)]),
    "Size": ("torch", "Size", [("ab",), (3,), ((1.5,),)]),
    "parameter": ("torch._utils", "_rebuild_parameter", [(3, True), (None, True, None), ()]),
}


@pytest.mark.parametrize("kind", CONSTRUCTORS)
def test_constructors_check_what_they_get(kind):
    module, of, wrong = CONSTRUCTORS[kind]
    for args in wrong:
        refused(checkpoint(call(name(module, of), *map(value, args))))


def test_names_by_number_are_not_read():
    copyreg.add_extension("builtins", "eval", 240)
    try:
        assert pickle.loads(b"\x80\x02\x82\xf0.") is eval  # which fills copyreg's cache
        for code in (b"\x82\xf0", b"\x83\xf0\x00", b"\x84\xf0\x00\x00\x00"):
            refused(checkpoint(code, call(b"", value("1"))), "opcode 0x8[234] is not read")
    finally:
        copyreg.remove_extension("builtins", "eval", 240)
        vars(copyreg)["_extension_cache"].pop(240, None)


@pytest.mark.parametrize("code", [b"P0\n", b"(i__main__\nA\n", b"(o", b"S'a'\n", b"\x97", b"\x05"])
def test_opcodes_that_data_has_not_are_refused(code):
    refused(checkpoint(code), "opcode 0x.. is not read")


PIDS = {
    "int": value(3),
    "list": value(["storage"]),
    "empty": value(()),
    "kind": value(("what", 1, 2, 3, 4)),
    "class": value(("storage", "FloatStorage", "0", "cpu", 4)),
    "short": value(("storage", "a")),
}
STORAGES = [
    {"key": 0},
    {"key": ["0"]},
    {"key": "../data.pkl"},
    {"key": "9"},
    {"count": -4},
    {"count": 2**70},
    {"count": 4.0},
    {"count": "4"},
    {"count": 3},
    {"count": 5},
    {"kind": "DoubleStorage"},
    {"kind": "Tensor"},
    {"kind": "float32"},
]


@pytest.mark.parametrize("kind", PIDS)
def test_references_to_anything_else_are_refused(kind):
    refused(checkpoint(PIDS[kind], pickle.BINPERSID), "storage")


@pytest.mark.parametrize("of", STORAGES, ids=str)
def test_wrong_storages_are_refused(of):
    refused(checkpoint(tensor(0, (2,), (1,), **of)))
    refused(older(tensor(0, (2,), (1,), **of)))


def test_a_storage_has_one_size_and_dtype():
    pair = storage() + storage(kind="IntStorage") + pickle.TUPLE2
    for make in (checkpoint, older):
        refused(make(pair), "two sizes or dtypes")
    refused(older(storage(), keys=["1"]), "list of storages")
    refused(older(storage(), keys=[]), "list of storages")


def test_a_storage_alone_is_read():
    found = convcore.load(checkpoint(storage()))
    assert list(found[i] for i in range(4)) == [0, 1, 2, 3]


OUTSIDE = [
    (0, (5,), (1,)),
    (1, (4,), (1,)),
    (4, (1,), (1,)),
    (5, (0,), (1,)),
    (0, (2,), (4,)),
    (0, (2, 2), (3, 1)),
    (3, (2,), (-1,)),
    (-1, (2,), (1,)),
    (0, (-1,), (1,)),
    (0, (5,), (2**60,)),  # 5 * 2**62 bytes are 2**62 modulo 2**64
    (0, (3,), (2**62,)),  # and so are these 0
    (0, (2**62, 2**62), (0, 0)),
    (0, (2**80,), (0,)),
    (2**62, (1,), (1,)),
    (0, (1,), (2**62,)),
    (0, (0,), (2**63,)),
    (0, (2,), (1, 1)),
    (0, (2, 2), (1,)),
    (0, (1,) * 65, (1,) * 65),
    (0, 2, 1),
    (0, "2", "1"),
    (0, (2.0,), (1,)),
    (0, (2,), (None,)),
    (None, (2,), (1,)),
]


@pytest.mark.parametrize("where", OUTSIDE, ids=str)
def test_tensors_do_not_reach_outside_their_storage(where):
    refused(checkpoint(tensor(*where)))
    refused(older(tensor(*where)))


def test_every_view_within_a_storage_is_read():
    memory = np.arange(4, dtype=np.float32)
    for size in ((), (0,), (1,), (2,), (4,), (2, 2), (3, 2), (0, 3)):
        for offset in range(6):
            for stride in np.ndindex((5,) * len(size)):
                reach = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
                file = checkpoint(tensor(offset, size, stride))
                if (0 in size and offset <= 4) or (0 not in size and reach < 4):
                    steps = tuple(4 * step for step in stride)
                    expected = np.lib.stride_tricks.as_strided(memory[offset:], size, steps)
                    assert np.array_equal(convcore.load(file).numpy(), expected)
                else:
                    refused(file, "reaches outside its storage")


@pytest.mark.parametrize("flag", [3, None, "yes"])
def test_flags_are_flags(flag):
    refused(checkpoint(tensor(0, (2,), (1,), flag, None)), "requires_grad is bool")
    refused(checkpoint(tensor(0, (2,), (1,), True, None, kind="IntStorage")), "floating point")


BITS = [
    ({}, [1j, 2 + 3j]),
    ({"conj": True}, [-1j, 2 - 3j]),
    ({"neg": True}, [-1j, -2 - 3j]),
    ({"conj": True, "neg": True}, [1j, -2 + 3j]),
    ({"conj": False}, [1j, 2 + 3j]),
]


@pytest.mark.parametrize(("bits", "expected"), BITS, ids=str)
def test_bits_of_tensors_are_resolved(bits, expected):
    memory = {"0": struct.pack("4f", 0, 1, 2, 3)}
    of = {"kind": "ComplexFloatStorage", "count": 2}
    whole, last = tensor(0, (2,), (1,), False, None, bits, **of), tensor(1, (1,), (1,), **of)
    again = tensor(0, (2, 3), (1, 0), False, None, bits, **of)
    found = convcore.load(checkpoint(whole, last, again, pickle.TUPLE3, storages=memory))
    assert found[0].tolist() == expected and found[1].tolist() == [2 + 3j]
    assert found[2].tolist() == [[number] * 3 for number in expected]
    found[0][0] = 7  # tensors of the same bits share memory
    assert found[2].tolist()[0] == [7, 7, 7]


@pytest.mark.parametrize("wrong", [{"what": True}, [1], {3: 4}, "conj"], ids=str)
def test_other_metadata_are_refused(wrong):
    refused(checkpoint(tensor(0, (2,), (1,), False, None, wrong)), "metadata")


def taken(file, **options):
    """Return the most memory that loading took, and the error, if there was one."""
    tracemalloc.start()
    try:
        convcore.load(file, **options)
        error = None
    except CheckpointError as found:
        error = str(found)
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most, error


def bounded(file, message=None):
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = time.perf_counter()
    most, error = taken(file)
    assert most < FACTOR * size + 200_000, f"{most:,} bytes for {size:,}"
    assert (error is None) == (message is None) and (message or "") in (error or "")
    assert time.perf_counter() - start < 10


def deflated(pickle_size=100, storage_size=100, method=zipfile.ZIP_DEFLATED):
    body = value(b"a" * pickle_size) + tensor(0, (2,), (1,), count=storage_size // 4)
    memory = {"0": bytes(storage_size)}
    return checkpoint(body, pickle.TUPLE2, storages=memory, compression=method)


def lying():
    """A file whose archive says that a storage has 400 bytes, which inflates to 40 million."""
    file = deflated(storage_size=40_000_000)
    content = file.getvalue().replace(struct.pack("<I", 40_000_000), struct.pack("<I", 400))
    return io.BytesIO(content.replace(struct.pack("<I", 10_000_000), struct.pack("<I", 100)))


def overlapping():
    """A file of 1,000 records that are one and the same."""
    file, memory = io.BytesIO(), bytes(100_000)
    body = value([1]) + b"".join(storage(str(key), count=25_000) + b"a" for key in range(1000))
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("archive/data.pkl", b"\x80\x02" + body + b".")
        written.writestr("archive/data/0", memory)
        first = written.getinfo("archive/data/0")
        for key in range(1, 1000):
            another = zipfile.ZipInfo(f"archive/data/{key}")
            another.header_offset, another.CRC = first.header_offset, first.CRC
            another.file_size = another.compress_size = len(memory)
            written.filelist.append(another)
    file.seek(0)
    return file


def test_compressed_files_are_read_but_no_bombs():
    bounded(deflated(storage_size=4000))
    bounded(deflated(storage_size=40_000_000), "inflates to more than 16 times its")
    bounded(deflated(pickle_size=3000), "data.pkl inflates to more than the")
    bounded(deflated(method=zipfile.ZIP_BZIP2), "by other means than deflate")
    bounded(lying(), "is damaged")
    bounded(overlapping(), "inflates to more than 16 times its")


SIZED = [b"B", b"X", b"T", b"\x8b", b"\x8d", b"\x8e", b"\x96", b"\x95"]  # with 4 or 8 bytes
SIZED_BY_4 = (b"B", b"X", b"T", b"\x8b")


@pytest.mark.parametrize("code", SIZED)
@pytest.mark.parametrize("make", [checkpoint, older])
def test_sizes_within_a_pickle_take_no_memory(code, make):
    most = struct.pack("<i", 2**31 - 1) if code in SIZED_BY_4 else struct.pack("<q", 2**62)
    bounded(make(code, most, b"abc"), "")


def again(function, args):
    """Push a list of what 20,000 equal calls return."""
    return b"(" + args + b"tqb0" + function + b"qc0(" + b"hchbR" * 20_000 + b"l"


CONJ = value({"conj": True})
GREEDY = {
    "sets": b"(" + pickle.EMPTY_SET * 50_000 + b"l",
    "remembered sets": b"(" + (pickle.EMPTY_SET + pickle.MEMOIZE) * 50_000 + b"l",
    "dicts": b"(" + pickle.EMPTY_DICT * 50_000 + b"l",
    "items": b"(" + b"}NNs" * 20_000 + b"l",
    "marks": b"(" * 50_000,
    "tuples": b"(" + b"N\x85" * 50_000 + b"l",
    "far memo": b"Nr\xff\xff\xff\x7f",
    "ordered": ORDERED + b"q\0(" + b"h\0)R" * 20_000 + b"l",
    "counters": NAMES["Counter"] + b"q\0(" + b"h\0)R" * 20_000 + b"l",
    "tensors": again(TENSOR, storage() + value(0) + b"))" + value(False) + b"N"),
    "conj": again(TENSOR, storage() + value(0) + b"))" + value(False) + b"N" + CONJ),
    "parameters": again(PARAMETER, tensor(0, (), ()) + value(True)),
    "with attributes": again(
        OF_TYPE,
        PARAMETER + NAMES["Parameter"] + b"(" + tensor(0, (), ()) + value(True) + b"t}Vtag\nNs",
    ),
}


MANY = {
    "attributes": call(ORDERED)
    + b"0"
    + value({f"a{i}": i for i in range(5000)})
    + b"qb0("
    + ORDERED
    + b"qc"
    + b"hc)Rhbb" * 5000
    + b"l",
    "Counter": again(NAMES["Counter"], value({i: i for i in range(5000)})),
    "OrderedDict": again(ORDERED, value([(i, i) for i in range(5000)])),
    "set": again(name("builtins", "set"), value(list(range(5000)))),
    "bytes": again(NAMES["codec"], value("a" * 50_000) + value("latin1")),
    "bytearray": again(name("builtins", "bytearray"), value("a" * 50_000) + value("latin1")),
    "Size": again(NAMES["Size"], value(list(range(5000)))),
    "state of tensors": again(
        OF_TYPE,
        PARAMETER
        + NAMES["Parameter"]
        + b"("
        + tensor(0, (), ())
        + value(True)
        + b"t"
        + value((None, {f"a{i}": i for i in range(5000)})),
    ),
}


@pytest.mark.parametrize("kind", MANY)
def test_what_is_written_once_is_not_copied_many_times(kind):
    bounded(checkpoint(MANY[kind]), "its objects are larger than the file")


@pytest.mark.parametrize("kind", GREEDY)
def test_memory_is_bounded_by_the_files_size(kind):
    bounded(checkpoint(GREEDY[kind]), "" if kind == "marks" else None)


def nested(depth, code=b"\x86"):
    """Push a tuple of two of a tuple of two, and so on: 2 ** depth elements for a hash."""
    return value(1) + b"".join(b"q\0h\0" + code for _ in range(depth))


HASHES = {
    "dict": b"}" + nested(60) + b"Ns",
    "items": b"}(" + nested(60) + b"Nu",
    "older dict": b"(" + nested(60) + b"Nd",
    "set": pickle.EMPTY_SET + b"(" + nested(60) + pickle.ADDITEMS,
    "frozenset": b"(" + nested(60) + pickle.FROZENSET,
    "frozensets": b"(" * 60 + nested(9) + b"q\0h\0\x86\x91" * 60,
    "set called": call(name("builtins", "set"), b"]" + nested(60) + b"a"),
    "pairs": call(ORDERED, b"](" + nested(60) + b"N\x86e"),
    "metadata": call(
        TENSOR, storage(), value(0), b"(t(t", value(False), b"N", b"(" + nested(60) + b"Nd"
    ),
    "long int": b"}" + value(1 << 100_000) + b"Ns",
}


def test_messages_cost_what_they_show():
    deep = nested(60)
    for codes in (
        call(TENSOR, storage(), deep, value(()), value(()), value(False), value(None)),
        call(TENSOR, storage(), value(0), deep + b"\x85", value((1,)), value(False), value(None)),
        call(ORDERED) + b"}" + value(10**30) + b"Ns" + BUILD,
        storage(count=1 << 100_000),
        call(deep),
        deep + pickle.BINPERSID,
    ):
        bounded(checkpoint(codes), "")
    bounded(older(storage(), keys=[]), "")
    file = older(storage())
    start = file.getvalue()[: file.getvalue().index(pickle.dumps(["0"], 2))]
    bounded(io.BytesIO(start + b"\x80\x02]" + deep + b"a."), "list of storages")


@pytest.mark.parametrize("kind", HASHES)
def test_keys_cost_what_they_are_long(kind):
    bounded(checkpoint(HASHES[kind]), "")
    assert convcore.load(checkpoint(b"}" + nested(8) + b"Ns"))


WITH_STATE = name("torch._utils", "_rebuild_parameter_with_state")
DEEP = {
    "tuples": b"N" + b"\x85" * 200_000,
    "dicts": b"}qa0" + b"}Nhasqa0" * 50_000 + b"ha",
    "ordered": b"Nqa0" + ORDERED + b"qb0" + b"hb)RNhasqa0" * 50_000 + b"ha",
    "parameters": tensor(0, (), ())
    + b"qb0Nqa0"
    + WITH_STATE
    + b"qc0"
    + b"hc(hb\x88N}X\1\0\0\0ahastRqa0" * 20_000
    + b"ha",
}


def test_deep_files_are_read_or_refused():
    depth = 100_000
    found = convcore.load(checkpoint(b"]" * depth + b"a" * (depth - 1)))
    for _ in range(depth - 1):
        (found,) = found
    assert found == []
    for codes in DEEP.values():
        assert convcore.load(checkpoint(codes)) is not None
    deep = (OF_TYPE + b"q\0" + NAMES["Tensor"] + b"q\1") + b"h\0h\0h\1(" * 2000
    refused(checkpoint(deep))


def test_items_are_added_to_what_the_file_has_made():
    for codes in (b"Na", b"(Ne", b"NNs", b"(NNu", b"(N\x90"):
        for made in [*NAMES.values(), tensor(0, (2,), (1,)), storage(), value(3)]:
            refused(checkpoint(made, codes), "items are added to a")


def test_what_the_user_trusts_keeps_its_state():
    common = defaultdict(list)
    trusted = [(common, "a.common"), (convcore.channels_last, "a.format"), np.dtype, defaultdict]
    with safe_globals(trusted):
        refused(checkpoint(name("a", "common"), b"NNs"), "items are added to a")
        refused(checkpoint(name("a", "common"), value({"b": 1}), BUILD), "No state")
        refused(checkpoint(name("a", "format"), value((None, {"_name": 1})), BUILD), "No state")
        refused(checkpoint(name("numpy", "dtype"), value({"b": 1}), BUILD), "No state")
    assert common == {}


class Trusted:
    __slots__ = ("__dict__", "slot")

    def __init__(self, *args):
        self.args = args


class Restored(Trusted):
    def __setstate__(self, state):
        self.state = state


@pytest.mark.parametrize("make", [b"(", b"\x81"])
def test_what_the_user_trusts_is_made(make):
    here = name("here", "Trusted")
    new = call(here) if make == b"(" else here + b")" + NEWOBJ
    with safe_globals([(Trusted, "here.Trusted"), (Restored, "here.Restored"), np.dtype]):
        objects = b"(" + value("storage") + call(name("numpy", "dtype"), value("O"))
        refused(checkpoint(objects, b"".join(map(value, ("0", "cpu", 2))), b"tQ"), "only storages")
        found = convcore.load(checkpoint(new, value(({"a": 1}, {"slot": 2})), BUILD))
        assert type(found) is Trusted and (found.a, found.slot) == (1, 2)
        for state in ({"__class__": 1}, (None, {"__class__": 1})):
            refused(checkpoint(new, value(state), BUILD), "special attributes")
        restored = name("here", "Restored") + b")" + NEWOBJ
        assert convcore.load(checkpoint(restored, value([3]), BUILD)).state == [3]


def duplicate():
    file = io.BytesIO(pickled.checkpoint(value(1)).getvalue())
    with zipfile.ZipFile(file, "a") as written:
        written.writestr("other/data.pkl", b"\x80\x02N.")
    file.seek(0)
    return file


def cut(file, at):
    return io.BytesIO(file.getvalue()[:at])


WRONG = {
    "no end": (pickled.archive(b"\x80\x02N"), "it ends too early"),
    "nothing on the stack": (
        checkpoint(b"R"),
        "its pickle takes an object that it has not put there",
    ),
    "no mark": (checkpoint(b"Nt"), "is damaged"),
    "memo": (checkpoint(b"h\5"), "Memo value not found"),
    "protocol": (pickled.archive(b"\x80\x09N."), "protocol"),
    "text": (checkpoint(b"X\1\0\0\0\xff"), "a text in it cannot be decoded"),
    "name": (checkpoint(b"cb\xff\nA\n"), "a text in it cannot be decoded"),
    "odd items": (checkpoint(b"}(Nu"), "its pickle takes an object that it has not put there"),
    "unhashable": (checkpoint(b"}]Ns"), "unhashable"),
    "two": (duplicate(), "'data.pkl' is there twice"),
    "half": (cut(checkpoint(value(1)), 200), "it is no whole zip archive"),
    "half, older": (cut(older(storage()), 60), "is damaged"),
    "no storage, older": (older(storage(), storages=b""), "storage 0 is damaged"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("code", [False, True])
def test_what_is_wrong_is_one_error_that_says_it(kind, code):
    file, message = WRONG[kind]
    file.seek(0)
    if not code:
        refused(file, message)
    elif kind != "name":  # Python's unpickler says it in words of its own
        refused(file, weights_only=False)


def test_the_file_is_named(tmp_path):
    (tmp_path / "a.pt").write_bytes(checkpoint(b"R").getvalue())
    with pytest.raises(CheckpointError, match=r"a\.pt' is damaged: its pickle takes"):
        convcore.load(tmp_path / "a.pt")
    (tmp_path / "a.pt").write_bytes(checkpoint(CALLS["eval"]).getvalue())
    with pytest.raises(CheckpointError) as found:
        convcore.load(tmp_path / "a.pt")
    assert "a.pt" in str(found.value)
    with pytest.raises(CheckpointError, match="the BytesIO is damaged"):
        convcore.load(checkpoint(b"R"))


class Failing(io.BytesIO):
    def read(self, *args):
        if self.tell() > 10:
            raise OSError(5, "Input/output error")
        return super().read(*args)


def test_errors_of_the_machine_and_of_the_call_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        convcore.load(tmp_path / "nowhere.pt")
    with pytest.raises(OSError, match="Input/output"):
        convcore.load(Failing(older(storage()).getvalue()))
    for wrong, message in (
        (3, "path or a seekable binary file, got int"),
        (io.StringIO("a"), "text"),
    ):
        with pytest.raises(TypeError, match=message):
            convcore.load(wrong)
    with pytest.raises(ModuleNotFoundError):
        convcore.load(checkpoint(name("no_such_module", "A")), weights_only=False)


def test_containers_of_every_protocol_are_read():
    written = {
        "a": [1, -1, 2**40, 2**100, 1.5, True, None, "x", b"y", (), (1,), (1, 2, 3, 4), []],
        "b": {(1, ("x", 2)): {1, 2}, frozenset([3]): Counter("aab"), 1.5: bytearray(b"ab")},
        "c": OrderedDict([("a", 1 + 2j)]),
    }
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file = io.BytesIO()
        convcore.save(written, file, pickle_protocol=protocol)
        file.seek(0)
        if protocol < 4:  # frozensets have no opcode there: they are called by a name
            with safe_globals([frozenset]):
                assert convcore.load(file) == written
        else:
            assert convcore.load(file) == written
