"""`torch._foreach_*`: a method of Tensor for each tensor of a list, which optimizers call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convcore import Tensor, full_like, linalg

# Whose second operand may be a number here, and only a tensor in the method.
_WITH_NUMBERS = ("maximum", "minimum")
# Which write a method's result into the tensor: Tensor has no maximum_.
_COPIED = ("maximum_", "minimum_", "copy_")


def function(name: str) -> Callable | None:
    """Return the function '_foreach_add_' for lists; None if Tensor has no such method.

    Operands are lists too, or for all tensors.
    """
    method = name.removeprefix("_foreach_")
    if method == "norm":
        return _norms
    if not (hasattr(Tensor, method) or method in _COPIED):
        return None

    def each(tensors: Sequence[Tensor], *operands: Any, **options: Any) -> list[Tensor]:
        length = len(tensors)
        columns = [x if isinstance(x, list | tuple) else [x] * length for x in operands]
        named = {n: x if isinstance(x, list | tuple) else [x] * length for n, x in options.items()}
        return [
            _apply(method, tensor, *(column[i] for column in columns), **_row(named, i))
            for i, tensor in enumerate(tensors)
        ]

    return each


def _row(named: Mapping[str, Sequence], place: int) -> dict[str, Any]:
    return {name: column[place] for name, column in named.items()}


def _apply(method: str, tensor: Tensor, *operands: Any, **options: Any) -> Tensor:
    plain = method.rstrip("_")
    if plain in _WITH_NUMBERS and not isinstance(operands[0], Tensor):
        operands = (full_like(tensor, operands[0]),)
    if plain in ("addcmul", "addcdiv") and len(operands) == 3:
        *operands, options["value"] = operands  # type: ignore[assignment]
    if method in _COPIED:
        return tensor.copy_(getattr(tensor, plain)(*operands) if plain != "copy" else operands[0])
    return getattr(tensor, method)(*operands, **options)


def _norms(tensors: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> list[Tensor]:
    return [linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in tensors]
