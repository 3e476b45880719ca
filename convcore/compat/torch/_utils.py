"""The names of `torch._utils` that programs use, private as they are."""

from __future__ import annotations

from collections.abc import Sequence

import convcore
from convcore import Tensor


def _element_size(dtype: convcore.dtype) -> int:
    """Return the bytes of one element."""
    if not isinstance(dtype, convcore.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return one vector of all elements."""
    return convcore.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the parts of a vector, in the shapes of tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(like) for part, like in zip(parts, tensors, strict=True))
