"""Collation: samples to batches, and arrays to tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from convcore._creation import as_tensor, tensor
from convcore._dtype import float64
from convcore._tensor import Tensor
from convcore.functions import stack

__all__ = ["default_collate", "default_convert"]

np_str_obj_array_pattern = re.compile("[SaUO]")  # dtypes of arrays that become no tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate a list of samples into a batch.

    Parameters
    ----------
    batch : sequence
        Samples: tensors, arrays, numbers, strings, or mappings, tuples and lists of such.

    Returns
    -------
    For tensors, arrays and numbers a tensor with a new first axis, floats as float64; for strings
    what was given; for mappings, and named tuples, one of them with batches as its values; for other
    sequences a list of batches.

    Raises
    ------
    TypeError
        The samples are something else.
    RuntimeError
        Sequences, or tensors, of different sizes.

    Examples
    --------
    >>> import convcore
    >>> default_collate([{"x": 1, "y": (convcore.ones(2), "a")}, {"x": 2, "y": (convcore.ones(2), "b")}])
    {'x': tensor([1, 2]), 'y': [tensor([[1., 1.],
            [1., 1.]]), ('a', 'b')]}
    """  # noqa: E501
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, (str, bytes)):  # also NumPy's, of an array of names
        return batch
    if isinstance(first, (np.ndarray, np.generic)):
        return _of_arrays(batch)
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, Mapping):
        merged = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return _like(first, merged)
    if isinstance(first, Sequence):
        return _of_sequences(batch)
    raise _refused(type(first))


def _of_arrays(batch: Sequence[Any]) -> Tensor:
    arrays = [np.asarray(sample) for sample in batch]
    if arrays[0].dtype.kind not in "biufc":
        raise _refused(arrays[0].dtype)
    return stack([as_tensor(array) for array in arrays], 0)


def _refused(kind: Any) -> TypeError:
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{kind}"
    )


def _of_sequences(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    merged = [default_collate(samples) for samples in zip(*batch, strict=True)]
    if hasattr(first, "_fields"):  # a named tuple
        return type(first)(*merged)
    return merged if isinstance(first, tuple) else _like(first, merged)


def default_convert(data: Any) -> Any:
    """Convert the arrays in a sample to tensors, for a `DataLoader` without batches.

    Parameters
    ----------
    data : object
        A sample; mappings, tuples and lists are searched recursively.

    Returns
    -------
    The same with tensors instead of arrays.
    """
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        return as_tensor(array) if array.dtype.kind in "biufc" else data
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        converted = [default_convert(value) for value in data]
        return converted if isinstance(data, tuple) else _like(data, converted)
    return data


def _like(sample: Any, values: Any) -> Any:
    """Return values in the sample's type, or as they are if it cannot be constructed from them."""
    make: Callable[[Any], Any] = type(sample)
    try:
        return make(values)
    except TypeError:
        return values
