"""One-hot encoding of class indices."""

from __future__ import annotations

import numpy as np

from convcore._errors import hinted, hints
from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor, wrap
from convcore._tensor.creation.arguments import counted
from convcore.functions._support.arguments import check_tensor

__all__ = ["one_hot"]


@names_arguments
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return one-hot vectors on a new last axis: a one at each class index, zeros elsewhere.

    Parameters
    ----------
    input : Tensor of int64
        Classes, counted from 0.
    num_classes : int
        The size of the new axis; -1 is one more than the largest class.

    Returns
    -------
    Tensor of int64

    Raises
    ------
    RuntimeError
        The dtype is not int64; a class is negative, or not smaller than ``num_classes``; there are
        no classes to tell their number from.

    Examples
    --------
    >>> import convcore
    >>> one_hot(convcore.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check_tensor("one_hot", input)
    classes = input._array
    if classes.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if classes.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if classes.min(initial=0) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(classes.max(initial=-1))
    if num_classes == -1:
        num_classes = largest + 1
    elif largest >= num_classes:
        raise hinted(
            RuntimeError("Class values must be smaller than num_classes."),
            hints.INDEX_RANGE.format(largest, num_classes - 1),
        )
    return wrap((classes[..., None] == counted(num_classes)).astype(np.int64))
