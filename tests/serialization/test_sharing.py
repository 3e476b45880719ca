"""Copies and files share storages as PyTorch's do, and are as small."""

import copy
import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import convcore

# Two views of one memory, as functions of a library and a vector of 24 numbers.
PAIRS = {
    "part": lambda m, x: (x, x[:2]),
    "part_first": lambda m, x: (x[:2], x),
    "parts_that_overlap": lambda m, x: (x[:10], x[5:15]),
    "matrix": lambda m, x: (x, x.view(4, 6)),
    "transposed": lambda m, x: (x.view(4, 6), x.view(4, 6).t()),
    "columns": lambda m, x: (x.view(4, 6)[:, ::2], x.view(4, 6)[:, 1:3]),
    "expanded": lambda m, x: (x[1:2].expand(1000, 1000), x),
    "windows": lambda m, x: (x.unfold(0, 5, 1), x[3:9]),
    "one_element": lambda m, x: (x[3], x[2:5]),
    "channels_last": lambda m, x: (x.view(1, 2, 3, 4).permute(0, 3, 1, 2), x[20:]),
    "buffer": lambda m, x: (m.nn.Buffer(x), x[3:]),
    "apart": lambda m, x: (x[:4], x[4:]),
    "interleaved": lambda m, x: (x[::2], x[1::2]),
}
OF_TWO_DTYPES = {
    "bits": lambda m, x: (x, x.view(m.int32)),
    "bytes": lambda m, x: (x[2:5], x.view(m.uint8)[9:]),
    "complex": lambda m, x: (x.view(m.complex64), x[3:6]),
}


def deep_copied(library, pair):
    return copy.deepcopy(pair)


def through(pair, save, load):
    file = io.BytesIO()
    save(pair, file)
    file.seek(0)
    return load(file)


def saved(library, pair):
    return through(pair, library.save, library.load)


def check(make, copied, library=convcore):
    """Check that what is written to one tensor is seen by the other as by the original."""
    for written in (0, 1):
        pair = make(library, library.arange(24.0))
        found = copied(library, pair)
        for one, other in zip(found, pair, strict=True):
            assert one.tolist() == other.tolist()
            assert [step == 0 for step in one.stride()] == [step == 0 for step in other.stride()]
        for tensors in (pair, found):
            array = np.asarray(tensors[written].detach())
            array[...] = 3
        assert found[0].tolist() == pair[0].tolist() and found[1].tolist() == pair[1].tolist()


@pytest.mark.parametrize("name", PAIRS | OF_TWO_DTYPES)
@pytest.mark.parametrize("copied", [deep_copied, saved])
def test_views_stay_views(name, copied):
    check((PAIRS | OF_TWO_DTYPES)[name], copied)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("older", [False, True])
def test_views_in_pytorchs_files_stay_views(torch, name, older):
    def copied(library, pair):
        save = lambda obj, file: torch.save(  # noqa: E731
            obj, file, _use_new_zipfile_serialization=not older
        )
        return through(pair, save, convcore.load)

    check(PAIRS[name], copied, torch)


@pytest.mark.parametrize("name", PAIRS | OF_TWO_DTYPES)
def test_pytorch_reads_views_as_views(torch, name):
    def copied(library, pair):
        return through(pair, convcore.save, torch.load)

    check((PAIRS | OF_TWO_DTYPES)[name], copied)


def size_of(library, obj):
    file = io.BytesIO()
    library.save(obj, file)
    return file.tell()


@pytest.mark.parametrize("name", PAIRS)
def test_files_are_no_larger_than_pytorchs(torch, name):
    sizes = [size_of(m, PAIRS[name](m, m.arange(24.0))) for m in (convcore, torch)]
    assert sizes[0] <= sizes[1] + 200


@pytest.mark.parametrize("name", ["expanded", "windows", "columns"])
def test_a_pickle_has_each_element_once(torch, name):
    sizes = []
    for m in (convcore, torch):
        tensor = PAIRS[name](m, m.arange(24.0))[0]
        found = pickle.loads(pickle.dumps(tensor))
        assert found.tolist() == tensor.tolist()
        sizes.append(len(pickle.dumps(tensor)))
    assert sizes[0] <= sizes[1] + 200


def test_a_module_is_copied_with_its_buffers_views(lib):
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(4))
            self.register_buffer("mean", lib.zeros(4))
            self.register_buffer("first", self.mean[:2])
            self.head = self.weight.data[:2]  # a parameter's copy is its own, as PyTorch's

    net = copy.deepcopy(Net())
    net.mean.fill_(7), net.weight.data.fill_(7)
    assert net.first.tolist() == [7, 7] and net.head.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_are_copied_and_saved_with_their_tensors(torch):
    for m in (convcore, torch):
        x = m.arange(4.0)
        for tensor, storage in (copy.deepcopy((x[1:], x.untyped_storage())),
                                through((x[1:], x.storage()), m.save, m.load)):  # fmt: skip
            tensor.fill_(7)
            assert list(m.tensor([]).set_(storage, 0, (4,), (1,)).tolist()) == [0, 7, 7, 7]
    alone = through([x.untyped_storage()], torch.save, convcore.load)[0]
    found = through([alone], convcore.save, torch.load)[0]
    assert bytes(found) == bytes(x.untyped_storage())


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_a_storage_among_tensors_of_another_type_is_refused(lib):
    x = lib.arange(4.0)
    with pytest.raises((pickle.PicklingError, RuntimeError)):
        lib.save([x.storage(), x.view(lib.int32)], io.BytesIO())


def test_offsets_that_suit_no_storage_are_refused():
    memory = np.zeros(33, np.uint8)
    one = convcore.from_numpy(memory[:32].view(np.float64))
    other = convcore.from_numpy(memory[1:].view(np.float64))
    with pytest.raises(pickle.PicklingError, match=r"clone\(\) one"):
        convcore.save([one, other], io.BytesIO())


def test_negative_steps_are_saved_as_values():
    array = np.arange(4.0)
    written = [convcore.from_numpy(array), convcore.from_numpy(array[::-1])]
    found = through(written, convcore.save, convcore.load)
    assert [x.tolist() for x in found] == [[0, 1, 2, 3], [3, 2, 1, 0]]


NESTED = {
    "list": lambda inner: [inner],
    "tuple": lambda inner: (inner, 1, 2, 3),
    "dict": lambda inner: {"a": inner},
    "ordered": lambda inner: OrderedDict(a=inner),
    "pair": lambda inner: (inner, inner),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("protocol", [2, 4])
def test_any_depth_is_saved(kind, protocol, torch):
    obj = convcore.ones(2)
    for _ in range(3000):
        obj = NESTED[kind](obj)
    file = io.BytesIO()
    convcore.save(obj, file, pickle_protocol=protocol)
    for load in [convcore.load, torch.load] if protocol == 2 else [convcore.load]:
        file.seek(0)
        found = load(file)
        for _ in range(3000):
            found = found["a"] if isinstance(found, dict) else found[0]
        assert found.tolist() == [1, 1]


def test_deeply_nested_modules_are_saved():
    net = convcore.nn.Linear(1, 1)
    for _ in range(500):
        net = convcore.nn.Sequential(net)
    found = through(net, convcore.save, lambda file: convcore.load(file, weights_only=False))
    for _ in range(500):
        found, net = found[0], net[0]
    assert found.weight.tolist() == net.weight.tolist()
