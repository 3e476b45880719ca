"""`out=`: results written into tensors that the caller gives, for every function of a table."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from convcore._errors.calls import UNNAMED, after, typename
from convcore._tensor import Tensor, scalar_name
from convcore._tensor.dtype_names import C_NAMES
from convcore._tensor.dtypes import can_cast_numpy
from convcore.autograd.grad_mode import mode
from convcore.autograd.views import check_apart, check_writable
from convcore.functions._support.errstate import ignore_errstate

_TABLE = """
    abs acos acosh add addcdiv addcmul addmm all amax amin aminmax angle any asin asinh atan atan2
    atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
    bitwise_xor bmm bucketize cat ceil clamp clip column_stack complex concat concatenate copysign
    cos cosh cross cumprod cumsum deg2rad diag diff div divide dot dstack eq erf erfinv exp exp2
    expm1 fix floor floor_divide fmax fmin fmod frac gather ge ger greater greater_equal gt histc
    hstack hypot index_select kthvalue le lerp less less_equal log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor logsumexp lt masked_select matmul max maximum
    mean median min minimum mm mul multiply mv nan_to_num nanmean ne neg negative nextafter nonzero
    norm not_equal outer polar pow prod quantile rad2deg reciprocal remainder renorm round
    row_stack rsqrt searchsorted sgn sigmoid sign signbit sin sinc sinh sort sqrt square stack std
    sub subtract sum take take_along_dim tan tanh tensordot topk tril triu true_divide trunc var
    vstack where xlogy
"""
NAMES = frozenset(_TABLE.split())
# PyTorch lets the result of a product share memory with a factor.
_PRODUCTS = "addmm baddbmm bmm dot matmul mm mv"
_BY_PRODUCT = frozenset(_PRODUCTS.split())

# Functions that compute in the dtype of ``out``.
_TYPED = {"cumprod", "cumsum", "prod", "sum"}
# Functions whose results are written only into tensors of their own dtype, and what they say else.
_FOUND = "Found dtype {found} but expected {wanted}"
_NAMED = "Expected out tensor to have dtype {wanted_c}, but got {found_c} instead"
_EXACT = {
    **dict.fromkeys(("abs", "ceil", "fix", "floor", "frac", "neg", "negative"), _FOUND),
    **dict.fromkeys(("round", "sgn", "sign", "trunc"), _FOUND),
    **dict.fromkeys(("max", "min"), _NAMED),
    "nonzero": "nonzero: Expected out tensor to have scalar type {wanted} but got scalar type "
    "{found}",
    "all": "all only supports bool tensor for result, got: {found}",
    "any": "any only supports bool tensor for result, got: {found}",
    "complex": "Expected object of scalar type {wanted} but got scalar type {found} for argument "
    "'out'",
}


def _into(out: Any, name: str, function: Callable, args: tuple, kwargs: dict) -> Any:
    outs = tuple(out) if isinstance(out, tuple | list) else (out,)
    _check(name, outs, (*args, *kwargs.values()))
    if name in _TYPED:
        kwargs["dtype"] = _result_dtype(kwargs.get("dtype"), outs[0])
    results = function(*args, **kwargs)
    several = isinstance(results, tuple)
    _store(name, outs, results if several else (results,))
    if not several:
        return outs[0]
    return type(results)(*outs) if hasattr(results, "_fields") else outs


def with_out(name: str, function: Callable, module: str = "convcore.functions") -> Callable:
    """Return a module's function that takes ``out``, a tensor or as many as there are results.

    They are resized to the results' shapes, with a warning if they held anything, and keep their
    dtypes.  Nothing of them is changed if the function raises.
    """

    @functools.wraps(function)
    def accepting(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            if out is None:
                return function(*args, **kwargs)
            return _into(out, name, function, args, kwargs)
        except UNNAMED as error:
            call = functools.partial(accepting, out=out)
            again = after(error, call, name, function, args, kwargs)
            if again is None:
                raise
        return again()

    # For pickle: the name under which the module has it, which of torch.clip is not clamp.
    accepting.__module__, accepting.__qualname__ = module, name.rpartition(".")[2]
    return accepting


def _result_dtype(dtype: Any, out: Tensor) -> Any:
    """Return the dtype of ``out`` for a function that is given the dtype to compute in."""
    if dtype is not None and dtype is not out.dtype:
        wanted, found = (C_NAMES[one._name] for one in (dtype, out.dtype))
        raise RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {found} instead")
    return out.dtype


def _check(name: str, outs: tuple, args: tuple) -> None:
    if name not in _BY_PRODUCT:
        for one in outs:
            if isinstance(one, Tensor):
                check_apart(one, *_tensors(args))
    for one in outs:
        if not isinstance(one, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {typename(one)}")
    if mode.enabled and any(one.requires_grad for one in _tensors((*outs, *args))):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )


def _tensors(args: tuple) -> Iterable[Tensor]:
    for arg in args:
        for one in arg if isinstance(arg, tuple | list) else (arg,):
            if isinstance(one, Tensor):
                yield one


def _store(name: str, outs: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> None:
    if len(outs) != len(results):
        raise TypeError(
            f"argument 'out' must be a tuple of {len(results)} Tensors, not {len(outs)}"
        )
    for out, result in zip(outs, results, strict=True):
        _check_dtype(name, result._array.dtype, out._array.dtype)
        if out._array.shape == result._array.shape:
            check_writable(out)
    for out, result in zip(outs, results, strict=True):
        _write(out, result._array)


def _check_dtype(name: str, result: np.dtype, out: np.dtype) -> None:
    """Raise RuntimeError unless results of a dtype are written into tensors of the other."""
    if name in ("all", "any") and out.name in ("bool", "uint8"):
        return
    if name in _EXACT and result != out:
        names = {"found": scalar_name(out), "wanted": scalar_name(result)}
        names |= {"found_c": C_NAMES[out.name], "wanted_c": C_NAMES[result.name]}
        raise RuntimeError(_EXACT[name].format(**names))
    if not can_cast_numpy(result, out):
        if name in ("cat", "concat", "concatenate"):
            wanted = scalar_name(out)
            raise TypeError(
                f"torch.cat(): input types can't be cast to the desired output type {wanted}"
            )
        raise RuntimeError(
            f"result type {scalar_name(result)} can't be cast to the desired output type "
            f"{scalar_name(out)}"
        )


def _write(out: Tensor, array: np.ndarray) -> None:
    if out._array.shape != array.shape:
        if out._array.size:
            warnings.warn(
                "An output with one or more elements was resized since it had shape "
                f"{list(out._array.shape)}, which does not match the required output shape "
                f"{list(array.shape)}. This behavior is deprecated, and in a future PyTorch "
                "release outputs will not be resized unless they have zero elements. You can "
                "explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
                "t.resize_(0).",
                stacklevel=5,
            )
        out._array = np.empty_like(array, out._array.dtype, subok=False)
    ignore_errstate(np.copyto, out._array, array, casting="unsafe")
    out._counter[0] += 1
