"""Tensor itself: what it tells, Python's and NumPy's protocols, copies.  `lib` is PyTorch too."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import convcore
from convcore._errors import without_hint
from convcore._tensor import wrap

OLDER_NAMES = {
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "bool": "Bool",
}
DTYPES = list(OLDER_NAMES)


# What it tells


def test_shape_and_sizes(lib):
    x = lib.ones(2, 3, 4)
    assert x.shape == x.size() == (2, 3, 4)
    assert isinstance(x.shape, lib.Size)
    assert (x.size(0), x.size(-1)) == (2, 4)
    assert x.dim() == x.ndim == x.ndimension() == 3
    assert x.numel() == x.nelement() == 24
    assert len(x) == 2
    assert x.stride() == (12, 4, 1)
    assert (x.stride(0), x.stride(-1)) == (12, 1)


@pytest.mark.parametrize("name", ["size", "stride"])
def test_axis_that_is_not_there(lib, name):
    with pytest.raises(IndexError) as error:
        getattr(lib.ones(2, 3), name)(2)
    assert without_hint(error.value) == (
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
    )
    with pytest.raises(IndexError):
        getattr(lib.tensor(1.0), name)(0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_and_bytes(lib, dtype):
    x = lib.zeros(3, dtype=getattr(lib, dtype))
    size = np.dtype(dtype).itemsize
    assert x.dtype is getattr(lib, dtype)
    assert (x.itemsize, x.element_size(), x.nbytes) == (size, size, 3 * size)
    assert x.is_floating_point() == dtype.startswith("float")
    assert x.is_complex() == dtype.startswith("complex")
    assert x.is_signed() == (not dtype.startswith(("u", "b")))


@pytest.mark.parametrize("dtype, name", list(OLDER_NAMES.items()))
def test_type_is_pytorchs_older_name(lib, dtype, name):
    x = lib.zeros(3, dtype=getattr(lib, dtype))
    assert x.type() == f"torch.{name}Tensor"
    assert lib.zeros(3).type(f"torch.{name}Tensor").dtype is getattr(lib, dtype)


def test_type_of_another_dtype(lib):
    x = lib.tensor([1.5])
    assert x.type(lib.int64).tolist() == [1]
    assert x.type(lib.float32) is x
    with pytest.raises(ValueError, match=r"invalid type: 'torch\.FooTensor'"):
        x.type("torch.FooTensor")


def test_device_is_the_cpu(lib):
    x = lib.ones(1)
    assert x.device == lib.device("cpu")
    assert str(x.device) == "cpu"
    assert x.get_device() == -1
    assert not x.is_cuda
    assert not x.is_sparse


def test_memory_and_layout(lib):
    x = lib.ones(2, 3, 4, 5)
    part = x[1]
    assert part.storage_offset() == 60
    assert part.data_ptr() == x.data_ptr() + 60 * 4
    assert x.is_contiguous()
    assert not x.is_contiguous(memory_format=lib.channels_last)
    nhwc = x.to(memory_format=lib.channels_last)
    assert nhwc.is_contiguous(memory_format=lib.channels_last)
    assert not nhwc.is_contiguous()
    assert not x.transpose(0, 1).is_contiguous()


def test_leaf_and_history(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    assert (x.is_leaf, x.grad_fn, x.requires_grad, x.output_nr) == (True, None, True, 0)
    assert not y.is_leaf
    assert y.grad_fn is y.grad_fn
    assert lib.ones(2).is_leaf


def test_attributes_may_be_set_freely(lib):
    x = lib.ones(2)
    x.note = [1]
    x.note.append(2)
    assert x.note == [1, 2]
    assert x.__dict__["note"] == [1, 2]
    with pytest.raises(AttributeError):
        x.other  # noqa: B018
    for name in ("shape", "grad_fn", "dtype", "is_leaf"):
        with pytest.raises(AttributeError):
            setattr(x, name, 3)


def test_tensor_can_be_a_key_and_a_weak_reference_target(lib):
    x, y = lib.ones(2), lib.ones(2)
    assert {x: 1, y: 2}[x] == 1
    assert hash(x) == id(x)
    alive = weakref.ref(x)
    assert alive() is x
    del x
    gc.collect()
    assert alive() is None


# Python's protocols


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_item_is_a_python_number(lib, dtype, shape):
    value = lib.ones(shape, dtype=getattr(lib, dtype)).item()
    kind = bool if dtype == "bool" else {"f": float, "c": complex}.get(dtype[0], int)
    assert type(value) is kind
    assert value == 1


@pytest.mark.parametrize("shape, count", [((2,), 2), ((0,), 0), ((2, 3), 6)])
def test_item_is_of_one_element(lib, shape, count):
    with pytest.raises(RuntimeError) as error:
        lib.ones(shape).item()
    assert (
        without_hint(error.value) == f"a Tensor with {count} elements cannot be converted to Scalar"
    )


def test_tolist_is_nested(lib):
    assert lib.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert lib.tensor([[True], [False]]).tolist() == [[True], [False]]
    assert lib.tensor(2.5).tolist() == 2.5
    assert lib.ones(2, 0).tolist() == [[], []]
    assert lib.ones(2, requires_grad=True).tolist() == [1.0, 1.0]
    assert lib.tensor([1 + 2j]).tolist() == [1 + 2j]


def test_numbers_of_one_element(lib):
    x = lib.tensor([2.7])
    assert (int(x), float(x), complex(x), bool(x)) == (2, x.item(), x.item() + 0j, True)
    assert not lib.tensor([[0.0]])
    assert complex(lib.tensor(1 + 2j)) == 1 + 2j
    assert float(lib.tensor(1 + 0j)) == 1.0
    with pytest.raises(RuntimeError, match="cannot be converted to type double without overflow"):
        float(lib.tensor(1 + 2j))
    for convert in (int, float, complex):
        with pytest.raises(ValueError, match="only one element tensors can be converted to Python"):
            convert(lib.ones(2))


def test_truth_of_many_elements_is_ambiguous(lib):
    with pytest.raises(RuntimeError) as error:
        bool(lib.ones(2))
    assert (
        without_hint(error.value) == "Boolean value of Tensor with more than one value is ambiguous"
    )
    with pytest.raises(RuntimeError) as error:
        bool(lib.ones(0))
    assert without_hint(error.value) == "Boolean value of Tensor with no values is ambiguous"


def test_index_is_of_one_integer(lib):
    assert [10, 20, 30][lib.tensor(1)] == 20
    assert list(range(lib.tensor([2]))) == [0, 1]
    for x in (lib.tensor(1.0), lib.tensor([1, 2])):
        with pytest.raises(TypeError) as error:
            range(x)
        assert without_hint(error.value) == (
            "only integer tensors of a single element can be converted to an index"
        )


def test_len_and_iteration_need_an_axis(lib):
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d tensor"):
        len(lib.tensor(1))
    with pytest.raises(TypeError, match=r"iteration over a 0-d tensor"):
        list(lib.tensor(1))
    assert [x.tolist() for x in lib.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]


def test_contains_compares_elements(lib):
    x = lib.tensor([[1.0, 2.0]])
    assert 2 in x
    assert 3.0 not in x
    assert lib.tensor(1.0) in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in a"):
        "x" in x  # noqa: B015


def test_format_is_of_the_number_or_of_the_text(lib):
    x = lib.tensor(3.14159)
    assert f"{x:.2f}" == "3.14"
    assert f"{lib.tensor(7):03d}" == "007"
    assert f"{lib.tensor([1.0])}" == "tensor([1.])"
    assert f"{x}" == format(x.item(), "")
    with pytest.raises(TypeError):
        f"{lib.tensor([1.0]):.2f}"


def test_legacy_constructor(lib):
    assert lib.Tensor(2, 3).shape == (2, 3)
    assert lib.Tensor([1, 2]).tolist() == [1.0, 2.0]
    assert lib.Tensor([1, 2]).dtype is lib.float32
    assert lib.Tensor().shape == (0,)


# NumPy


def test_numpy_shares_memory(lib):
    x = lib.ones(2, 3)
    array = x.numpy()
    array[0, 0] = 5
    x[1, 1] = 7
    assert x.tolist() == array.tolist() == [[5.0, 1.0, 1.0], [1.0, 7.0, 1.0]]


def test_numpy_of_what_requires_grad(lib):
    x = lib.ones(2, requires_grad=True)
    for convert in (lambda: x.numpy(), lambda: np.asarray(x), lambda: (x * 2).numpy()):
        with pytest.raises(RuntimeError) as error:
            convert()
        assert without_hint(error.value) == (
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    assert x.detach().numpy().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_protocol(dtype):
    x = convcore.ones(2, dtype=getattr(convcore, dtype))
    array = np.asarray(x)
    assert array.dtype == np.dtype(dtype)
    assert array.__array_interface__["data"][0] == x.data_ptr()
    assert np.array(x, copy=True).__array_interface__["data"][0] != x.data_ptr()
    assert np.asarray(x, dtype=np.complex128).dtype == np.complex128
    assert float(np.sum(np.asarray(convcore.ones(3)))) == 3.0


def test_array_protocol_can_refuse_to_copy():
    x = convcore.ones(2)
    assert np.asarray(x, copy=False).__array_interface__["data"][0] == x.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, dtype=np.float64, copy=False)


def test_array_on_the_left_asks_the_tensor():
    x = convcore.ones(2, requires_grad=True)
    y = np.array([2.0, 3.0], np.float32) * x
    assert isinstance(y, convcore.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_wrap_shares_memory():
    array = np.arange(6.0).reshape(2, 3).T
    x = wrap(array)
    assert x.data_ptr() == array.__array_interface__["data"][0]
    assert x.stride() == (1, 3)
    assert x._array is array


# DLPack

DLPACK = ["float32", "float64", "int32", "int64", "uint8", "complex64"]


@pytest.mark.parametrize("dtype", DLPACK)
def test_dlpack_to_numpy_and_back(dtype):
    x = convcore.ones(2, 3, dtype=getattr(convcore, dtype)).t()
    array = np.from_dlpack(x)
    assert array.shape == (3, 2)
    assert array.dtype == np.dtype(dtype)
    assert array.__array_interface__["data"][0] == x.data_ptr()
    back = convcore.from_dlpack(array)
    assert back.data_ptr() == x.data_ptr()
    assert back.dtype is x.dtype
    assert back.stride() == x.stride()


@pytest.mark.parametrize("dtype", DLPACK)
def test_dlpack_to_pytorch_and_back(torch, dtype):
    x = convcore.ones(2, 3, dtype=getattr(convcore, dtype))
    there = torch.from_dlpack(x)
    there[0, 0] = 5
    assert x[0, 0].item() == 5
    assert there.dtype is getattr(torch, dtype)
    back = convcore.from_dlpack(there)
    assert back.data_ptr() == x.data_ptr() == there.data_ptr()
    x = torch.arange(6).view(2, 3).t()
    assert convcore.from_dlpack(x).stride() == (1, 3)
    assert convcore.from_dlpack(x).tolist() == x.tolist()


def test_dlpack_keeps_the_memory_alive():
    x = convcore.ones(1000)
    array = np.from_dlpack(x)
    del x
    gc.collect()
    assert set(array.tolist()) == {1.0}


def test_dlpack_of_what_requires_grad(lib):
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        lib.ones(2, requires_grad=True).__dlpack__()
    assert tuple(lib.ones(2).__dlpack_device__()) == (1, 0)


# Copies

LAYOUTS = {
    "rows": lambda lib: lib.arange(24.0).view(1, 2, 3, 4),
    "channels last": lambda lib: (
        lib.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=lib.channels_last)
    ),
    "transposed": lambda lib: lib.arange(12.0).view(3, 4).t(),
    "0-d": lambda lib: lib.tensor(3.0),
    "empty": lambda lib: lib.ones(2, 0),
}


def pickled(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "duplicate",
    [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))],
    ids=["deepcopy", "pickle"],
)
def test_copies_are_equal_and_apart(lib, layout, duplicate):
    x = LAYOUTS[layout](lib)
    x.requires_grad = True
    other = duplicate(x)
    assert type(other) is type(x)
    assert other.tolist() == x.tolist()
    assert other.numel() == 0 or other.stride() == x.stride()
    assert other.dtype is x.dtype
    assert other.requires_grad
    assert other.is_leaf
    assert other.numel() == 0 or other.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle_keeps_the_dtype(lib, dtype):
    x = lib.ones(2, dtype=getattr(lib, dtype))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        other = pickle.loads(pickle.dumps(x, protocol))
        assert other.dtype is x.dtype
        assert other.tolist() == x.tolist()


@pytest.mark.subprocess
def test_a_process_that_only_unpickles_has_the_methods(run_child):
    program = "import pickle, sys; x = pickle.loads(bytes.fromhex(sys.argv[1])); print(x.sum() + 1)"
    assert run_child(program, pickle.dumps(convcore.ones(3)).hex()) == "tensor(4.)\n"


def test_deepcopy_keeps_the_gradient_apart(lib):
    x = lib.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    other = copy.deepcopy(x)
    assert other.grad.tolist() == [3.0, 3.0]
    assert other.grad is not x.grad
    other.grad.mul_(2)
    assert x.grad.tolist() == [3.0, 3.0]


def test_copies_keep_attributes():
    x = convcore.ones(2)
    x.note = [1]
    deep, shallow, loaded = copy.deepcopy(x), copy.copy(x), pickled(x)
    assert deep.note == shallow.note == loaded.note == [1]
    assert deep.note is not x.note


def test_deepcopy_meets_a_tensor_once(lib):
    x = lib.ones(2)
    first, second = copy.deepcopy([x, x])
    assert first is second
    assert first is not x


def test_shallow_copy_shares_memory(lib):
    x = lib.ones(2)
    other = copy.copy(x)
    assert other is not x
    assert other.data_ptr() == x.data_ptr()


# data


def test_data_shares_memory_outside_the_graph(lib):
    x = lib.ones(2, requires_grad=True)
    x.data.mul_(3)
    x.data[0] = 7.0
    assert x.tolist() == [7.0, 3.0]
    assert not x.data.requires_grad
    assert x._version == 0


def test_data_can_be_replaced(lib):
    x = lib.ones(2, requires_grad=True)
    x.data = lib.tensor([1.0, 2.0, 3.0])
    assert x.shape == (3,)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        x.data = 5


def test_base_of_a_view(lib):
    x = lib.ones(2, 3)
    view = x.view(6)
    assert view._base is x
    assert view.view(3, 2)._base is x
    assert x._base is None
    assert view._is_view()
    assert not x._is_view()
    assert x.clone()._base is None
