"""Making tensors: what data becomes, which memory is shared, which strides and errors come out."""

from __future__ import annotations

import re

import numpy as np
import pytest

from convcore import _tensor, random
from convcore._tensor import creation, dtypes, wrap
from convcore._tensor.creation import arguments, legacy, tensor
from convcore._tensor.device import device
from convcore._tensor.size import Size
from convcore._tensor.storage import sparse_coo, strided

F32 = np.float32


def same(ours, theirs) -> bool:
    """Return whether a tensor has PyTorch's dtype, strides and values."""
    array, expected = ours._array, theirs.numpy()
    return (
        array.dtype == expected.dtype
        and array.shape == expected.shape
        and (ours.stride() == theirs.stride() or not array.size)
        and np.array_equal(array, expected, equal_nan=array.dtype.kind in "fc")
    )


DATA = [
    3,
    2.5,
    True,
    1j,
    [],
    [[], []],
    [1, 2.5],
    [True, 2],
    [True, 2.5, 1j],
    (1, 2),
    range(3),
    [[1, 2], [3, 4]],
    [float("nan"), float("inf")],
    [2**70, 1.5],
    -(2**63),
    np.float64(2),
    np.int8(2),
    np.bool_(True),
    [np.float32(2), 1],
    [np.float64(2), 1],
    [np.int8(2), 2],
    [np.int8(2), np.int16(3)],
    [np.float32(2), np.float64(3)],
    np.asfortranarray(np.ones((2, 3))),
    np.ones((4, 6))[:, ::2],
]


@pytest.mark.parametrize("data", DATA, ids=str)
def test_tensor_infers_as_pytorch(torch, data):
    assert same(tensor(data), torch.tensor(data))


@pytest.mark.parametrize("name", ["float16", "float64", "int64", "uint8", "bool", "complex64"])
def test_tensor_casts_as_pytorch(torch, name):
    for data in (3, 2.9, True, [0.0, 1.5], -7, np.array([1.5, 2]), [2**53 + 1], float("nan")):
        try:
            expected = torch.tensor(data, dtype=getattr(torch, name))
        except RuntimeError as error:
            with pytest.raises(RuntimeError, match=re.escape(str(error))):
                tensor(data, dtype=getattr(dtypes, name))
        else:
            assert same(tensor(data, dtype=getattr(dtypes, name)), expected)


def test_tensor_takes_tensors():
    one = tensor(1.5, dtype=dtypes.float64, requires_grad=True)
    assert tensor([one, 2])._array.tolist() == [1.5, 2.0]
    assert tensor([one, 2]).dtype is dtypes.float64
    again = tensor(one)
    assert again.is_leaf and not again.requires_grad
    assert not np.shares_memory(again._array, one._array)
    with pytest.raises(ValueError, match="only one element tensors"):
        tensor([tensor([1, 2]), tensor([3, 4])])


def test_tensor_takes_arrays_in_lists():
    made = tensor([np.array([1, 2], F32), [3, 4]])
    assert made.dtype is dtypes.float32 and made._array.tolist() == [[1, 2], [3, 4]]


