"""New tensors of another one's shape: constants and random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

import convcore
from convcore import Tensor
from convcore.onnx.errors import OnnxError
from convcore.onnx.nesting import tensors_in
from convcore.onnx.refusals import NO_TRANSLATION
from convcore.onnx.sizes import has_sizes
from convcore.onnx.translation import as_dtype, composes, ints, translates
from convcore.onnx.values import array_of

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


def _filled(r: Recorder, value: Any, y: Any, like: Tensor) -> list[str]:
    """Fill the shape of a tensor, whose sizes may be free."""
    shape = r.node("Shape", [r.name(like)])
    return r.node("Expand", [r.number(value, y), *shape])


def _enter_like(name: str, value: int) -> None:
    @translates(name)
    def like(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
        return _filled(r, value, y, input)


for _name, _value in (("zeros_like", 0), ("empty_like", 0), ("ones_like", 1)):
    _enter_like(_name, _value)


@translates("full_like")
def _full_like(r: Recorder, y: Any, *, input: Any, fill_value: Any, **_: Any) -> list[str]:
    return _filled(r, fill_value, y, input)


def _enter_made(name: str, value: int) -> None:
    @translates(name)
    def made(r: Recorder, y: Any, *, sizes: Any, size: Any = None, **_: Any) -> list[str]:
        return _of_sizes(r, y, size if size is not None else sizes, value)


def _of_sizes(r: Recorder, y: Any, sizes: Any, value: Any) -> list[str]:
    """Return a tensor of one value whose shape has free sizes in it: f(2, 3), or f((2, 3))."""
    first = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
    number = as_dtype(r, value, y.dtype) if isinstance(value, Tensor) else r.number(value, y)
    return r.node("Expand", [number, ints(r, list(first))])


for _name, _value in (("zeros", 0), ("empty", 0), ("ones", 1)):
    _enter_made(_name, _value)


@translates("full")
def _full(r: Recorder, y: Any, *, size: Any, fill_value: Any, **_: Any) -> list[str]:
    return _of_sizes(r, y, size, fill_value)


@translates("arange")
def _arange(
    r: Recorder, y: Any, *, start: Any, end: Any = None, step: Any = 1, **_: Any
) -> list[str]:
    first, last = (0, start) if end is None else (start, end)
    kind = array_of(y).dtype
    if kind == np.float16 or any(isinstance(each, Tensor) for each in (first, last, step)):
        raise OnnxError(f"of {kind}, or of tensors")
    return r.node("Range", [r.number(each, y) for each in (first, last, step)])


@translates("tensor", "as_tensor", "scalar_tensor")
def _tensor(r: Recorder, y: Any, /, **given: Any) -> list[str]:
    data = next(iter(given.values()))
    if tensors_in(data):
        raise OnnxError(NO_TRANSLATION)
    return [r.constant(list(data) if y.ndim else data, array_of(y).dtype)]


@translates("new_zeros", "new_ones", "new_empty")
def _new_filled(r: Recorder, y: Any, *, input: Any, size: Any, **_: Any) -> list[str]:
    if not has_sizes(size):
        return [r.constant(array_of(y))]
    return _of_sizes(r, y, size, 0 if not y.numel() else y.reshape(-1)[0].item())


@translates("new_full")
def _new_full(
    r: Recorder, y: Any, *, input: Any, size: Any, fill_value: Any, **_: Any
) -> list[str]:
    if not has_sizes([size, fill_value]):
        return _new(r, y, input=input, fill_value=fill_value)
    return _of_sizes(r, y, size, fill_value)


@translates("new_tensor")
def _new(r: Recorder, y: Any, **given: Any) -> list[str]:
    if any(isinstance(each, Tensor) and r.is_computed(each) for each in list(given.values())[1:]):
        raise OnnxError("of computed values")
    return [r.constant(array_of(y))]


@translates("zero_")
def _zero(r: Recorder, y: Any, *, input: Any) -> list[str]:
    return _filled(r, 0, y, input)


@translates("fill_")
def _fill(r: Recorder, y: Any, *, input: Any, value: Any) -> list[str]:
    if not isinstance(value, Tensor):
        return _filled(r, value, y, input)
    shape = r.node("Shape", [r.name(input)])
    return r.node("Expand", [as_dtype(r, value, y.dtype), *shape])


@translates("copy_")
def _copy(r: Recorder, y: Any, *, input: Any, src: Any, non_blocking: bool = False) -> list[str]:
    return _fill(r, y, input=input, value=src)


# --- random numbers ------------------------------------------------------------------------------


def _code(dtype: np.dtype) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


def _enter_random(name: str, op: str) -> None:
    @translates(f"{name}_like")
    def like(r: Recorder, y: Any, *, input: Any, **_: Any) -> list[str]:
        return r.node(f"{op}Like", [r.name(input)], dtype=_code(array_of(y).dtype))

    @translates(name)
    def drawn(r: Recorder, y: Any, **_: Any) -> list[str]:
        return r.node(op, [], shape=list(y.shape), dtype=_code(array_of(y).dtype))


_enter_random("rand", "RandomUniform")
_enter_random("randn", "RandomNormal")


@composes("normal")
def _normal(*, mean: Any, std: Any, **_: Any) -> Any:
    like = mean if isinstance(mean, Tensor) else std
    return convcore.randn_like(like) * std + mean


@composes("bernoulli")
def _bernoulli(*, input: Any, p: Any, **_: Any) -> Any:
    return (convcore.rand_like(input) < (input if p is None else p)).to(input.dtype)


@translates("normal_")
def _normal_(
    r: Recorder, y: Any, *, input: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None
) -> list[str]:
    options: dict[str, Any] = {"mean": float(mean), "scale": float(std)}
    dtype = _code(array_of(y).dtype)
    return r.node("RandomNormalLike", [r.name(input)], dtype=dtype, **options)


@translates("uniform_")
def _uniform_(
    r: Recorder, y: Any, *, input: Any, from_: float = 0.0, to: float = 1.0, generator: Any = None
) -> list[str]:
    options: dict[str, Any] = {"low": float(from_), "high": float(to)}
    dtype = _code(array_of(y).dtype)
    return r.node("RandomUniformLike", [r.name(input)], dtype=dtype, **options)
