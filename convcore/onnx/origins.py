"""Where the tensors of a loaded net are stored in the model's file, element by element.

Tensors that are constant when a net is built are either stored in the file or computed from stored
ones.  Many computations only rearrange elements: each element's place in the file is known then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from onnx import AttributeProto, TensorProto

import convcore
from convcore import Tensor
from convcore.autograd import no_grad
from convcore.onnx.operators import OPERATORS
from convcore.onnx.values import Value, array_of, value_of

# Operators whose results are elements of their first input, or of all: converted or rearranged.
_REARRANGING = frozenset(
    {
        *("Cast", "Concat", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze"),
        *("Transpose", "Unsqueeze"),
    }
)


class Stored(NamedTuple):
    """A tensor of the file.

    Attributes
    ----------
    proto : TensorProto or AttributeProto
        The attribute: of a node Constant that holds numbers in no tensor.
    label : str
        For messages.
    value : Tensor
        As it was read.
    """

    proto: TensorProto | AttributeProto
    label: str
    value: Tensor


class Computed(NamedTuple):
    """A result of a node that was computed when the net was built."""

    op_type: str
    options: dict[str, Any]
    inputs: tuple[Value, ...]

    def sources(self) -> tuple[Value, ...]:
        """Return the inputs whose elements the result has or depends on: not axes and indices."""
        is_one = self.op_type in _REARRANGING and self.op_type != "Concat"
        return self.inputs[:1] if is_one else self.inputs


Origins = dict[Tensor, Stored | Computed]


def stored_tensors(tensor: Tensor, origins: Origins) -> Iterator[Stored]:
    """Yield the stored tensors that a tensor was computed from, each once."""
    seen, rest = set(), [tensor]
    while rest:
        value = rest.pop()
        if not isinstance(value, Tensor) or value in seen or value not in origins:
            continue
        seen.add(value)
        origin = origins[value]
        if isinstance(origin, Stored):
            yield origin
        else:
            rest += reversed(origin.sources())


class Places:
    """Numbers of stored elements: they count on from one stored tensor to the next.

    Parameters
    ----------
    origins : Origins
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._first: dict[int, int] = {}  # of each stored tensor, by the id of its proto
        self._next = 0

    def first(self, stored: Stored) -> int:
        """Return the number of a stored tensor's first element."""
        if id(stored.proto) not in self._first:
            self._first[id(stored.proto)] = self._next
            self._next += stored.value.numel()
        return self._first[id(stored.proto)]

    def are_same(self, tensor: Tensor, other: Tensor) -> bool:
        """Return whether two tensors have the same stored elements in the same order."""
        if tensor is other:
            return True
        if (tensor.shape, tensor.dtype) != (other.shape, other.dtype):
            return False
        places = self.of(tensor)
        return bool((places >= 0).all()) and np.array_equal(places, self.of(other))

    def of(self, tensor: Tensor) -> np.ndarray:
        """Return the number of the stored element that each element is; -1 where it is none."""
        with no_grad():
            return array_of(self._of(tensor))

    def _of(self, tensor: Tensor) -> Tensor:
        origin = self._origins.get(tensor)
        if isinstance(origin, Stored) and tensor.is_floating_point():
            first = self.first(origin)
            return convcore.arange(first, first + tensor.numel()).reshape(tensor.shape)
        if not isinstance(origin, Computed) or origin.op_type not in _REARRANGING:
            return value_of(np.full(tensor.shape, -1))
        inputs = [self._of(each) for each in origin.sources()]
        if origin.op_type == "Cast":
            return inputs[0]
        function = OPERATORS[origin.op_type].function
        return function(*inputs, *origin.inputs[len(inputs) :], **origin.options)
