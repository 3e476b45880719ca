"""Sequences of different lengths in one tensor: padded, or packed for recurrent layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from convcore._errors import names as _names
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, dtypes, scalar_name, wrap
from convcore._tensor.creation import as_tensor, full, tensor
from convcore.functions.indexing.index_along import index_select
from convcore.functions.indexing.indexing import index_put
from convcore.functions.shapes.joining import cat
from convcore.functions.shapes.shape import reshape, transpose

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedSequence_(NamedTuple):  # PyTorch's name
    """The fields of `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """Sequences one time step after the other, the longest first in each; `pack_sequence` makes it.

    Attributes
    ----------
    data : Tensor (sum of batch_sizes, *)
    batch_sizes : Tensor of int64
        How many sequences have each time step.
    sorted_indices : Tensor of int64, or None if the sequences were sorted
        The sequences' numbers, from the longest to the shortest.
    unsorted_indices : Tensor of int64 or None
        Where each sequence went.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Make one of its fields; without ``batch_sizes``, of the pair (data, batch_sizes)."""
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as `Tensor.to` does."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else type(self)(data, *self[1:])

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences themselves."""
        return self.to(*args, device="cpu", **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Raise RuntimeError: this library computes on the CPU."""
        return self.to(device="cuda")

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self._as("float64")

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self._as("float32")

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self._as("float16")

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self._as("int64")

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self._as("int32")

    def short(self) -> PackedSequence:
        """Convert the data to int16."""
        return self._as("int16")

    def char(self) -> PackedSequence:
        """Convert the data to int8."""
        return self._as("int8")

    def byte(self) -> PackedSequence:
        """Convert the data to uint8."""
        return self._as("uint8")

    def _as(self, name: str) -> PackedSequence:
        return self.to(getattr(dtypes, name))

    @property
    def is_cuda(self) -> bool:
        """False."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Return False: memory is not pinned."""
        return False


@names_arguments
def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes another one; None of None."""
    return None if permutation is None else wrap(np.argsort(permutation._array, kind="stable"))


# Padded and packed


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch of sequences.

    Parameters
    ----------
    input : (T, N, *), or (N, T, *) if ``batch_first``
    lengths : N ints, or Tensor
        Of the sequences, each from 1 to T.
    batch_first : bool
    enforce_sorted : bool
        Whether the sequences must be in the order of their lengths, the longest first; else they
        are sorted.

    Raises
    ------
    RuntimeError
        A length that is not possible, too few or too many of them, or not sorted.
    """
    if not input._array.size:
        raise RuntimeError("Cannot pack empty tensors.")
    numbers = np.asarray(as_tensor(lengths).long()._array)
    if numbers.ndim != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{numbers.ndim}D cpu {scalar_name(numbers.dtype)} tensor"
        )
    x = transpose(input, 0, 1) if batch_first else input
    order = None
    if not enforce_sorted:
        order = np.argsort(-numbers, kind="stable")
        numbers = numbers[order]
    _check_lengths(numbers, x.size(0), x.size(1))
    sizes = _batch_sizes(numbers)
    columns = np.arange(x.shape[1]) if order is None else order
    places = _time_steps(sizes, x.shape[1], columns)
    data = index_select(reshape(x, (-1, *x.shape[2:])), 0, wrap(places))
    return PackedSequence(data, wrap(sizes), None if order is None else wrap(order))


def _check_lengths(lengths: np.ndarray, longest: int, n: int) -> None:
    if len(lengths) != n:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={n})"
        )
    if n and lengths.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if n and lengths[0] > longest:
        raise RuntimeError(
            f"Expected lengths of at most {longest}, the size of the input's time axis, but got "
            f"{lengths[0]}"
        )


def _batch_sizes(lengths: np.ndarray) -> np.ndarray:
    """Return how many sequences have each time step."""
    steps = np.arange(lengths.max(initial=0))
    return np.count_nonzero(lengths > steps[:, np.newaxis], 1).astype(np.int64)


def _time_steps(sizes: np.ndarray, n: int, columns: np.ndarray) -> np.ndarray:
    """Return where each packed row is in (T, N) counted through."""
    return np.concatenate([step * n + columns[:size] for step, size in enumerate(sizes)])


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pad packed sequences: the inverse of `pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
    batch_first : bool
    padding_value : float
        What stands behind the end of a sequence.
    total_length : int, optional
        T, by default that of the longest sequence.

    Returns
    -------
    padded : (T, N, *), or (N, T, *) if ``batch_first``
    lengths : Tensor of int64, (N,)

    Raises
    ------
    ValueError
        ``total_length`` is too small.
    """
    data, batch_sizes, _, unsorted = sequence
    sizes = batch_sizes._array
    if not sizes.size:
        raise RuntimeError("batch_sizes can not be empty")
    n, longest = int(sizes[0]), len(sizes)
    total = longest if total_length is None else total_length
    if total < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {longest}"
        )
    lengths = np.count_nonzero(sizes[:, np.newaxis] > np.arange(n), 0).astype(np.int64)
    places = _time_steps(sizes, n, np.arange(n))
    padded = _padded(data, places, (total, n, *data.shape[1:]), padding_value)
    if unsorted is not None:
        padded = index_select(padded, 1, unsorted)
        lengths = lengths[unsorted._array]
    return transpose(padded, 0, 1) if batch_first else padded, wrap(lengths)


def _padded(rows: Tensor, places: np.ndarray, shape: Sequence[int], value: Any) -> Tensor:
    """Return rows at their places in a tensor that is filled with a value."""
    blank = full((shape[0] * shape[1], *shape[2:]), value, dtype=rows.dtype)
    return reshape(index_put(blank, (wrap(places),), rows), tuple(shape))


# Lists of sequences


@names_arguments
def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences, padded to the length of the longest.

    Parameters
    ----------
    sequences : Tensors (length, *)
    batch_first : bool
    padding_value : float
    padding_side : 'right' or 'left'
        Whether the padding stands behind or before a sequence.

    Returns
    -------
    (T, N, *), or (N, T, *) if ``batch_first``

    Raises
    ------
    RuntimeError
        There are no sequences, they do not fit together, or it is another side.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    parts = tuple(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    lengths = [part.shape[0] for part in parts]
    longest, n = max(lengths), len(parts)
    starts = [0 if padding_side == "right" else longest - length for length in lengths]
    steps = [
        np.arange(start, start + length) for start, length in zip(starts, lengths, strict=True)
    ]
    if batch_first:
        places, sizes = [number * longest + step for number, step in enumerate(steps)], (n, longest)
    else:
        places, sizes = [step * n + number for number, step in enumerate(steps)], (longest, n)
    rows = cat(parts)
    return _padded(rows, np.concatenate(places), (*sizes, *parts[0].shape[1:]), padding_value)


@names_arguments
def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences of a padded batch, each without its padding.

    Parameters
    ----------
    padded_sequences : (T, N, *), or (N, T, *) if ``batch_first``
    lengths : N ints, or Tensor
    batch_first : bool
    """
    each = padded_sequences if batch_first else transpose(padded_sequences, 0, 1)
    return [each[number][: int(length)] for number, length in enumerate(lengths)]


@names_arguments
def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences, Tensors (length, *); see `pack_padded_sequence`."""
    lengths = tensor([len(sequence) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


_names.explain_names(__name__)
