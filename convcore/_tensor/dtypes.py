"""dtypes, type promotion and casts, by PyTorch's rules.

A `dtype` stands for a NumPy dtype, one object each; arrays have NumPy's.  PyTorch promotes by
category first (bool < integer < floating < complex) and by size second: int64 and float32 give
float32, where NumPy gives float64.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore.engine.runtime.errstate import quiet

__all__ = [
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "complex64",
    "complex128",
    "double",
    "dtype",
    "float",
    "float16",
    "float32",
    "float64",
    "get_default_dtype",
    "half",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "long",
    "promote_types",
    "result_type",
    "set_default_dtype",
    "short",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_FAMILY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}  # PyTorch's categories by NumPy's kind


# NumPy's kinds of the dtypes that can have gradients, and of the real ones among them.  bfloat16 is
# of kind V, as all are that NumPy has not itself; no other dtype of a tensor is.
INEXACT = "fcV"
FLOATING = "fV"


class dtype:
    """The dtype of a tensor's elements; compared by identity."""

    __slots__ = ("_name", "is_complex", "is_floating_point", "is_signed", "itemsize", "numpy")

    _name: str
    is_complex: builtins.bool
    is_floating_point: builtins.bool
    is_signed: builtins.bool
    itemsize: builtins.int
    numpy: np.dtype

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    @classmethod
    def _make(cls, name: str) -> dtype:
        self = object.__new__(cls)
        self._name = name
        if name == "bfloat16":  # NumPy has none: see __getattr__
            self.itemsize, self.is_floating_point = 2, True
            self.is_complex, self.is_signed = False, True
            return self
        self.numpy = np.dtype(name)
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = self.numpy.kind == "f"
        self.is_complex = self.numpy.kind == "c"
        self.is_signed = self.numpy.kind in "ifc"
        return self

    def __getattr__(self, name: str) -> Any:
        """Load ml_dtypes when NumPy's bfloat16 is asked for."""
        if name != "numpy":
            raise AttributeError(f"'dtype' object has no attribute {name!r}")
        try:
            import ml_dtypes
        except ModuleNotFoundError:
            raise NotImplementedError(
                "NumPy has no bfloat16; tensors of it need the package ml_dtypes: "
                "pip install 'convcore[bfloat16]'"
            ) from None
        self.numpy = np.dtype(ml_dtypes.bfloat16)
        _OF_NUMPY[self.numpy] = self
        return self.numpy

    def to_real(self) -> dtype:
        """Return the dtype of the real part."""
        return _REAL.get(self, self)

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts are of this dtype."""
        if self not in _COMPLEX:
            raise RuntimeError(f"there is no complex dtype whose parts are {self}")
        return _COMPLEX[self]

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


float16 = half = dtype._make("float16")
float32 = float = dtype._make("float32")
float64 = double = dtype._make("float64")
complex64 = cfloat = dtype._make("complex64")
complex128 = cdouble = dtype._make("complex128")
uint8 = dtype._make("uint8")
int8 = dtype._make("int8")
int16 = short = dtype._make("int16")
int32 = int = dtype._make("int32")
int64 = long = dtype._make("int64")
bool = dtype._make("bool")
uint16 = dtype._make("uint16")
uint32 = dtype._make("uint32")
uint64 = dtype._make("uint64")
bfloat16 = dtype._make("bfloat16")

ALL = (
    *(uint8, int8, int16, int32, int64, bool),
    *(float16, float32, float64, complex64, complex128),
    *(uint16, uint32, uint64),
)

_REAL = {complex64: float32, complex128: float64}
_COMPLEX = {float32: complex64, float64: complex128, complex64: complex64, complex128: complex128}
_OF_NUMPY = {one.numpy: one for one in ALL}
_OF_PYTHON = {
    builtins.bool: bool.numpy,
    builtins.int: int64.numpy,
    builtins.float: float64.numpy,
    complex: complex128.numpy,
}


def of(numpy_dtype: np.dtype) -> dtype:
    """Return the dtype of a NumPy dtype.

    Raises
    ------
    TypeError
        No tensor has this dtype; the message lists those that are allowed.
    """
    try:
        return _OF_NUMPY[numpy_dtype]
    except KeyError:
        allowed = ", ".join(one._name for one in ALL)
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: "
            f"{allowed} in the machine's byte order"
        ) from None


def as_numpy(kind: Any = None) -> np.dtype:
    """Return the NumPy dtype of a dtype, a NumPy dtype, or a class of Python or NumPy numbers.

    None gives the default: float32, unless `set_default_dtype` changed it.
    """
    if kind.__class__ is dtype:
        return kind.numpy
    if kind is None:
        return _default.numpy
    if kind.__class__ is type and kind in _OF_PYTHON:
        return _OF_PYTHON[kind]
    if isinstance(kind, np.dtype) or (isinstance(kind, type) and issubclass(kind, np.generic)):
        return of(np.dtype(kind)).numpy
    if hasattr(kind, "refuse"):  # a name of a dtype that PyTorch has
        kind.refuse()
    raise hinted(
        TypeError(f"argument 'dtype' must be torch.dtype, not {type(kind).__name__}"),
        hints.dtype_name(kind) if isinstance(kind, str) else hints.of_pytorch(kind),
    )


# The default

_default = float32


def get_default_dtype() -> dtype:
    """Return the default dtype, that of tensors made from Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the default dtype, that of tensors made from Python floats.

    Raises
    ------
    TypeError
        ``d`` is not one of the floating-point dtypes.
    """
    global _default
    if d.__class__ is not dtype:
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = d


def default_complex() -> np.dtype:
    """Return the NumPy dtype of tensors made from Python complex numbers."""
    return complex128.numpy if _default is float64 else complex64.numpy


# Promotion


class _Promotions(dict[tuple[np.dtype, np.dtype], np.dtype]):
    """The dtype that each pair promotes to."""

    def __missing__(self, pair: tuple[np.dtype, np.dtype]) -> np.dtype:
        """Promote bfloat16, whose NumPy dtype is known only once it is used."""
        a, b = pair
        if "V" not in (a.kind, b.kind):
            raise RuntimeError(
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
                f"{of(a)} and {of(b)}"
            )
        if a is b or _FAMILY[b.kind] < 2:
            return a
        if _FAMILY[a.kind] < 2:
            return b
        return float32.numpy if "float16" in (a.name, b.name) else (b if a.kind == "V" else a)


_PROMOTED = _Promotions()
_WIDE = (uint16, uint32, uint64)


def _promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the smallest dtype that holds both; an integer does not widen a floating dtype."""
    if _FAMILY[a.kind] < 2 <= _FAMILY[b.kind]:
        return b
    if _FAMILY[b.kind] < 2 <= _FAMILY[a.kind]:
        return a
    return np.promote_types(a, b)