def test_tensor_copies_arrays():
    array = np.ones(3, F32)
    made = tensor(array)
    array[0] = 5
    assert made._array.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        ([[1], [2, 3]], ValueError, "expected sequence of length 1 at dim 1 (got 2)"),
        ([[[1, 2], [3, 4]], [[1, 2], [3]]], ValueError, "length 2 at dim 2 (got 1)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
        ([np.ones(1), np.ones(2)], ValueError, "expected sequence of length 1 at dim 1 (got 2)"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        ([b"a"], TypeError, "new(): invalid data type 'bytes'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([None], RuntimeError, "Could not infer dtype of NoneType"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ({1, 2}, RuntimeError, "Could not infer dtype of set"),
        ([2**63], ValueError, "Overflow when unpacking long long"),
        (np.ones(2, ">f4"), ValueError, "byte order"),
        (np.ones(2, np.longdouble), TypeError, "can't convert np.ndarray of type"),
        (np.array(["a"]), TypeError, "can't convert np.ndarray of type <U1"),
    ],
    ids=str,
)
def test_tensor_refuses(data, error, text):
    with pytest.raises(error, match=re.escape(text)):
        tensor(data)


@pytest.mark.parametrize(
    ("number", "name"),
    [(300, "uint8"), (-256, "uint8"), (200, "int8"), (1e10, "int32"), (float("inf"), "int64")],
)
def test_tensor_refuses_numbers_that_do_not_fit(number, name):
    text = f"value cannot be converted to type {name} without overflow"
    with pytest.raises(RuntimeError, match=text):
        tensor([number], dtype=getattr(dtypes, name))
    with pytest.raises(TypeError, match="must be real number, not complex"):
        tensor(1j, dtype=getattr(dtypes, name))


def test_gradients_of_integers_are_refused():
    text = "Only Tensors of floating point and complex dtype can require gradients"
    makers = (
        lambda: tensor([1, 2], requires_grad=True),
        lambda: creation.zeros(3, dtype=dtypes.int32, requires_grad=True),
        lambda: creation.full((2,), 1, requires_grad=True),
        lambda: creation.arange(3, requires_grad=True),
        lambda: creation.ones_like(tensor([1.0]), dtype=dtypes.bool, requires_grad=True),
    )
    for make in makers:
        with pytest.raises(RuntimeError, match=text):
            make()
    for given in ("no", 1, None):
        with pytest.raises(TypeError, match="'requires_grad' must be bool, not "):
            creation.zeros(3, requires_grad=given)
    assert creation.zeros(2, dtype=dtypes.complex64, requires_grad=True).requires_grad
    assert creation.arange(3.0, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda **how: creation.zeros(2, **how),
        lambda **how: creation.ones(2, **how),
        lambda **how: creation.empty(2, **how),
        lambda **how: creation.full((2,), 1, **how),
        lambda **how: creation.eye(2, **how),
        lambda **how: creation.arange(2, **how),
        lambda **how: creation.linspace(0, 1, 2, **how),
        lambda **how: creation.logspace(0, 1, 2, **how),
        lambda **how: creation.zeros_like(tensor([1.0]), **how),
        lambda **how: creation.full_like(tensor([1.0]), 3, **how),
        lambda **how: random.rand(2, **how),
        lambda **how: random.randint(3, (2,), **how),
        lambda **how: random.randn_like(tensor([1.0]), **how),
        lambda **how: random.randperm(2, **how),
    ],
)
def test_the_layout_is_strided_and_pinned_memory_is_memory(make):
    made = make(layout=strided, pin_memory=True)
    assert made.shape == make().shape and made.layout is strided
    with pytest.raises(NotImplementedError, match=r"layout must be torch.strided, got torch.sp"):
        make(layout=sparse_coo)


def test_unknown_devices_are_refused():
    made = tensor([1.0])
    makers = (
        lambda where: tensor([1.0], device=where),
        lambda where: creation.as_tensor(made, device=where),
        lambda where: creation.asarray(made, device=where),
        lambda where: creation.zeros(2, device=where),
        lambda where: creation.full((2,), 1, device=where),
        lambda where: creation.eye(2, device=where),
        lambda where: creation.linspace(0, 1, 2, device=where),
        lambda where: creation.zeros_like(made, device=where),
        lambda where: legacy.legacy_tensor(2, device=where),
    )
    for make in makers:
        make("cpu")
        make(device("cpu"))
        with pytest.raises(RuntimeError, match="convcore computes on the CPU"):
            make("cuda")


def test_from_numpy_shares_memory():
    array = np.ones((2, 3))
    assert creation.from_numpy(array)._array is array
    flipped = array[::-1]
    assert np.shares_memory(creation.from_numpy(flipped)._array, array)
    subclass = creation.from_numpy(np.ma.masked_array(array))._array
    assert type(subclass) is np.ndarray and np.shares_memory(subclass, array)
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        creation.from_numpy([1])
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got numpy.float32\)"):
        creation.from_numpy(F32(1))


def test_as_tensor_shares_what_it_can():
    array, made = np.ones(3, F32), tensor([1.0])
    assert creation.as_tensor(array)._array is array
    assert creation.as_tensor(array, dtype=dtypes.float32)._array is array
    assert creation.as_tensor(array, dtype=dtypes.int8).dtype is dtypes.int8
    assert creation.as_tensor(made) is made
    assert creation.as_tensor([1, 2]).dtype is dtypes.int64


