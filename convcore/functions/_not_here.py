"""Attributes of PyTorch's tensors that convcore has not: reading one says why, or what to use.

Each is a descriptor of Tensor's. A `__getattr__` of the class would do without the list, but would
slow every call down: Python keeps no fast path to the attributes of a class that has one.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable
from typing import Any, NoReturn

from convcore._tensor import Tensor

# tests/functions/test_not_here.py compares them with PyTorch's.
_TABLE = """
    ccol_indices chalf col_indices const_data_ptr crow_indices dense_dim dequantize dim_order eig
    geqrf grad_dtype hash_tensor index int_repr ipu is_maia istft lstsq module_load mtia name
    nonzero_static orgqr ormqr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
    q_scale q_zero_point qscheme record_stream reinforce resize resize_as resize_as_sparse_
    row_indices slice_inverse smm solve sparse_dim sparse_resize_ sparse_resize_and_clear_ sspaddmm
    stft storage_type symeig to_padded_tensor volatile xpu
"""
NAMES = frozenset(_TABLE.split())


class NotHere:
    """An attribute that raises an AttributeError with a reason; programs may set it as any other.

    `hasattr` is False, of tensors and of the class.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        # By its name, for it stands above: its lists are read when something is missing.
        errors: Any = importlib.import_module("convcore.compat.errors")
        raise errors.missing_attribute("torch.Tensor", self._name)


def _listed(self: Tensor) -> Iterable[str]:
    """Return the names of the attributes: not those that are not here."""
    hidden = {n for n in NAMES if isinstance(inspect.getattr_static(self, n, None), NotHere)}
    return set(object.__dir__(self)) - hidden


def bind() -> None:
    """Set them on Tensor."""
    for name in NAMES:
        setattr(Tensor, name, NotHere(name))
    Tensor.__dir__ = _listed  # type: ignore[method-assign]
