"""Collation: samples to batches, and arrays to tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from convcore._errors import hinted, hints
from convcore._tensor import Tensor
from convcore._tensor.creation import as_tensor, tensor
from convcore._tensor.dtypes import float64
from convcore.functions import stack

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
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(
    batch: Sequence[Any], *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None
) -> Any:
    """Collate a list of samples into a batch, each type by its own function.

    Parameters
    ----------
    batch : sequence
    collate_fn_map : dict, optional
        Functions by type, or tuple of types, of what is collated.  A function is called with the
        samples, and with the keyword ``collate_fn_map``.  Other mappings and sequences are
        searched.
    """
    first = batch[0]
    functions = collate_fn_map or {}
    if type(first) in functions:
        return functions[type(first)](batch, collate_fn_map=collate_fn_map)
    for kinds, function in functions.items():
        if isinstance(first, kinds):
            return function(batch, collate_fn_map=collate_fn_map)
    recurse = partial(collate, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        merged = {key: recurse([sample[key] for sample in batch]) for key in first}
        return _like(first, merged)
    if isinstance(first, Sequence):
        return _of_sequences(batch, recurse)
    raise _refused(type(first))


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Stack tensors."""
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Stack NumPy's arrays, or its numbers."""
    arrays = [np.asarray(sample) for sample in batch]
    if arrays[0].dtype.kind not in "biufc":
        raise _refused(arrays[0].dtype)
    return stack([as_tensor(array) for array in arrays], 0)


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Return a tensor of float64."""
    return tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Tensor:
    """Return a tensor of int64."""
    return tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """Return the strings as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    str: collate_str_fn,  # before NumPy's numbers: also NumPy's, of an array of names
    bytes: collate_str_fn,
    np.ndarray: collate_numpy_array_fn,
    np.generic: collate_numpy_array_fn,
    float: collate_float_fn,
    int: collate_int_fn,
}


def _refused(kind: Any) -> TypeError:
    error = TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{kind}"
    )
    return hinted(error, hints.of_pytorch(kind))


def _of_sequences(batch: Sequence[Any], recurse: Callable[[Any], Any]) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    merged = [recurse(samples) for samples in zip(*batch, strict=True)]
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
