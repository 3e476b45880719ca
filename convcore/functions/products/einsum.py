"""einsum and tensordot: sums of products of tensors whose axes are named by labels.

A label is an int: 0 to 51 for the letters A to Z and a to z, negative for the axes that an ellipsis
stands for, of which -1 is the last.  Each pair of operands is brought to a stack of matrices, so
that the work is done by `bmm`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import index
from typing import Any

from convcore._errors.calls import names_arguments
from convcore._tensor import Tensor
from convcore.engine.integers import as_int
from convcore.functions._support.arguments import check_arguments
from convcore.functions.elementwise.arithmetic import mul
from convcore.functions.products.matmul import bmm
from convcore.functions.reductions.reduce import sum as sum_over
from convcore.functions.shapes.broadcast import broadcast_to
from convcore.functions.shapes.shape import permute, reshape, wrap_dims
from convcore.functions.shapes.slicing import diagonal

__all__ = ["einsum", "tensordot"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

Labels = list[int]
Term = list[Any]  # labels, and Ellipsis at most once


def einsum(*args: Any) -> Tensor:
    """Return the sum of products of tensors that an equation in labels describes.

    Parameters
    ----------
    equation : str
        A term of letters an operand, one letter an axis, with commas between the terms, then, if
        wanted, ``->`` and the term of the result: 'bij,bjk->bik'.  Labels that are not in the
        result are summed over.  Without ``->`` it has those that occur once, in alphabetical order.
        ``...`` stands for any number of axes; they broadcast.  A label that occurs twice in one
        term takes the diagonal.
    operands : tensors of one dtype, or one sequence of them

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        The equation has a fault, or does not go with the operands.
    NotImplementedError
        A product of bool tensors.

    Notes
    -----
    Operands are multiplied from the left to the right; the order is not optimised.  Each may also
    be followed by its term as a list of ints from 0 to 51 and ``...``, without an equation:
    ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Examples
    --------
    >>> import convcore
    >>> einsum("ij,kj->ik", convcore.ones(2, 3), convcore.ones(2, 3))
    tensor([[3., 3.],
            [3., 3.]])
    """
    operands, terms, result = _parsed(args)
    _check_operands(operands, len(terms))
    named = [_labels(position, x, terms[position]) for position, x in enumerate(operands)]
    output = _output_labels(result, named)
    sizes: dict[int, int] = {}
    single = [_diagonal(position, x, named[position], sizes) for position, x in enumerate(operands)]
    factors = [(_expanded(x, labels, sizes), labels) for x, labels in single]
    x, labels = factors[0]
    for position, (y, others) in enumerate(factors[1:], 2):
        later = [label for _, labels in factors[position:] for label in labels]
        x, labels = _contract(x, labels, y, others, list(dict.fromkeys(output + later)), True)
    over = [axis for axis, label in enumerate(labels) if label not in output]
    if over:
        x = sum_over(x, over)
    labels = [label for label in labels if label in output]
    is_operand = labels == output and x is operands[0]
    return permute(x, list(range(len(labels)))) if is_operand else _ordered(x, labels, output)


@names_arguments
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: None = None) -> Tensor:
    """Return the sum of products over pairs of axes.

    Parameters
    ----------
    a, b : Tensor
        The same dtype.
    dims : int, or (axes of a, axes of b)
        An int pairs the last axes of a, so many, with the first of b, in order.
    out : None

    Returns
    -------
    Tensor with the other axes of a, then those of b

    Raises
    ------
    RuntimeError
        The axes do not go together, or the dtypes differ.
    IndexError
        There is no such axis.

    Examples
    --------
    >>> import convcore
    >>> tensordot(convcore.ones(2, 3, 4), convcore.ones(4, 3), dims=([1, 2], [1, 0]))
    tensor([12., 12.])
    """
    check_arguments("tensordot", a=a, b=b)
    if out is not None:
        raise TypeError("tensordot(): argument 'out' is not supported")
    pairs = _pairs(a, b, dims)
    x, y = a._array, b._array
    if x.dtype != y.dtype:
        raise RuntimeError("both inputs should have same dtype")
    left = list(range(x.ndim))
    right = list(range(x.ndim, x.ndim + y.ndim))
    sizes = {}
    for i, j in pairs:
        m, n = x.shape[i], y.shape[j]
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and "
                f"second has size {n} in dim {j}"
            )
        right[j] = left[i]
        sizes[left[i]] = n if m == 1 else m
    summed = set(sizes)
    free = [label for label in left + right if label not in summed]
    for labels, array in ((left, x), (right, y)):
        sizes |= {k: n for k, n in zip(labels, array.shape, strict=True) if k not in summed}
    product, labels = _contract(
        _expanded(a, left, sizes), left, _expanded(b, right, sizes), right, free
    )
    return _ordered(product, labels, free)


def _pairs(a: Tensor, b: Tensor, dims: Any) -> list[tuple[int, int]]:
    """Return the pairs of axes that tensordot is to sum over."""
    ranks = a._array.ndim, b._array.ndim
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, Sequence):
        try:
            count = index(dims)
        except TypeError:
            raise RuntimeError(
                f"tensordot expects dims to be an int or two lists of ints, but got dims={dims}"
            ) from None
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(ranks):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        dims = range(ranks[0] - count, ranks[0]), range(count)
    left, right = ((axes,) if isinstance(axes, int) else axes for axes in dims)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    return list(zip(wrap_dims(left, ranks[0]), wrap_dims(right, ranks[1]), strict=True))


# Parsing the equation


def _parsed(args: tuple) -> tuple[list, list[Term], Term | None]:
    """Return the operands, a term each, and the term of the result if there is one."""
    if args and isinstance(args[0], str):
        equation, *operands = args
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
        if operands:
            left, arrow, right = equation.partition("->")
            result = _read(right, len(left) + 2, "the output") if arrow else None
            return operands, _read_operands(left), result
    elif args and not isinstance(args[0], Tensor):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(args[0]).__name__}"
        )
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    count = len(args) // 2 * 2
    result = _sublist(args[-1]) if count < len(args) else None
    return list(args[0:count:2]), [_sublist(one) for one in args[1:count:2]], result


def _read_operands(text: str) -> list[Term]:
    terms = []
    offset = 0
    for number, part in enumerate(text.split(",")):
        terms.append(_read(part, offset, f"operand {number}"))
        offset += len(part) + 1
    return terms


def _read(text: str, offset: int, where: str) -> Term:
    """Return the labels of one term, which begins at ``offset`` of the equation."""
    term: Term = []
    place = 0
    while place < len(text):
        letter = text[place]
        if text.startswith("...", place):
            if Ellipsis in term:
                raise RuntimeError(
                    f"einsum(): found '.' for {where} for which an ellipsis was already found"
                )
            term.append(Ellipsis)
            place += 2
        elif letter == ".":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        elif letter in LETTERS:
            term.append(LETTERS.index(letter))
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {offset + place} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
        place += 1
    return term


def _sublist(given: Any) -> Term:
    term = [item if item is Ellipsis else as_int(item) for item in given]
    if any(item is not Ellipsis and not 0 <= item < len(LETTERS) for item in term):
        raise ValueError(
            "einsum(): subscript in subscript list is not within the valid range [0, 52)"
        )
    return term


def _check_operands(operands: Sequence, n_terms: int) -> None:
    for position, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 1, "
                f"but got {type(operand).__name__}"
            )
    if len(operands) != n_terms:
        which = "fewer" if len(operands) < n_terms else "more"
        raise RuntimeError(
            f"einsum(): {which} operands were provided than specified in the equation"
        )


def _labels(position: int, x: Tensor, term: Term) -> Labels:
    """Return a label an axis, the ellipsis written out."""
    rank = x._array.ndim
    if Ellipsis not in term:
        if len(term) != rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match "
                f"the number of dimensions ({rank}) for operand {position} and no ellipsis was "
                "given"
            )
        return term
    hidden = rank - len(term) + 1
    if hidden < 0:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({len(term) - 1}) is more than "
            f"the number of dimensions ({rank}) for operand {position}"
        )
    where = term.index(Ellipsis)
    return [*term[:where], *range(-hidden, 0), *term[where + 1 :]]


def _output_labels(result: Term | None, named: list[Labels]) -> Labels:
    """Return the result's labels; without a term of its own, those that occur once."""
    counts = Counter(label for labels in named for label in labels)
    hidden = sorted(label for label in counts if label < 0)
    if result is None:
        return hidden + sorted(label for label in counts if label >= 0 and counts[label] == 1)
    output = [one for item in result for one in (hidden if item is Ellipsis else [item])]
    for label in output:
        if output.count(label) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {LETTERS[label]} appears more than once in the output"
            )
        if label not in counts:
            raise RuntimeError(
                f"einsum(): output subscript {LETTERS[label]} does not appear in the equation for "
                "any input operand"
            )
    return output


