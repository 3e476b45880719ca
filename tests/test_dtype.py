"""Dtypes, sizes and the device: what they print, how types are promoted, what is refused."""

import copy
import itertools
import operator
import pickle

import numpy as np
import pytest

import convcore
from convcore._tensor import dtypes, limits
from convcore._tensor.device import check_device, device
from convcore._tensor.size import Size, trusted

WIDE = ("uint16", "uint32", "uint64")  # which PyTorch promotes to floating dtypes only
NAMES = [str(one).removeprefix("torch.") for one in dtypes.ALL]
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "short": "int16",
    "int": "int32",
    "long": "int64",
}


@pytest.fixture
def default_dtype():
    """Set the default dtype; float32 is back at the end."""
    yield dtypes.set_default_dtype
    dtypes.set_default_dtype(dtypes.float32)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_attributes_equal_pytorch(torch, name):
    ours, theirs = getattr(dtypes, name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == repr(theirs)
    assert str(ours.to_real()) == str(theirs.to_real())
    assert ours.numpy == np.dtype(name)
    assert dtypes.of(ours.numpy) is ours


def test_dtype_to_complex():
    assert dtypes.float32.to_complex() is dtypes.complex64
    assert dtypes.complex128.to_complex() is dtypes.complex128
    with pytest.raises(RuntimeError, match=r"torch\.int32"):
        dtypes.int32.to_complex()


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_dtype_alias_is_the_same_object(alias, name):
    assert getattr(dtypes, alias) is getattr(dtypes, name)


@pytest.mark.parametrize("name", NAMES)
def test_dtype_survives_copies_and_pickles(name):
    one = getattr(dtypes, name)
    assert copy.deepcopy(one) is one
    assert pickle.loads(pickle.dumps(one)) is one


def test_dtype_cannot_be_made():
    with pytest.raises(TypeError, match="cannot create"):
        dtypes.dtype()


@pytest.mark.parametrize("foreign", ["longdouble", ">f4", "U3", "O", "datetime64[s]"])
def test_of_names_a_dtype_that_no_tensor_has(foreign):
    with pytest.raises(TypeError, match=r"can't convert .*float32"):
        dtypes.of(np.dtype(foreign))


def test_as_numpy_takes_every_name_of_a_type():
    assert dtypes.as_numpy(dtypes.int8) == np.int8
    assert dtypes.as_numpy(np.dtype("float64")) == np.float64
    assert dtypes.as_numpy(np.float16) == np.float16
    assert dtypes.as_numpy(float) == np.float64
    assert dtypes.as_numpy(int) == np.int64
    assert dtypes.as_numpy(bool) == np.bool_
    assert dtypes.as_numpy(complex) == np.complex128
    assert dtypes.as_numpy() == np.float32
    with pytest.raises(TypeError, match=r"must be torch\.dtype, not str"):
        dtypes.as_numpy("float32")


def test_default_dtype_decides_what_floats_become(default_dtype):
    default_dtype(dtypes.float64)
    assert dtypes.get_default_dtype() is dtypes.float64
    assert dtypes.as_numpy() == np.float64
    assert dtypes.result_type(1.0) is dtypes.float64
    assert dtypes.result_type(1j) is dtypes.complex128
    assert limits.finfo().dtype == "float64"


@pytest.mark.parametrize("wrong", [dtypes.int32, dtypes.complex64, np.float32, "float32", None])
def test_default_dtype_must_be_floating(wrong):
    with pytest.raises(TypeError, match="only floating-point types are supported"):
        dtypes.set_default_dtype(wrong)


def attempt(function, *arguments):
    """Return a result, or the start of an error's text: up to the names of the dtypes."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        return str(error).partition(", attempted")[0]


@pytest.mark.parametrize("first", NAMES)
def test_promotion_and_casts_equal_pytorch(torch, first):
    for second in NAMES:
        ours = getattr(dtypes, first), getattr(dtypes, second)
        theirs = getattr(torch, first), getattr(torch, second)
        promoted = attempt(dtypes.promote_types, *ours), attempt(torch.promote_types, *theirs)
        assert str(promoted[0]) == str(promoted[1])
        assert dtypes.can_cast(*ours) == torch.can_cast(*theirs)


def test_promotion_without_pytorch():
    promote = dtypes.promote_types
    assert promote(dtypes.int64, dtypes.float16) is dtypes.float16
    assert promote(dtypes.uint8, dtypes.int8) is dtypes.int16
    assert promote(dtypes.float64, dtypes.complex64) is dtypes.complex128
    assert promote(dtypes.bool, dtypes.uint8) is dtypes.uint8
    with pytest.raises(TypeError, match=r"argument 'type2' \(position 2\) must be torch.dtype"):
        promote(dtypes.int8, 2)


OPERANDS = [
    *((name, shape) for name in NAMES if name not in WIDE for shape in ((2,), ())),
    *((kind, None) for kind in (True, 2, 2.5, 1j)),
]


def test_result_type_equals_pytorch(torch):
    def theirs(what, shape):
        return what if shape is None else torch.ones(shape, dtype=getattr(torch, what))

    def ours(what, shape):
        return what if shape is None else np.ones(shape, what)

    for pair in itertools.product(OPERANDS, repeat=2):
        expected = str(attempt(torch.result_type, *(theirs(*operand) for operand in pair)))
        if expected == "torch.complex32":  # there is none here
            expected = "torch.complex64"
        x, y = (ours(*operand) for operand in pair)
        assert str(attempt(dtypes.result_type, x, y)) == expected, pair
        if isinstance(x, np.ndarray) and expected.startswith("torch."):
            assert str(dtypes.of(dtypes.common(x, y))) == expected, pair


def test_result_type_of_several_operands():
    eight, scalar = np.ones(2, np.int8), np.ones((), np.float64)
    assert dtypes.result_type(eight, 3, True) is dtypes.int8
    assert dtypes.result_type(eight, 3, 2.5) is dtypes.float32
    assert dtypes.result_type(eight, scalar, 2.5) is dtypes.float64
    assert dtypes.result_type(scalar, np.float32(2), 1j) is dtypes.complex128
    with pytest.raises(TypeError, match="but got str"):
        dtypes.result_type(eight, "3")
    with pytest.raises(TypeError, match="at least one"):
        dtypes.result_type()


FLOATING = [name for name in NAMES if "float" in name or "comp" in name]


@pytest.mark.parametrize("name", [*FLOATING, "bfloat16"])
def test_finfo_equals_pytorch(torch, name):
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    ours, theirs = limits.finfo(getattr(dtypes, name)), torch.finfo(getattr(torch, name))
    for attribute in ("bits", "dtype", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.resolution == pytest.approx(theirs.resolution)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", [name for name in NAMES if "int" in name])
def test_iinfo_equals_pytorch(torch, name):
    ours, theirs = limits.iinfo(getattr(dtypes, name)), torch.iinfo(getattr(torch, name))
    for attribute in ("bits", "dtype", "max", "min"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == repr(theirs)


def test_limits_of_the_wrong_category_are_refused():
    with pytest.raises(TypeError, match=r"Use torch\.iinfo"):
        limits.finfo(dtypes.int8)
    with pytest.raises(TypeError, match=r"Use torch\.finfo"):
        limits.iinfo(dtypes.float32)
    with pytest.raises(TypeError, match=r"torch\.bool is not supported"):
        limits.iinfo(dtypes.bool)
    assert limits.finfo(dtypes.float32) == limits.finfo(dtypes.complex64)
    assert limits.iinfo(dtypes.int8) != limits.iinfo(dtypes.uint8)


def test_size_stays_a_size():
    size, other = Size([2, 3]), (4,)
    for derived in (size[:1], size + other, other + size, size * 2, 2 * size, size[::-1]):
        assert type(derived) is Size
    assert other + size == (4, 2, 3) and size + other == (2, 3, 4)
    assert type(size[0]) is int
    assert size == (2, 3) and hash(size) == hash((2, 3))
    assert size.numel() == 6 and Size().numel() == 1
    assert type(trusted((2,))) is Size
    first, second = size
    assert (first, second) == (2, 3)


def test_size_prints_as_pytorch():
    assert repr(Size([2, 3])) == str(Size((2, 3))) == "torch.Size([2, 3])"
    assert repr(Size()) == "torch.Size([])"


def test_size_takes_integers_alone():
    assert Size([np.int64(2), True]) == (2, 1)
    assert all(type(n) is int for n in Size([np.int64(2), True]))
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        Size([2, 2.5])
    with pytest.raises(TypeError, match="not iterable"):
        Size(3)
    with pytest.raises(TypeError, match="unsupported operand"):
        operator.add(Size([1]), [2])


def test_size_survives_copies_and_pickles():
    for again in (copy.deepcopy(Size([2, 3])), pickle.loads(pickle.dumps(Size([2, 3])))):
        assert type(again) is Size and again == (2, 3)


def test_device_prints_and_compares_as_pytorch():
    assert repr(device("cpu")) == "device(type='cpu')" and str(device("cpu")) == "cpu"
    assert (
        repr(device("cpu:0")) == "device(type='cpu', index=0)" and str(device("cpu:0")) == "cpu:0"
    )
    assert device("cpu", 0) == device("cpu:0") != device("cpu")
    assert device(device("cpu:1")).index == 1
    assert device("cpu") != "cpu"
    assert len({device("cpu"), device("cpu"), device("cpu:0")}) == 2
    assert pickle.loads(pickle.dumps(device("cpu:0"))) == device("cpu:0")
    with device("cpu") as where:
        assert where.type == "cpu"


@pytest.mark.parametrize("other", ["cuda", "cuda:0", "mps", "xpu:1"])
def test_other_devices_can_be_named_and_not_used(other):
    assert str(device(other)) == other
    with pytest.raises(RuntimeError, match=f"'{other}' is not available: convcore computes on the"):
        check_device(other)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("sofa", "Expected one of cpu, cuda, .* at start of device string: sofa"),
        ("sofa:0", "at start of device string: sofa"),
        ("", "Device string must not be empty"),
        (0, "Cannot access accelerator device when none is available"),
    ],
)
def test_what_is_no_device(wrong, message):
    with pytest.raises(RuntimeError, match=message):
        device(wrong)
    with pytest.raises(RuntimeError, match="must not be negative"):
        device("cpu", -1)


def test_default_device_is_set_for_a_while_or_for_good():
    assert convcore.get_default_device() == device("cpu")
    with device("meta"):
        assert convcore.get_default_device() == device("meta")
        assert convcore.zeros(2).is_meta and not convcore.zeros(2, device="cpu").is_meta
    convcore.set_default_device("meta")
    assert convcore.rand(3).device.type == "meta"
    convcore.set_default_device(None)
    assert convcore.rand(3).device.type == "cpu"
    with pytest.raises(RuntimeError, match="convcore computes on the CPU"):
        convcore.set_default_device("cuda")


@pytest.mark.parametrize("name", ["cpu:x", "cpu:-1", "cpu:", "cpu:01"])
def test_device_name_must_be_well_formed(name):
    with pytest.raises(RuntimeError, match="Invalid device string"):
        device(name)


def test_device_must_be_a_string():
    for wrong in (None, 1.5, True):
        with pytest.raises(TypeError, match="takes a string or a device"):
            device(wrong)
    check_device(None)
    check_device("cpu")
    check_device(device("cpu:0"))
