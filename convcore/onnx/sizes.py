"""Sizes of free axes: ints that know what they were computed from, and are written as nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from convcore import Tensor, nn
from convcore._tensor.size import Size
from convcore.engine.runtime.restoring import Calls, restoring
from convcore.onnx.nesting import leaves
from convcore.onnx.sight import files_of
from convcore.overrides import innermost_mode

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

# A number, a value's name and an axis after "Shape", or operands after an operator of ONNX.
Expression = int | tuple[Any, ...]


class FreeSize(int):
    """A size that is not the same in all runs of an export.

    Sums, differences, products, whole quotients and rests with ints are FreeSizes too; all else
    that is computed from one is a plain number.

    Parameters
    ----------
    value : int
    expression : tuple
        What it was computed from.
    values : tuple of int
        What it is in each of the runs.
    """

    expression: Expression
    values: tuple[int, ...]

    def __new__(  # noqa: D102
        cls, value: int, expression: Expression = 0, values: tuple[int, ...] = ()
    ) -> FreeSize:
        new = int.__new__(cls, value)
        new.expression, new.values = expression, values
        return new

    def __index__(self) -> int:
        """Return the size itself: by this torch.Size takes its ints."""
        return self

    def __neg__(self) -> int:
        return 0 - self

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self // other, self % other


def _enter(name: str, op: str) -> None:
    compute = getattr(operator, name)
    usual = getattr(int, f"__{name}__")

    def method(self: FreeSize, other: Any) -> Any:
        if not isinstance(other, int):
            return usual(self, other)
        return _computed(op, compute, self, other)

    def turned(self: FreeSize, other: Any) -> Any:
        return _computed(op, compute, other, self) if isinstance(other, int) else NotImplemented

    setattr(FreeSize, f"__{name}__", method)
    setattr(FreeSize, f"__r{name}__", turned)


for _name, _op in (
    ("add", "Add"),
    ("sub", "Sub"),
    ("mul", "Mul"),
    ("floordiv", "Div"),
    ("mod", "Mod"),
):
    _enter(_name, _op)


def _computed(op: str, compute: Callable[[int, int], int], a: int, b: int) -> int:
    count = len(a.values if isinstance(a, FreeSize) else b.values)  # type: ignore[attr-defined]
    pairs = zip(values_of(a, count), values_of(b, count), strict=True)
    sizes = tuple(compute(one, other) for one, other in pairs)
    value = compute(int(a), int(b))
    if len(set(sizes)) == 1:
        return value
    return FreeSize(value, (op, _expression(a), _expression(b)), sizes)


def _expression(value: int) -> Expression:
    return value.expression if isinstance(value, FreeSize) else int(value)


def values_of(value: int, count: int) -> tuple[int, ...]:
    """Return what a size is in each of the runs."""
    return value.values if isinstance(value, FreeSize) else (int(value),) * count


def as_int(value: Any) -> int:
    """Return a plain int, or a FreeSize as it is."""
    return value if isinstance(value, FreeSize) else int(value)


def plain(tree: Any) -> Any:
    """Return the same with plain ints: kernels and NumPy take these alone."""
    if isinstance(tree, FreeSize):
        return int(tree)
    if isinstance(tree, slice):
        return slice(*map(plain, (tree.start, tree.stop, tree.step)))
    if isinstance(tree, tuple | list) and has_sizes(tree):
        parts = map(plain, tree)
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def has_sizes(tree: Any) -> bool:
    """Return whether there is a FreeSize among the values, or in a slice."""
    for _, leaf in leaves(tree):
        parts = (leaf.start, leaf.stop, leaf.step) if isinstance(leaf, slice) else (leaf,)
        if any(isinstance(each, FreeSize) for each in parts):
            return True
    return False


# --- written -------------------------------------------------------------------------------------


def written(r: Recorder, sizes: Any, dtype: Any) -> str:
    """Return the name of a size, or of a list of them, that the model computes."""
    if isinstance(sizes, FreeSize):
        (name,) = r.node("Squeeze", [_node(r, sizes.expression), _node(r, 0)])
    else:
        parts = [_node(r, _expression(each)) for each in sizes]
        name = parts[0] if len(parts) == 1 else r.node("Concat", parts, axis=0)[0]
    kind = np.dtype(np.int64 if dtype is None else dtype)
    if kind == np.int64:
        return name
    return r.node("Cast", [name], to=helper.np_dtype_to_tensor_dtype(kind))[0]


def _node(r: Recorder, expression: Expression) -> str:
    """Return the name of an array of one size, the same for each use of it."""
    if expression not in r.written:
        r.written[expression] = _new_node(r, expression)
    return r.written[expression]


def _new_node(r: Recorder, expression: Expression) -> str:
    if isinstance(expression, int):
        return r.constant([expression], np.int64)
    op, *operands = expression
    if op == "Shape":
        value, axis = operands
        if (op, value) not in r.written:
            (r.written[op, value],) = r.node("Shape", [value])
        return r.node("Gather", [r.written[op, value], _node(r, axis)], axis=0)[0]
    a, b = (_node(r, each) for each in operands)
    if op == "Div":  # which rounds towards 0, and Python down
        (a,) = r.node("Sub", [a, *r.node("Mod", [a, b])])
    return r.node(op, [a, b])[0]


# --- read ----------------------------------------------------------------------------------------


@restoring
def followed(net: nn.Module) -> Iterator[Calls]:
    """Have tensors ask the recorder for their sizes, where a net asks for them.

    What ``len`` returns is always a plain int: in the files of the net's classes another function
    has its name meanwhile.
    """
    before: Any = vars(Tensor)["shape"], vars(Tensor)["size"]

    def shape(self: Tensor) -> Any:
        read = getattr(innermost_mode(), "read_sizes", None)
        return before[0].__get__(self) if read is None else read(self)

    def size(self: Tensor, dim: int | None = None) -> Any:
        return shape(self) if dim is None else shape(self)[self._axis(dim)]

    def length(value: Any) -> int:
        return shape(value)[0] if isinstance(value, Tensor) and value.ndim else len(value)

    files = [names for names in files_of(net) if "len" not in names]
    owner: Any = Tensor
    yield (
        *((names.pop, ("len", None)) for names in files),
        (setattr, (owner, "shape", before[0])),
        (setattr, (owner, "size", before[1])),
    )
    owner.shape, owner.size = property(shape, doc=before[0].__doc__), size
    for names in files:
        names["len"] = length


def sizes_at(value: Tensor, name: str, shapes: Sequence[Sequence[int]]) -> Size:
    """Return the sizes of a tensor of a name, which has these shapes in the runs."""
    columns = zip(*shapes, strict=True)
    return Size(
        size if len(set(column)) == 1 else FreeSize(size, ("Shape", name, axis), tuple(column))
        for axis, (size, column) in enumerate(zip(value.shape, columns, strict=True))
    )