def test_asarray_obeys_copy():
    array, made = np.ones(3, F32), tensor([1.0])
    assert creation.asarray(array)._array is array
    assert creation.asarray(made) is made
    assert not np.shares_memory(creation.asarray(array, copy=True)._array, array)
    assert creation.asarray(array, dtype=dtypes.int8).dtype is dtypes.int8
    shared = creation.asarray(array, copy=False, requires_grad=True)
    assert shared._array is array and shared.requires_grad
    with pytest.raises(ValueError, match="can't alias arbitrary sequence"):
        creation.asarray([1], copy=False)
    with pytest.raises(ValueError, match=r"can't alias tensor with dtype 'torch\.float32'"):
        creation.asarray(array, dtype=dtypes.int8, copy=False)


def test_asarray_keeps_the_graph_unless_told_not_to():
    made = tensor([1.0, 2.0], requires_grad=True) * 2
    assert creation.asarray(made, copy=True).grad_fn is not None
    for copy in (None, True):
        cut = creation.asarray(made, copy=copy, requires_grad=False)
        assert cut.grad_fn is None and not cut.requires_grad
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        creation.asarray(np.float32(3), copy=False)


def test_asarray_reads_memory_as_numbers():
    memory = bytearray(np.array([1, 2], "i4").tobytes())
    found = creation.asarray(memory, dtype=dtypes.int32)
    found += 1
    assert np.frombuffer(memory, "i4").tolist() == found.tolist() == [2, 3]
    for kind in ("f2", "c8"):
        array = np.ones(2, kind)
        shared = creation.asarray(memoryview(array), dtype=dtypes.of(array.dtype), copy=False)
        assert np.shares_memory(shared._array, array)


@pytest.mark.parametrize("of", [creation.asarray, creation.from_dlpack])
def test_a_dlpack_capsule_shares_memory_and_is_writable(of):
    made = creation.zeros(3)
    of(made.__dlpack__())[1] = 5
    assert made.tolist() == [0, 5, 0]


def test_from_dlpack_shares_memory():
    array = np.arange(3.0)
    assert np.shares_memory(creation.from_dlpack(array)._array, array)
    assert np.shares_memory(creation.from_dlpack(wrap(array))._array, array)
    with pytest.raises(TypeError, match="__dlpack__, but got list"):
        creation.from_dlpack([1])


def test_from_dlpack_takes_pytorch(torch):
    theirs = torch.arange(3.0)
    ours = creation.from_dlpack(theirs)
    theirs[0] = 7
    assert ours._array.tolist() == [7, 1, 2]


def test_sizes_are_ints_or_one_sequence():
    for make in (creation.zeros, creation.ones, creation.empty):
        shapes = [
            make(2, 3).shape,
            make((2, 3)).shape,
            make([2, 3]).shape,
            make(Size([2, 3])).shape,
            make(size=(2, 3)).shape,
            make(np.int64(2), tensor(3)).shape,
        ]
        assert shapes == [(2, 3)] * 6
        assert make(()).shape == make([]).shape == ()
        assert make(0, 2).shape == (0, 2)
        assert make(2).dtype is dtypes.float32
    assert creation.zeros(2)._array.tolist() == [0, 0]
    assert creation.ones(2, dtype=int)._array.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("sizes", "error", "text"),
    [
        ((), TypeError, 'ones() missing 1 required positional arguments: "size"'),
        ((-1,), RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
        ((2, -3), RuntimeError, "Trying to create tensor with negative dimension -3: [2, -3]"),
        ((2.5,), TypeError, "argument 'size' (position 1) must be tuple of ints, not float"),
        (((2.5,),), TypeError, "but found element of type float at pos 0"),
        (((2,), 3), TypeError, "ones() takes 1 positional argument but 2 were given"),
        ((None,), TypeError, "must be tuple of ints, not NoneType"),
        ((True,), TypeError, "must be tuple of ints, not bool"),
    ],
)
def test_sizes_that_are_none_are_refused(sizes, error, text):
    with pytest.raises(error, match=re.escape(text)):
        creation.ones(*sizes)


def test_dtype_must_be_one():
    with pytest.raises(TypeError, match=r"'dtype' must be torch\.dtype, not str"):
        creation.zeros(2, dtype="float32")


NUMBERS = [1, 1.0, True, 1j, -1, 2.5, 300, 2**40, 1e300, 70000, float("inf"), float("nan"), 1 + 0j]
NAMES = [None, "float16", "float32", "int32", "uint8", "int8", "bool", "complex64"]


