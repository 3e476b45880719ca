"""Copies and conversions of tensors: the same as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same, same_error

import convcore

NAMES = ("float16", "float32", "float64", "complex64", "complex128")
NAMES += ("uint8", "int8", "int16", "int32", "int64", "bool")
METHODS = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}

COPIES: dict[str, Callable] = {
    "clone": lambda lib, x, z: x.clone(),
    "clone-function": lambda lib, x, z: lib.clone(x, memory_format=lib.contiguous_format),
    "clone-transposed": lambda lib, x, z: x.transpose(0, 2).clone(),
    "clone-contiguous": lambda lib, x, z: x.mT.clone(memory_format=lib.contiguous_format),
    "clone-slice": lambda lib, x, z: x.transpose(0, 1)[::2].clone(),
    "clone-expanded": lambda lib, x, z: x[:, :1].expand(-1, 3, -1).clone(),
    "clone-expanded-last": lambda lib, x, z: x[..., :1].expand(-1, -1, 5).clone(),
    "contiguous": lambda lib, x, z: (x * 1).contiguous(),
    "contiguous-copies": lambda lib, x, z: x.mT.contiguous(),
    "to-nothing": lambda lib, x, z: (x * 1).to(),
    "to-dtype": lambda lib, x, z: x.to(lib.float32),
    "to-python-type": lambda lib, x, z: x.float().to(float),
    "to-complex": lambda lib, x, z: x.to(dtype=lib.complex128),
    "to-integer": lambda lib, x, z: (x * 10).to(lib.int32),
    "to-device": lambda lib, x, z: (x * 1).to("cpu"),
    "to-device-dtype": lambda lib, x, z: x.to(lib.device("cpu"), lib.float32),
    "to-device-dtype-flags": lambda lib, x, z: x.to("cpu", lib.float32, True, copy=True),
    "to-other": lambda lib, x, z: x.to(lib.zeros(1)),
    "to-copy": lambda lib, x, z: x.to(lib.float64, copy=True),
    "to-copy-positional": lambda lib, x, z: x.to(lib.float64, False, True),
    "to-transposed": lambda lib, x, z: x.mT.to(lib.float32),
    "type": lambda lib, x, z: x.type(lib.float32),
    "type-as": lambda lib, x, z: x.type_as(lib.zeros(1)),
    "cpu": lambda lib, x, z: (x * 1).cpu(),
    "copy": lambda lib, x, z: (x * 1).copy_(z * 2),
    "copy-broadcasts": lambda lib, x, z: (x * 1).copy_(z[0, :1] * 2),
    "copy-converts": lambda lib, x, z: (x.float() * 1).copy_(z * 2),
    "copy-of-itself": lambda lib, x, z: lib.mul(y := x * 2, y).copy_(y),
    "fill": lambda lib, x, z: (x * 1).fill_(2),
    "fill-tensor": lambda lib, x, z: (x * 1).fill_(z[0, 0, 0]),
    "zero": lambda lib, x, z: (x * 1).zero_(),
}


@pytest.mark.parametrize("name", COPIES)
def test_copy_like_torch(torch, rng, seed, name):
    x, z = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4))
    agree(torch, COPIES[name], x, z, seed=seed, strides=True, nodes=3)


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_every_dtype_becomes_every_other_like_torch(torch, source, target):
    values = np.array([0, 1, 2.5, 7.9, 100]).astype(source)
    agree(torch, lambda lib, x: x.to(getattr(lib, target)), values)
    ours, theirs = (
        lib.zeros(5, dtype=getattr(lib, target)).copy_(lib.from_numpy(values))
        for lib in (convcore, torch)
    )
    same(ours, theirs, "copy_")


@pytest.mark.parametrize("method", METHODS)
def test_methods_named_after_dtypes_like_torch(torch, method):
    agree(torch, lambda lib, x: getattr(x, method)(), np.array([-1.5, 0, 2]))
    x = convcore.zeros(2, dtype=getattr(convcore, METHODS[method]))
    assert getattr(x, method)() is x


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_complex_to_real_keeps_the_real_part(torch, rng, seed):
    x = rng.normal(size=3) + 1j * rng.normal(size=3)
    agree(torch, lambda lib, x: x.to(lib.float64) * 2, x, seed=seed)
    agree(torch, lambda lib, x: x.to(lib.complex64).cdouble(), x, seed=seed)


def test_conversion_says_nothing_of_what_does_not_fit():
    big = convcore.tensor([1e30, float("inf"), float("nan")])
    assert big.half().tolist()[0] == float("inf")
    assert big.int().dtype is convcore.int32


def test_nothing_to_do_returns_the_tensor_itself():
    x = convcore.zeros(2, 3, requires_grad=True)
    y = x * 1
    for same_tensor in (
        y.to(convcore.float32),
        y.to("cpu"),
        y.to(np.dtype("float32")),
        y.to(x),
        y.float(),
        y.cpu(),
        y.contiguous(),
        y.type_as(x),
        y.to(memory_format=convcore.contiguous_format),
        y.real,
    ):
        assert same_tensor is y
    assert y.to(convcore.float32, copy=True) is not y


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (1, 3, 4, 1)])
def test_channels_last_like_torch(torch, rng, seed, shape):
    x = rng.normal(size=shape).astype("float32")
    for function in (
        lambda lib, x: x.to(memory_format=lib.channels_last),
        lambda lib, x: x.contiguous(memory_format=lib.channels_last),
        lambda lib, x: x.clone(memory_format=lib.channels_last),
        lambda lib, x: x.to(memory_format=lib.channels_last).clone(),
        lambda lib, x: x.to(memory_format=lib.channels_last).double(),
        lambda lib, x: x.to(memory_format=lib.channels_last).contiguous(),
        lambda lib, x: x.to(memory_format=lib.channels_last).to(lib.float64, copy=True),
        lambda lib, x: x.to(lib.float64, memory_format=lib.channels_last)[:, :2].clone(),
    ):
        agree(torch, function, x, seed=seed, strides=True)


def test_memory_format_needs_its_rank_like_torch(torch):
    for function in (
        lambda lib, x: x.to(memory_format=lib.channels_last),
        lambda lib, x: x.contiguous(memory_format=lib.channels_last),
        lambda lib, x: x.clone(memory_format=lib.channels_last),
    ):
        same_error(torch, function, np.zeros((2, 3)))


def test_other_devices_raise():
    x = convcore.zeros(2)
    for function in (x.cuda, lambda: x.to("cuda"), lambda: x.to("cuda:0"), lambda: x.to(0)):
        with pytest.raises(RuntimeError, match=r"CPU|Cannot access accelerator device"):
            function()


def test_copy_errors_like_torch(torch):
    x = np.zeros((2, 3))
    for function in (
        lambda lib, x: (x * 1).copy_(lib.zeros(2)),
        lambda lib, x: (x * 1).copy_(lib.zeros(3, 2, 3)),
        lambda lib, x: (x * 1).copy_(lib.zeros(1, 2, 3)),
        lambda lib, x: (x * 1).fill_(lib.zeros(2)),
        lambda lib, x: (x * 1).fill_(1j),
        lambda lib, x: x.copy_(x.detach()),
        lambda lib, x: x.zero_(),
    ):
        same_error(torch, function, x)


def test_copy_gives_zeros_to_what_was_there(torch):
    """A leaf behind a tensor that is overwritten has a gradient, of zeros."""
    for lib in (torch, convcore):
        for overwrite in (lambda t: t.zero_(), lambda t: t.fill_(1), lambda t: t.copy_(t.detach())):
            x = lib.ones(3, requires_grad=True)
            y = x * 2
            overwrite(y)
            y.sum().backward()
            assert x.grad.tolist() == [0, 0, 0]


def test_detach_in_place_like_torch(torch):
    for lib in (torch, convcore):
        x = lib.ones(2, requires_grad=True)
        y = (x * 2).detach_()
        assert not y.requires_grad
        assert y.is_leaf
        with pytest.raises(RuntimeError, match="Can't detach views in-place"):
            (x * 2)[0].detach_()


def test_requires_grad_in_place_like_torch(torch):
    for lib in (torch, convcore):
        x = lib.ones(2)
        assert x.requires_grad_() is x
        y = x * 2
        assert y.requires_grad_() is y
        with pytest.raises(RuntimeError, match="leaf"):
            y.requires_grad_(False)
        assert not x.requires_grad_(False).requires_grad
        with pytest.raises(RuntimeError, match="floating point"):
            lib.ones(2, dtype=lib.int64).requires_grad_()


def test_new_tensors_take_the_dtype_like_torch(torch):
    for function in (
        lambda lib, x: x.new_tensor([1, 2]),
        lambda lib, x: x.new_tensor([1.5], dtype=lib.float32),
        lambda lib, x: x.new_zeros(2, 3),
        lambda lib, x: x.new_zeros((2, 3), dtype=lib.int64),
        lambda lib, x: x.new_ones([2]),
        lambda lib, x: x.new_full((2,), 3),
        lambda lib, x: x.new_empty(2, 0),
    ):
        agree(torch, function, np.zeros(2))
    assert convcore.zeros(1).new_ones(2, requires_grad=True).requires_grad


def test_an_expanded_tensor_may_be_filled(torch):
    for lib in (convcore, torch):
        x = lib.zeros(2, 1).expand(2, 3)
        assert x.fill_(2).tolist() == [[2, 2, 2]] * 2 and x._version == 1
        assert x[0].zero_().tolist() == [0, 0, 0] and x[1, 1] == 2
        with pytest.raises(RuntimeError, match="more than one element of the written-to"):
            x.copy_(lib.ones(2, 3))


def test_bfloat16_by_its_method():
    pytest.importorskip("ml_dtypes")
    assert convcore.ones(2).bfloat16().dtype is convcore.bfloat16


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_gradients_flow_through_bfloat16_and_have_the_sources_dtype(torch, source):
    pytest.importorskip("ml_dtypes")
    casts = (
        lambda lib, x: x.to(lib.bfloat16),
        lambda lib, x: x.bfloat16(),
        lambda lib, x: x.type(lib.bfloat16),
        lambda lib, x: x.type_as(lib.ones(1, dtype=lib.bfloat16)),
        lambda lib, x: x.bfloat16().float().bfloat16(),
        lambda lib, x: lib.zeros(3, dtype=lib.bfloat16).copy_(x),
    )
    for cast in casts:
        grads = []
        for lib in (convcore, torch):
            x = lib.ones(3, dtype=getattr(lib, source), requires_grad=True)
            y = cast(lib, x)
            assert y.dtype is lib.bfloat16 and y.requires_grad
            (y.float() * lib.tensor([0.3, 1.7, 3.1])).sum().backward()
            assert x.grad.dtype is x.dtype
            grads.append(x.grad.tolist())
        assert grads[0] == grads[1]


# Conversions of complex numbers c that leave out their imaginary parts.
LOST = {
    "float": lambda m, c: c.float(),
    "to": lambda m, c: c.to(m.float64),
    "type": lambda m, c: c.type(m.int32),
    "type_as": lambda m, c: c.type_as(m.zeros(1)),
    "copy_": lambda m, c: m.zeros(2).copy_(c),
    "setitem": lambda m, c: m.zeros(2).__setitem__(0, c[0]),
    "fill_": lambda m, c: m.zeros(2).fill_(c[0]),
}


@pytest.mark.parametrize("name", LOST)
def test_a_lost_imaginary_part_is_told_once(monkeypatch, name):
    monkeypatch.setattr(convcore.functions.shapes.convert, "_told", [])
    c = convcore.tensor([1 + 2j, 3 - 1j])
    with pytest.warns(UserWarning, match="^Casting complex values to real discards the imaginary"):
        LOST[name](convcore, c)
    LOST[name](convcore, c)  # once in a process, as in PyTorch


def test_conversions_that_lose_nothing_tell_nothing(monkeypatch):
    monkeypatch.setattr(convcore.functions.shapes.convert, "_told", [])
    c = convcore.tensor([1 + 2j, 3 - 1j])
    assert c.bool().all() and c.real.float().dtype is convcore.float32
    x = convcore.ones(2, requires_grad=True)
    (x.to(convcore.complex64) * c).abs().sum().backward()  # whose gradient is cast back
    convcore.zeros(2, dtype=convcore.complex64).copy_(c)
    assert not convcore.functions.shapes.convert._told
