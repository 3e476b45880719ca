"""Random samples: Bernoulli trials, multinomial draws, random permutations.

References
----------
R. Durstenfeld, Algorithm 235, Communications of the ACM 7(7), 1964: permutations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import hinting
from convcore._tensor import Tensor, contiguous_format, dtypes, scalar_name, wrap
from convcore._tensor.creation.arguments import (
    DtypeLike,
    allocated,
    check_tensor,
    checked_int,
    checked_number,
    leaf,
    shape,
    too_large,
)
from convcore._tensor.creation.memory import array_like
from convcore._tensor.creation.out import out_dtype
from convcore._tensor.device import check_device, is_meta
from convcore._tensor.meta import meta
from convcore.engine.runtime.errstate import quiet
from convcore.random.fill import check_floating, count_of, fill_bernoulli
from convcore.random.generator import Generator, resolve

__all__ = ["bernoulli", "multinomial", "randperm"]


def bernoulli(
    input: Tensor,
    p: float | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return 1 with the probability that each element of ``input`` is, and else 0.

    Parameters
    ----------
    input : the probabilities; the result has their size and dtype, and is contiguous.
    p : one probability for all, instead of those in ``input``.

    Raises
    ------
    RuntimeError
        A probability is not within [0, 1].
    """
    array = array_like("bernoulli", input, None, None, contiguous_format)
    if p is None:
        check_floating("bernoulli", array)
    else:
        p = checked_number("bernoulli", p, "p", real=True)
    if array.dtype.kind == "c":
        kernel = f"bernoulli_{'tensor_cpu_self' if p is None else 'scalar_cpu'}_"
        kind = scalar_name(array.dtype)
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")
    if out is not None:
        array = np.empty(array.shape, out_dtype("bernoulli", out, None))
    fill_bernoulli(array, input._array if p is None else p, generator)
    return leaf(array, out=out)


@hinting
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: DtypeLike = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a random permutation of the integers from 0 to n - 1.

    Examples
    --------
    >>> import convcore
    >>> _ = convcore.manual_seed(0)
    >>> randperm(4)
    tensor([0, 1, 3, 2])
    """
    check_device(device, layout)
    (n,) = shape("randperm", (checked_int("randperm", "n", n),))
    if out is not None:
        kind = out_dtype("randperm", out, dtype)
    else:
        kind = dtypes.as_numpy(dtypes.int64 if dtype is None else dtype)
    if n > count_of(kind):
        raise RuntimeError(
            f"n cannot be greater than {count_of(kind)} for {scalar_name(kind)} type."
        )
    if is_meta(device):
        return leaf(allocated(meta, (n,), kind), requires_grad, device)
    if n * kind.itemsize >= 2**63:
        raise too_large((n,))
    generator = resolve(generator)
    with generator._lock:
        words = generator._uint32(max(n - 1, 0))
    left = np.arange(n, 1, -1)
    partners = (np.arange(n - 1) + words % left).tolist() if n > 1 else []
    order = list(range(n))
    for place, partner in enumerate(partners):
        order[place], order[partner] = order[partner], order[place]
    return leaf(np.array(order, kind), requires_grad, device, out)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn with probability proportional to the weights ``input``.

    Parameters
    ----------
    input : (K,) or (M, K) weights of a floating dtype, not negative, each row with a positive sum.
    num_samples : draws from each row.
    replacement : whether an index may be drawn again.

    Returns
    -------
    (num_samples,) or (M, num_samples) int64.  With replacement the draws are PyTorch's; without,
    they are where PyTorch does not use Intel's MKL.

    Raises
    ------
    RuntimeError
        A weight is negative or not finite, a row has no weight, or, without replacement, more
        indices are asked for than there are.
    """
    check_tensor("multinomial", "input", input)
    weights = input._array
    check_floating("multinomial", weights)
    if not 1 <= weights.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    num_samples = checked_int("multinomial", "num_samples", num_samples)
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = np.atleast_2d(weights)
    if not (rows.sum(axis=1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    generator = resolve(generator)
    # A single index is drawn by the other method, as in PyTorch.
    draw = _with_replacement if replacement and num_samples > 1 else _without_replacement
    drawn = draw(rows, num_samples, generator)
    return wrap(drawn if weights.ndim == 2 else drawn[0])


def _with_replacement(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Look uniform numbers up in the cumulative distribution of each row."""
    cumulative = np.cumsum(rows, axis=1)
    cumulative /= cumulative[:, -1:]
    with generator._lock:
        uniform = generator._uniform(len(rows) * count, np.dtype(np.float64))
    looked_up = [
        np.searchsorted(row, draws)
        for row, draws in zip(cumulative, uniform.reshape(-1, count), strict=True)
    ]
    return np.array(looked_up, np.int64).reshape(-1, count)


def _without_replacement(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Take the indices of the largest ratios of weight to exponential number.

    The largest is at index i with probability w_i / sum(w), and each next one likewise among the
    rest.
    """
    with generator._lock:
        uniform = generator._uniform(rows.size, np.dtype(np.float64)).reshape(rows.shape)
    waits = -np.log1p(-uniform)
    ratios = np.where(rows > 0, quiet(np.true_divide, rows, waits), -1.0)
    return np.argsort(-ratios, axis=1, kind="stable")[:, :count]