@pytest.mark.parametrize("name", NAMES)
def test_full_equals_pytorch(torch, name):
    for number in NUMBERS:
        kind = {} if name is None else {"dtype": getattr(dtypes, name)}
        their_kind = {} if name is None else {"dtype": getattr(torch, name)}
        try:
            expected = torch.full((2,), number, **their_kind)
        except RuntimeError:
            with pytest.raises(RuntimeError, match="value cannot be converted to type"):
                creation.full((2,), number, **kind)
        else:
            assert same(creation.full((2,), number, **kind), expected), number


def test_full_takes_a_tensor_without_axes():
    assert creation.full([2], tensor(3))._array.tolist() == [3, 3]
    assert creation.scalar_tensor(3).dtype is dtypes.float32
    with pytest.raises(TypeError, match="argument 'fill_value' must be Number, not Tensor"):
        creation.full((2,), tensor([3.0]))
    with pytest.raises(TypeError, match="must be tuple of ints, not int"):
        creation.full(2, 1)


def test_eye_equals_pytorch(torch):
    for sizes in [(2,), (2, 3), (3, 2), (0,)]:
        assert same(creation.eye(*sizes), torch.eye(*sizes))
    assert creation.eye(2, dtype=dtypes.bool).dtype is dtypes.bool
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        creation.eye(-1)
    with pytest.raises(RuntimeError, match="m must be greater or equal to 0, got -3"):
        creation.eye(2, -3)
    with pytest.raises(TypeError, match="argument 'n' must be int, not float"):
        creation.eye(2.5)


RANGES = [
    *((5,), (5.0,), (1, 5), (1, 5, 2), (1, 5, 0.5), (5, 1, -1), (0, 1, 0.25), (2.5,), (True,)),
    *((3, 3), (-3, 3), (0, 10, 3), (10, 0, -3), (0.5, 5.5, 1.5), (2**62, 2**62 + 3)),
]


@pytest.mark.parametrize("limits", RANGES)
def test_arange_equals_pytorch(torch, limits):
    assert same(creation.arange(*limits), torch.arange(*limits))
    names = ("float16", "float64", "int64", "int32", "int16")
    for name in names if abs(limits[0]) < 2**60 else ():
        try:
            expected = torch.arange(*limits, dtype=getattr(torch, name))
        except (RuntimeError, ValueError) as error:  # a step of less than one is none for integers
            with pytest.raises(RuntimeError, match=str(error)):
                creation.arange(*limits, dtype=getattr(dtypes, name))
        else:
            assert same(creation.arange(*limits, dtype=getattr(dtypes, name)), expected), name


def test_arange_without_pytorch():
    assert creation.arange(end=3)._array.tolist() == [0, 1, 2]
    assert creation.arange(1, end=3)._array.tolist() == [1, 2]
    assert creation.arange(start=1, end=3)._array.tolist() == [1, 2]
    assert creation.arange(tensor(3.0)).dtype is dtypes.float32


@pytest.mark.parametrize(
    ("limits", "error", "text"),
    [
        ((5, 1), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
        ((1, 5, 0), RuntimeError, "step must be nonzero"),
        ((float("inf"),), RuntimeError, "unsupported range: 0 -> inf"),
        (("a",), TypeError, "must be Number, not str"),
        ((), TypeError, "must be Number, not NoneType"),
        ((1j,), TypeError, "must be Number, not complex"),
    ],
)
def test_arange_refuses(limits, error, text):
    with pytest.raises(error, match=text):
        creation.arange(*limits)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 64])
def test_spaced_numbers_equal_pytorch(torch, rng, steps):
    for _ in range(20):
        start, end = (round(float(limit), 2) for limit in rng.normal(0, 30, 2))
        ours, expected = creation.linspace(start, end, steps), torch.linspace(start, end, steps)
        np.testing.assert_allclose(ours._array, expected.numpy(), rtol=0, atol=2e-7 * 100)
        assert ours.dtype is dtypes.float32
        ours = creation.linspace(start, end, steps, dtype=dtypes.int64)
        # PyTorch may or may not round between the product and the sum, before it cuts.
        expected = torch.linspace(start, end, steps, dtype=torch.int64).numpy()
        np.testing.assert_allclose(ours._array, expected, rtol=0, atol=1)
        powers = creation.logspace(start / 10, end / 10, steps, 3.0)._array
        expected = torch.logspace(start / 10, end / 10, steps, 3.0).numpy()
        np.testing.assert_allclose(powers, expected, rtol=1e-6)


