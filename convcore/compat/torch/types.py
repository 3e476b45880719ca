"""Types for annotations, under the names of `torch.types`."""

import builtins
from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, TypeAlias

from convcore import Size, Tensor, device, dtype

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_int, _float, _bool, _complex = int, float, bool, complex
_dtype, _device = dtype, device
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize = _dispatchkey = _layout = Any
_qscheme = str
Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = str | PathLike[str] | IO[bytes]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
PySymType: TypeAlias = int | float | bool
py_sym_types = (builtins.int, builtins.float, builtins.bool)
Storage = Any
