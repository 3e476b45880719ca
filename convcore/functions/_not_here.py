"""Attributes that tensors have not: reading one says why, or what to use.

They are those of PyTorch's that convcore lacks, and those of arrays that no tensor has.

Each is a descriptor of Tensor's. A `__getattr__` of the class would do without the list, but would
slow every call down: Python keeps no fast path to the attributes of a class that has one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any, NoReturn

from convcore._errors import hinted
from convcore._tensor import Tensor

# tests/functions/test_not_here.py compares them with PyTorch's.
_TABLE = """
    addbmm addbmm_ addmv addmv_ addr addr_ apply_ as_strided_scatter ccol_indices chalf
    cholesky_inverse col_indices conj_physical conj_physical_ const_data_ptr corrcoef cov
    crow_indices cummax cummin dense_dim dequantize diagflat diagonal_scatter dim_order dsplit eig
    float_power float_power_ frexp gcd gcd_ geometric_ geqrf grad_dtype hash_tensor heaviside
    heaviside_ histogram hsplit i0 i0_ igamma igamma_ igammac igammac_ index index_copy index_copy_
    index_fill index_fill_ index_reduce index_reduce_ inner int_repr ipu is_conj is_maia is_neg
    is_same_size is_set_to isneginf isposinf isreal istft kron lcm lcm_ ldexp ldexp_ log_normal_
    logaddexp2 logcumsumexp lstsq lu lu_solve map2_ map_ matrix_exp matrix_power mode module_load
    msort mtia mvlgamma mvlgamma_ name nanmedian nanquantile narrow_copy new_empty_strided
    nonzero_static orgqr ormqr pinverse polygamma polygamma_ put put_ q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qr qscheme record_stream
    reinforce resize resize_as resize_as_sparse_ row_indices select_scatter slice_inverse
    slice_scatter smm solve sparse_dim sparse_resize_ sparse_resize_and_clear_ sspaddmm stft
    storage_type svd symeig to_padded_tensor triangular_solve unsafe_chunk unsafe_split
    unsafe_split_with_sizes vdot volatile vsplit xpu
"""
NAMES = frozenset(_TABLE.split())

# Methods of arrays and of other libraries' tensors, and what does the same here.
OF_ARRAYS = {
    **dict.fromkeys(("asnumpy", "as_numpy", "to_numpy", "tonumpy"), "x.numpy()"),
    "assign": "x.copy_(other)",
    "astype": "x.to(torch.float32)",
    "copy": "x.clone()",
    "fill": "x.fill_(value)",
    "ptp": "x.max() - x.min()",
    "searchsorted": "torch.searchsorted(x, values)",
    "tobytes": "x.numpy().tobytes()",
}


class NotHere:
    """An attribute that raises an AttributeError with a reason; programs may set it as any other.

    `hasattr` is False, of tensors and of the class.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        from convcore._errors.missing import missing_attribute  # its tables are read when needed

        raise missing_attribute("torch.Tensor", self._name)


class OfArrays(NotHere):
    """An attribute of arrays; its error has Python's text, and a hint."""

    __slots__ = ()

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        of = f"type object {owner.__name__!r}" if tensor is None else f"{owner.__name__!r} object"
        raise hinted(
            AttributeError(f"{of} has no attribute {self._name!r}", name=self._name, obj=tensor),
            f"use {OF_ARRAYS[self._name]}",
        )


def _listed(self: Tensor) -> Iterable[str]:
    """Return the names of the attributes: not those that are not here."""
    names = NAMES | OF_ARRAYS.keys()
    hidden = {n for n in names if isinstance(inspect.getattr_static(self, n, None), NotHere)}
    return set(object.__dir__(self)) - hidden


def bind() -> None:
    """Set them on Tensor."""
    for name in NAMES:
        setattr(Tensor, name, NotHere(name))
    for name in OF_ARRAYS:
        setattr(Tensor, name, OfArrays(name))
    Tensor.__dir__ = _listed  # type: ignore[method-assign]