def test_linspace_edges():
    assert creation.linspace(0, 1, 3)._array.tolist() == [0, 0.5, 1]
    assert creation.linspace(3, 9, 1)._array.tolist() == [3]
    assert creation.linspace(0, 2j, 3)._array.tolist() == [0, 1j, 2j]
    assert creation.logspace(0, 2, 3)._array.tolist() == [1, 10, 100]
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        creation.linspace(0, 1, -1)
    with pytest.raises(NotImplementedError, match="bool"):
        creation.linspace(0, 1, 2, dtype=dtypes.bool)


def layouts():
    """Yield arrays whose memory order a tensor made like them must keep, or cannot."""
    base = np.ones((2, 3, 4, 5), F32)
    yield base
    yield base.transpose(0, 3, 1, 2)  # channels_last
    yield base.transpose(3, 1, 0, 2)
    yield np.ones((2, 3, 4, 5, 6), F32).transpose(0, 4, 1, 2, 3)
    yield np.ones((1, 1, 1, 3), F32).transpose(0, 3, 1, 2)
    yield np.ones((2, 1, 1, 3), F32).transpose(0, 3, 1, 2)
    yield np.ones((2, 6), F32)[:, ::2]
    yield np.ones((4, 6), F32)[:, ::2].T
    yield np.ones((4, 2, 2), F32)[::2].transpose(2, 0, 1)
    yield np.broadcast_to(F32(1), (3, 4))
    yield np.broadcast_to(np.ones((4, 1, 2), F32), (4, 3, 2))
    yield np.broadcast_to(np.ones((1, 3, 1, 3), F32).transpose(0, 3, 2, 1), (3, 3, 3, 3))
    yield np.ones((), F32)


def test_tensors_like_another_have_pytorchs_strides(torch):
    for array in layouts():
        ours = wrap(array)
        theirs = torch.ones(1000).as_strided(array.shape, ours.stride())
        assert same(creation.zeros_like(ours), torch.zeros_like(theirs))
        assert same(
            creation.ones_like(ours, dtype=dtypes.float64),
            torch.ones_like(theirs, dtype=torch.float64),
        )
        assert creation.empty_like(ours).stride() == torch.empty_like(theirs).stride()
        assert same(
            creation.full_like(ours, 2.5, memory_format=_tensor.contiguous_format),
            torch.full_like(theirs, 2.5, memory_format=torch.contiguous_format),
        )


