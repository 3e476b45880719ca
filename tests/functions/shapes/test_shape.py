"""Other shapes of a tensor: the same as PyTorch's, in values, gradients, strides and nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from against_torch import agree, same_error
from shapes import agree_of_other_layouts, agree_of_shapes

import convcore

SAME: dict[str, Callable] = {
    "view": lambda lib, x: x.view(6, 4),
    "view-infer": lambda lib, x: x.view(-1, 8),
    "view-list": lambda lib, x: x.view([3, 8]),
    "view-size": lambda lib, x: x.view(lib.Size([24])),
    "view-as": lambda lib, x: x.view_as(lib.zeros(4, 6)),
    "view-same": lambda lib, x: x.view(2, 3, 4),
    "reshape": lambda lib, x: x.reshape(4, 6),
    "reshape-function": lambda lib, x: lib.reshape(x, (4, -1)),
    "reshape-copies": lambda lib, x: x.transpose(0, 2).reshape(6, 4),
    "reshape-of-permuted-view": lambda lib, x: x.permute(2, 0, 1).reshape(4, 6),
    "reshape-as": lambda lib, x: x.reshape_as(lib.zeros(24)),
    "flatten": lambda lib, x: x.flatten(),
    "flatten-1": lambda lib, x: lib.flatten(x, 1),
    "flatten-range": lambda lib, x: x.flatten(0, 1),
    "flatten-one-axis": lambda lib, x: (x * 1).flatten(1, 1),
    "flatten-0d": lambda lib, x: x[0, 0, 0].flatten(),
    "ravel": lambda lib, x: x.ravel(),
    "ravel-copies": lambda lib, x: x.mT.ravel(),
    "unflatten": lambda lib, x: x.unflatten(2, (2, -1)),
    "squeeze": lambda lib, x: x.view(1, 2, 1, 12).squeeze(),
    "squeeze-dim": lambda lib, x: x.view(1, 2, 1, 12).squeeze(2),
    "squeeze-nothing": lambda lib, x: x.squeeze(1),
    "squeeze-several": lambda lib, x: x.view(1, 2, 1, 12).squeeze(0, -2),
    "squeeze-dims": lambda lib, x: x.view(1, 2, 1, 12).squeeze((0, 1, -2)),
    "unsqueeze": lambda lib, x: x.unsqueeze(1),
    "unsqueeze-end": lambda lib, x: x.unsqueeze(-1),
    "permute": lambda lib, x: x.permute(2, 0, 1),
    "permute-function": lambda lib, x: lib.permute(x, (1, 2, 0)),
    "permute-keyword": lambda lib, x: x.permute(dims=(1, -1, 0)),
    "transpose": lambda lib, x: x.transpose(0, -1),
    "swapaxes": lambda lib, x: x.swapaxes(0, 1),
    "swapdims": lambda lib, x: lib.swapdims(x, 0, 1),
    "t": lambda lib, x: x[0].t(),
    "t-vector": lambda lib, x: x[0, 0].t(),
    "T": lambda lib, x: x[0].T,
    "mT": lambda lib, x: x.mT,
    "mH": lambda lib, x: x.mH,
    "H": lambda lib, x: x[0].H,
    "movedim": lambda lib, x: x.movedim(0, 2),
    "movedims": lambda lib, x: lib.movedim(x, (0, 1), (-1, 0)),
    "moveaxis": lambda lib, x: x.moveaxis(2, 0),
    "chain": lambda lib, x: x.permute(1, 0, 2).unsqueeze(0).narrow(1, 0, 2).squeeze(0)[..., 1],
}

ERRORS: dict[str, Callable] = {
    "view-numel": lambda lib, x: x.view(5),
    "view-infer": lambda lib, x: x.view(-1, 5),
    "view-two-inferred": lambda lib, x: x.view(-1, -1),
    "view-negative": lambda lib, x: x.view(-2, 3),
    "view-strides": lambda lib, x: x.mT.view(24),
    "reshape-numel": lambda lib, x: x.reshape(5, 5),
    "permute-count": lambda lib, x: x.permute(0, 1),
    "permute-twice": lambda lib, x: x.permute(0, 0, 1),
    "permute-range": lambda lib, x: x.permute(0, 1, 3),
    "transpose-range": lambda lib, x: x.transpose(0, 3),
    "t": lambda lib, x: x.t(),
    "mT": lambda lib, x: x[0, 0].mT,
    "H-3d": lambda lib, x: x.H,
    "squeeze-range": lambda lib, x: x.squeeze(3),
    "squeeze-twice": lambda lib, x: x.squeeze((0, 0)),
    "unsqueeze-range": lambda lib, x: x.unsqueeze(5),
    "flatten-order": lambda lib, x: x.flatten(1, 0),
    "flatten-range": lambda lib, x: x.flatten(4),
    "unflatten": lambda lib, x: x.unflatten(1, (2, 2)),
    "unflatten-empty": lambda lib, x: x.unflatten(1, []),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_shape_like_torch(torch, rng, seed, name, dtype):
    strides, nodes = name != "unsqueeze-end", 0 if name in ("H", "mH") else 3
    agree_of_shapes(torch, rng, seed, SAME[name], dtype, strides, nodes)


@pytest.mark.parametrize("name", SAME)
def test_shape_of_other_layouts_like_torch(torch, rng, seed, name):
    agree_of_other_layouts(torch, rng, seed, SAME[name])


@pytest.mark.parametrize("name", ERRORS)
def test_shape_errors_like_torch(torch, name):
    same_error(torch, ERRORS[name], np.zeros((2, 3, 4)))


def test_T_warns_unless_it_is_of_a_matrix():
    with pytest.warns(UserWarning, match="for matrices"):
        shape = convcore.zeros(2, 3, 4).T.shape
    assert shape == (4, 3, 2)


def test_view_shares_memory_and_version():
    x = convcore.zeros(2, 3)
    for view in (x.view(6), x.t(), x[0], x.unsqueeze(0), x.diagonal(), x.narrow(1, 0, 2)):
        assert view._base is x
        before = x._version
        view.add_(1)
        assert x._version == view._version == before + 1
    assert x.tolist() == [[6, 5, 4], [4, 5, 3]]


def test_view_of_a_view_has_the_same_base():
    x = convcore.zeros(2, 3)
    assert x.view(6)[2:].view(2, 2)._base is x


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3), (0, 0)])
def test_shape_of_nothing_like_torch(torch, seed, shape):
    x = np.zeros(shape)
    for function in (
        lambda lib, x: x.view(0, 5),
        lambda lib, x: x.reshape(3, 0),
        lambda lib, x: x.flatten(),
        lambda lib, x: x.flip(0),
        lambda lib, x: x.repeat(*[2] * x.ndim),
        lambda lib, x: x.squeeze(),
        lambda lib, x: x.unsqueeze(0),
        lambda lib, x: x.view(x.shape).transpose(0, -1).reshape(0),
    ):
        agree(torch, function, x, seed=seed)
    same_error(torch, lambda lib, x: x.view(0, -1), x)


def test_view_as_another_dtype_like_torch(torch, rng):
    x = rng.normal(size=(2, 6)).astype("float32")
    for dtype in ("int32", "int16", "float64", "uint8"):
        agree(torch, lambda lib, x, d=dtype: x.view(getattr(lib, d)), x, strides=True)
    same_error(torch, lambda lib, x: x[:, :3].contiguous().view(lib.float64), x)
    y = convcore.from_numpy(x)
    y.view(convcore.int32).zero_()
    assert y._version == 1
    assert y.tolist() == [[0.0] * 6] * 2


def test_memory_format_survives_views(torch, rng):
    x = rng.normal(size=(2, 3, 4, 5)).astype("float32")

    def function(lib, x):
        image = x.to(memory_format=lib.channels_last)[0]
        return image.unsqueeze(0), image.permute(1, 2, 0)[None], x[:, :, :1, :1].squeeze(3)

    agree(torch, function, x)
    for lib_out, torch_out in zip(
        function(convcore, convcore.from_numpy(x)),
        function(torch, torch.from_numpy(x)),
        strict=True,
    ):
        assert lib_out.stride() == torch_out.stride()


def test_view_as_another_dtype_needs_an_offset_that_fits(lib):
    x = lib.arange(12, dtype=lib.uint8)
    assert x[4:8].view(lib.int32).tolist() == [0x07060504]
    with pytest.raises(RuntimeError, match=r"self.storage_offset\(\) must be divisible by 4"):
        x[1:5].view(lib.int32)


@pytest.mark.parametrize(
    ("view", "fault"),
    [
        (lambda x: x.t()[:2], r"self.stride\(-1\) must be 1 to view Float as Double .* got 6"),
        (lambda x: x.as_strided((2, 2), (3, 1)), r"self.stride\(0\) must be divisible by 2"),
        (lambda x: x[0, :1].expand(4), r"self.stride\(-1\) must be 1"),
    ],
)
def test_view_as_a_larger_dtype_needs_strides_that_fit(lib, view, fault):
    x = view(lib.arange(12.0).view(2, 6))
    with pytest.raises(RuntimeError, match=fault):
        x.view(lib.float64)
    if x.stride(-1) == 1:
        assert x.view(lib.float16).shape == (2, 4)


def test_view_of_no_elements_as_another_dtype_has_their_strides(lib):
    x = lib.empty(0, 5, 64)
    assert x.view(lib.float64).stride() == (160, 32, 1)
    assert x.view(lib.float16).stride() == (640, 128, 1)


def test_a_shape_is_one_sequence(lib):
    with pytest.raises(TypeError):
        lib.ones(9).view((3, 3), 1)


def test_strides_of_no_elements(lib):
    assert lib.empty(0, 1, 2).stride() == (2, 2, 1)
    assert lib.empty(3, 0).stride() == (1, 1)
    assert lib.ones(2, 3, 4)[:, 1:1].stride() == (12, 4, 1)


def test_movedim_names_what_is_repeated(lib):
    x = lib.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match="movedim: repeated dim in `source`"):
        x.movedim((0, -3), (0, 1))
    with pytest.raises(RuntimeError, match="movedim: repeated dim in `destination`"):
        x.movedim((0, 1), (2, 2))