for _a in ALL:
    for _b in ALL:
        # PyTorch promotes the wide unsigned integers to real floating dtypes, and to nothing else.
        if _a is _b or not {_a, _b} & {*_WIDE} or "f" in (_a.numpy.kind, _b.numpy.kind):
            _PROMOTED[_a.numpy, _b.numpy] = _promote(_a.numpy, _b.numpy)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the dtype that two dtypes promote to, by PyTorch's rules.

    Examples
    --------
    >>> promote_types(int64, float32)
    torch.float32
    >>> promote_types(uint8, int8)
    torch.int16
    """
    for position, given in enumerate((type1, type2), 1):
        if given.__class__ is not dtype:
            raise TypeError(
                f"promote_types(): argument 'type{position}' (position {position}) must be "
                f"torch.dtype, not {type(given).__name__}"
            )
    return _OF_NUMPY[_PROMOTED[type1.numpy, type2.numpy]]


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Return whether in-place operations may store values of ``from_`` in elements of ``to``.

    The category must not get lower: complex to real, floating to integer, or any to bool.
    """
    for name, one in (("from_", from_), ("to", to)):
        if not isinstance(one, dtype):
            raise TypeError(
                f"can_cast(): argument '{name}' must be torch.dtype, not {type(one).__name__}"
            )
    return can_cast_numpy(from_.numpy, to.numpy)