# Contraction


def _diagonal(
    position: int, x: Tensor, labels: Labels, sizes: dict[int, int]
) -> tuple[Tensor, Labels]:
    """Return an operand with each label once; put the labels' sizes down."""
    while len(set(labels)) < len(labels):
        first, second = next(
            (i, labels.index(label, i + 1))
            for i, label in enumerate(labels)
            if label in labels[i + 1 :]
        )
        label, shape = labels[first], x._array.shape
        if shape[first] != shape[second]:
            raise RuntimeError(
                f"einsum(): subscript {LETTERS[label]} is repeated for operand {position} but the "
                f"sizes don't match, {shape[second]} != {shape[first]}"
            )
        x = diagonal(x, 0, first, second)
        labels = [one for one in labels if one != label] + [
            label for _ in range(labels.count(label) - 1)
        ]
    for label, size in zip(labels, x._array.shape, strict=True):
        known = sizes.setdefault(label, size)
        if known == 1:
            sizes[label] = size
        elif size not in (1, known):
            shown = LETTERS[label] if label >= 0 else "..."
            raise RuntimeError(
                f"einsum(): subscript {shown} has size {size} for operand {position} which does "
                f"not broadcast with previously seen size {known}"
            )
    return x, labels


def _expanded(x: Tensor, labels: Labels, sizes: dict[int, int]) -> Tensor:
    """Return an operand with axes of size 1 repeated to their labels' sizes."""
    shape = tuple(sizes[label] for label in labels)
    return x if x._array.shape == shape else broadcast_to(x, shape)


