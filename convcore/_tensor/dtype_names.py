"""The names that PyTorch has for dtypes in its messages, and for tensors of them."""

from __future__ import annotations

from typing import Any

import numpy as np

# In most messages, and in the names of types: torch.FloatTensor.
_NAMES = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "bool": "Bool",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "bfloat16": "BFloat16",
}

# In messages that come from C++.
C_NAMES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "bool": "bool",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "bfloat16": "c10::BFloat16",
}


def scalar_name(dtype: np.dtype) -> str:
    """Return PyTorch's name of a NumPy dtype in messages, such as 'Float'."""
    return _NAMES[dtype.name]


def legacy_name(dtype: np.dtype) -> str:
    """Return PyTorch's older name of tensors of a NumPy dtype, such as 'torch.FloatTensor'."""
    return f"torch.{scalar_name(dtype)}Tensor"


def from_legacy_name(name: Any) -> Any:
    """Return the NumPy dtype of a name such as 'torch.FloatTensor'; non-strings as they are."""
    if isinstance(name, str):
        for modern, legacy in _NAMES.items():
            if name == f"torch.{legacy}Tensor":
                return np.dtype(modern)
        raise ValueError(f"invalid type: '{name}'")
    return name
