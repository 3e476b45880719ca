"""PyTorch's checkpoint format since version 1.6: a zip archive of a pickle and the tensors' memory.

``data.pkl`` holds the objects, with each tensor as a call of a function of ``torch._utils`` whose
arguments are a storage's number, an offset, sizes and strides. ``data/<number>`` is that storage's
memory.
"""

from __future__ import annotations

import numpy as np

PICKLE = "data.pkl"
STORAGES = "data/"
BYTE_ORDER = "byteorder"
VERSION = "version"

# PyTorch's storage classes and their element types.
DTYPES = {
    "BoolStorage": np.dtype("?"),
    "ByteStorage": np.dtype("u1"),
    "CharStorage": np.dtype("i1"),
    "ShortStorage": np.dtype("i2"),
    "IntStorage": np.dtype("i4"),
    "LongStorage": np.dtype("i8"),
    "HalfStorage": np.dtype("f2"),
    "FloatStorage": np.dtype("f4"),
    "DoubleStorage": np.dtype("f8"),
    "ComplexFloatStorage": np.dtype("c8"),
    "ComplexDoubleStorage": np.dtype("c16"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