def test_memory_format_can_be_chosen():
    image = creation.zeros(2, 3, 4, 5)
    last = creation.empty(2, 3, 4, 5, memory_format=_tensor.channels_last)
    assert last.stride() == (60, 1, 15, 3)
    assert creation.ones_like(last).stride() == last.stride()
    assert creation.ones_like(image, memory_format=_tensor.channels_last).stride() == last.stride()
    volume = creation.empty(2, 3, 4, 5, 6, memory_format=_tensor.channels_last_3d)
    assert volume.stride() == (360, 1, 90, 18, 3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        creation.empty(2, 3, memory_format=_tensor.channels_last)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        creation.empty(2, 3, memory_format=_tensor.preserve_format)
    with pytest.raises(TypeError, match="argument 'input' must be Tensor, not list"):
        creation.zeros_like([1])


def test_legacy_constructor_tells_sizes_from_data():
    make = legacy.legacy_tensor
    assert make().shape == (0,)
    assert make(2, 3).shape == make(Size([2, 3])).shape == (2, 3)
    assert make(3).shape == make(np.int64(3)).shape == (3,)
    assert make((2, 3))._array.tolist() == make([2, 3])._array.tolist() == [2, 3]
    assert make([True]).dtype is make(np.ones(2)).dtype is dtypes.float32
    shared = tensor([1, 2])
    assert make(shared)._array is shared._array and make(shared).dtype is dtypes.int64


@pytest.mark.parametrize(
    ("argument", "error", "text"),
    [
        (2.5, TypeError, "data must be a sequence (got float)"),
        (True, TypeError, "data must be a sequence (got bool)"),
        (None, TypeError, "data must be a sequence (got NoneType)"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        (-1, RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    ],
)
def test_legacy_constructor_refuses(argument, error, text):
    with pytest.raises(error, match=re.escape(text)):
        legacy.legacy_tensor(argument)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Float", "float32"),
        ("Double", "float64"),
        ("Half", "float16"),
        ("Long", "int64"),
        ("Int", "int32"),
        ("Short", "int16"),
        ("Byte", "uint8"),
        ("Char", "int8"),
        ("Bool", "bool"),
    ],
)
def test_legacy_types_stand_for_a_dtype(kind, name):
    legacy = getattr(creation, f"{kind}Tensor")
    made = legacy([1, 0])
    assert made._array.dtype == name and made.type() == f"torch.{kind}Tensor"
    assert legacy(2, 3).shape == (2, 3)
    assert isinstance(made, legacy) and not isinstance(3, legacy)
    others = [creation.FloatTensor, creation.LongTensor]
    assert [isinstance(made, other) for other in others] == [kind == "Float", kind == "Long"]
    assert repr(legacy) == f"<class 'torch.{kind}Tensor'>"
    assert legacy.dtype is getattr(dtypes, name)
    with pytest.raises(TypeError, match="expected a tensor of"):
        legacy(tensor([1j]))


def test_legacy_types_cut_fractions_and_wrap():
    assert creation.LongTensor([1.5, 2])._array.tolist() == [1, 2]
    assert creation.ByteTensor([1, -1])._array.tolist() == [1, 255]
    with pytest.raises(RuntimeError, match="type uint8 without overflow"):
        creation.ByteTensor([300])


def test_a_buffer_shares_its_memory_with_the_tensor():
    buffer = bytearray(b"\x01\x00\x02\x00\x03\x00")
    found = creation.frombuffer(buffer, dtype=dtypes.int16)
    assert found._array.tolist() == [1, 2, 3]
    buffer[0] = 9
    assert found._array[0] == 9
    part = creation.frombuffer(buffer, dtype=dtypes.uint8, count=2, offset=2)
    assert part._array.tolist() == [2, 0]
    numbers = np.ones(2, "f")
    assert creation.frombuffer(numbers, dtype=dtypes.float32, requires_grad=True).requires_grad
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        creation.frombuffer(b"12", dtype=dtypes.int16)


BUFFERS = {
    "none": ([1, 2], {}),
    "empty": (bytearray(), {}),
    "odd": (bytearray(3), {}),
    "odd rest": (bytearray(4), {"offset": 1}),
    "no count": (bytearray(4), {"count": 0}),
    "much": (bytearray(4), {"count": 3}),
    "far": (bytearray(4), {"offset": 4}),
    "before": (bytearray(4), {"offset": -2}),
}


@pytest.mark.parametrize("case", BUFFERS)
def test_frombuffer_refuses_what_pytorch_refuses(torch, case):
    buffer, where = BUFFERS[case]
    with pytest.raises(ValueError) as expected:
        torch.frombuffer(buffer, dtype=torch.int16, **where)
    with pytest.raises(ValueError, match=re.escape(str(expected.value))):
        creation.frombuffer(buffer, dtype=dtypes.int16, **where)


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.zeros(2**62),
        lambda lib: lib.ones(2**31, 2**31),
        lambda lib: lib.full((2**62,), 1.0),
        lambda lib: lib.empty(2**62, device="meta"),
        lambda lib: lib.rand(2**62),
        lambda lib: lib.randint(3, (2**62,)),
        lambda lib: lib.randperm(2**62),
        lambda lib: lib.normal(0.0, 1.0, (2**62,)),
        lambda lib: lib.arange(2**62),
        lambda lib: lib.linspace(0, 1, 2**62),
        lambda lib: lib.Tensor(2**62),
        lambda lib: lib.ones(1).new_zeros(2**62),
        lambda lib: lib.nn.Linear(2**31, 2**31),
    ],
)
def test_sizes_for_which_no_memory_is_large_enough_are_a_runtime_error(lib, make):
    with pytest.raises(RuntimeError, match=r"Storage size calculation overflowed with sizes=\["):
        make(lib)


def test_larger_results_than_any_memory_are_a_runtime_error(lib):
    half = lib.zeros(1, dtype=lib.bool).expand(2**62)
    for make in (
        lambda: lib.eye(2**62),
        lambda: lib.cat([half] * 2),
        lambda: lib.hstack([half] * 3),
        lambda: lib.stack([half] * 4),
        lambda: half + 1,
        lambda: half.exp(),
        lambda: half.float(),
        lambda: half.argsort(),
        lambda: half.unfold(0, 2**61, 1).contiguous(),
        lambda: lib.zeros(1, 1).expand(2**40, 1) + lib.zeros(1, 1).expand(1, 2**40),
    ):
        with pytest.raises(RuntimeError):
            make()


def test_only_errors_of_sizes_are_said_to_be_of_sizes():
    def make(sizes):
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        arguments.allocated(make, (1,))
