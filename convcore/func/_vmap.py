"""vmap: a function of single samples applied to a batch, by a loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor
from convcore.func._trees import filled, leaves, spread
from convcore.functions.shapes.joining import stack
from convcore.random import get_rng_state, set_rng_state


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """Return a function that applies ``func`` to each sample of a batch: a loop.

    Parameters
    ----------
    func : callable
        Takes and returns trees of Tensors.
    in_dims : int, None, or a tree of them
        The axis of each positional argument that counts samples; None for what is the same for all.
    out_dims : int, None, or a tree of them
        The axis of each result that shall count samples; None takes the first sample's result.
    randomness : 'error', 'different' or 'same'
        Whether random numbers in ``func`` are an error, or are drawn anew for each sample, or once
        for all.
    chunk_size : ignored

    Raises
    ------
    ValueError
        Axes do not fit the arguments or results, or batches differ in size.
    RuntimeError
        Random numbers were drawn, with ``randomness`` 'error'; or it is none of the three.

    Notes
    -----
    PyTorch computes all samples at once; here ``func`` is called once a sample, so random numbers
    are drawn in another order than there.

    Examples
    --------
    >>> import convcore
    >>> vmap(convcore.dot)(convcore.ones(3, 2), convcore.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        where = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
        values, dims = _checked(func, args, in_dims, where)
        size = _batch_size(values, dims, where)
        state = get_rng_state()
        results = []
        for number in range(size):
            if randomness == "same":
                set_rng_state(state)
            sample = [
                value if dim is None else value.select(dim, number)
                for value, dim in zip(values, dims, strict=True)
            ]
            results.append(func(*filled(args, sample), **kwargs))
        if randomness == "error" and not bool((get_rng_state() == state).all()):
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Please either use "
                "the 'same' or 'different' randomness flags on vmap or perform the randomness "
                "operation out of vmap"
            )
        return _joined(func, results, out_dims)

    return mapped


def _name(func: Callable) -> str:
    return getattr(func, "__name__", repr(func))


def _checked(func: Callable, args: tuple, in_dims: Any, where: str) -> tuple[list, list]:
    """Return the arguments' leaves, and the batch axis of each."""
    if not isinstance(in_dims, (int, tuple, list, dict)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    values = list(leaves(args))
    if not values:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you "
            "are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    dims = spread(in_dims, args)
    if dims is None:
        raise ValueError(f"{where}: in_dims is not compatible with the structure of `inputs`.")
    return values, dims


def _batch_size(values: list, dims: list, where: str) -> int:
    sizes = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            continue
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{where}: Got in_dim={dim} for an input but the input is of type {type(value)}. "
                "We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = value.dim()
        if not -rank <= dim < rank:
            raise ValueError(
                f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {rank} so expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        sizes.append(value.shape[dim])
    if not sizes:
        raise ValueError(f"{where}: at least one input must have an axis that counts samples")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    if sizes[0] == 0:
        raise ValueError(f"{where}: the batch is empty, so that the function cannot be called")
    return sizes[0]


def _joined(func: Callable, results: list, out_dims: Any) -> Any:
    """Return the samples' results as batches."""
    first = results[0]
    dims = spread(out_dims, first)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
            "with the structure of `outputs`."
        )
    columns = zip(*[leaves(result) for result in results], strict=True)
    batches = []
    for dim, column in zip(dims, columns, strict=True):
        if dim is None:
            batches.append(column[0])
            continue
        for one in column:
            if not isinstance(one, Tensor):
                raise ValueError(
                    f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type "
                    f"{type(one)}. Did you mean to set out_dims= to None for output?"
                )
        batches.append(stack(list(column), dim))
    return filled(first, batches)