def can_cast_numpy(source: np.dtype, target: np.dtype) -> builtins.bool:
    """Do what `can_cast` does for NumPy dtypes."""
    return _FAMILY[source.kind] <= _FAMILY[target.kind]


def number_dtype(number: Any) -> np.dtype:
    """Return the dtype of a Python or NumPy number as an operand."""
    kind = number.__class__
    if kind is builtins.float:
        return _default.numpy
    if kind is builtins.int:
        return int64.numpy
    if isinstance(number, builtins.bool | np.bool_):
        return bool.numpy
    if isinstance(number, builtins.int | np.integer):
        return int64.numpy
    if isinstance(number, builtins.float | np.floating):
        return _default.numpy
    if isinstance(number, complex | np.complexfloating):
        return default_complex()
    if hasattr(number, "refuse"):  # on the meta device
        number.refuse()
    raise TypeError(f"expected a Tensor or a number, but got {kind.__name__}")


def _combine(higher: np.dtype, lower: np.dtype) -> np.dtype:
    """Promote the dtypes of two groups of operands, of which ``higher`` takes precedence.

    The lower one counts only if it is of a higher category, and its size does not count beside a
    floating dtype: float32 with a complex number gives complex64.
    """
    for one in (lower, higher):
        if one.kind not in _FAMILY:
            raise TypeError(f"no tensor has the dtype {one}")
    if _FAMILY[lower.kind] <= _FAMILY[higher.kind]:
        return higher
    if lower.kind == "c" and higher.kind == "f":
        return complex128.numpy if higher.itemsize == 8 else complex64.numpy
    return _PROMOTED[higher, lower]


def common(x: np.ndarray, y: Any) -> np.dtype:
    """Return the NumPy dtype that ``x`` and an array or number ``y`` promote to in PyTorch."""
    a = x.dtype
    if isinstance(y, np.ndarray):
        b = y.dtype
        if a is b:
            return a
        if (x.ndim == 0) == (y.ndim == 0):
            return _PROMOTED[a, b]
        return _combine(b, a) if x.ndim == 0 else _combine(a, b)
    if a.kind == "f" and y.__class__ in _REAL_NUMBERS:
        return a
    return _combine(a, number_dtype(y))


_REAL_NUMBERS = {builtins.int, builtins.float, builtins.bool}


def result_numpy(*operands: Any) -> np.dtype:
    """Do what `result_type` does, for arrays, Tensors and numbers; return a NumPy dtype."""
    ranked: list[np.dtype | None] = [None, None, None]  # with axes, without axes, numbers
    for operand in operands:
        array = getattr(operand, "_array", operand)
        if isinstance(array, np.ndarray):
            rank, current = (0 if array.ndim else 1), array.dtype
        else:
            rank, current = 2, number_dtype(array)
        found = ranked[rank]
        ranked[rank] = current if found is None else _PROMOTED[found, current]
    result = None
    for lower in reversed(ranked):
        if result is None or lower is None:
            result = lower if result is None else result
        else:
            result = _combine(lower, result)
    if result is None:
        raise TypeError("result_type() needs at least one operand")
    return result


def result_type(*operands: Any) -> dtype:
    """Return the dtype that Tensors and Python numbers promote to in an operation.

    Tensors with axes take precedence over 0-d ones, and those over numbers: a later group counts
    only if its category (bool, integer, floating, complex) is higher.
    """
    return of(result_numpy(*operands))


def cast(array: np.ndarray, target: np.dtype) -> np.ndarray:
    """Cast an array, keeping the memory order of its axes; return it as it is if possible.

    As in PyTorch, what does not fit gives no warning: a complex number loses its imaginary part, a
    large float becomes infinite, and an integer wraps around.
    """
    if array.dtype == target:
        return array
    if array.dtype.kind == "c" and target.kind not in "cb":
        array = array.real
    return quiet(array.astype, target)