def _contract(
    x: Tensor, left: Labels, y: Tensor, right: Labels, kept: Labels, by_element: bool = False
) -> tuple[Tensor, Labels]:
    """Return the product of two operands, summed over the labels that nobody keeps.

    by_element : whether, where nothing is summed, elements are multiplied: in the operands' own
        dtype under autocast, as PyTorch's einsum does
    """
    x, left = _summed(x, left, {*kept, *right})
    y, right = _summed(y, right, {*kept, *left})
    inner = [label for label in left if label in right and label not in kept]
    if by_element and not inner:
        labels = [label for label in kept if label in left or label in right]
        return mul(_aligned(x, left, labels), _aligned(y, right, labels)), labels
    stack = [label for label in left if label in right and label in kept]
    rows = [label for label in left if label not in right]
    columns = [label for label in right if label not in left]
    sizes = dict(zip(left + right, x._array.shape + y._array.shape, strict=True))
    matrices = _matrices(x, left, stack, rows, inner), _matrices(y, right, stack, inner, columns)
    product = (mul if by_element and matrices[0].shape[2] == 1 else bmm)(*matrices)
    labels = stack + rows + columns
    return reshape(product, tuple(sizes[label] for label in labels)), labels


def _aligned(x: Tensor, labels: Labels, wanted: Labels) -> Tensor:
    """Return an operand with an axis for each wanted label, of one element for what it has not."""
    ordered = _ordered(x, labels, [label for label in wanted if label in labels])
    if len(labels) == len(wanted):
        return ordered
    sizes = iter(ordered._array.shape)
    return reshape(ordered, [next(sizes) if label in labels else 1 for label in wanted])


def _summed(x: Tensor, labels: Labels, kept: set[int]) -> tuple[Tensor, Labels]:
    over = [axis for axis, label in enumerate(labels) if label not in kept]
    if not over:
        return x, labels
    return sum_over(x, over, dtype=x.dtype), [label for label in labels if label in kept]


def _matrices(x: Tensor, labels: Labels, *groups: Labels) -> Tensor:
    """Return an operand with one axis for each group of labels."""
    ordered = _ordered(x, labels, [label for group in groups for label in group])
    sizes = iter(ordered._array.shape)
    return reshape(ordered, tuple(math.prod(next(sizes) for _ in group) for group in groups))


def _ordered(x: Tensor, labels: Labels, wanted: Labels) -> Tensor:
    """Return an operand with its axes in the order of some labels."""
    if labels == wanted:
        return x
    return permute(x, [labels.index(label) for label in wanted])


FUNCTIONS_ONLY = __all__
