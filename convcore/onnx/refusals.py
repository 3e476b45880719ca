"""Why a function cannot be exported, and what is written in its place."""

from __future__ import annotations

from typing import Any

NO_TRANSLATION = "it has no translation to ONNX"
READ_VALUES = "it reads values that depend on the input"

# What gives Python a value, or a tensor of a shape that follows from values.
_READERS = frozenset(
    (
        *("__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__"),
        *("__array__", "__format__", "item", "tolist", "numpy", "equal", "allclose", "is_nonzero"),
        *("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount"),
        "histc",
    )
)
_CHOOSE = "torch.where(condition, a, b) chooses by values within the graph"
_ADVICE = {
    **dict.fromkeys(("__bool__", "equal", "allclose", "is_nonzero", "__contains__"), _CHOOSE),
    **dict.fromkeys(
        ("item", "tolist", "numpy", "__int__", "__float__", "__index__", "__array__"),
        "compute with the tensor itself, or give the number to forward from outside",
    ),
    **dict.fromkeys(
        ("nonzero", "argwhere", "masked_select", "where"),
        "torch.where and masked_fill keep the shape; select outside of the net",
    ),
    "unique": "find the different values outside of the net",
    "cumprod": "where all are positive: x.log().cumsum(dim).exp()",
    **dict.fromkeys(
        ("inverse", "inv", "solve", "svd", "qr", "cholesky", "eigh", "det"),
        "ONNX has no linear algebra beside products: compute it outside of the net",
    ),
    "quantile": "x.sort(dim)[0] and a number read quantiles",
    **dict.fromkeys(("multinomial", "randint", "poisson"), "draw outside, and give it to forward"),
    "searchsorted": "(values.unsqueeze(-1) > boundaries).sum(-1)",
    "bucketize": "(values.unsqueeze(-1) > boundaries).sum(-1)",
    "as_strided": "x.unfold(dim, size, step) gives windows",
}


def reads_values(name: str, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Return whether a function gives the net values, by which its course may depend on them."""
    if name == "where":
        return len(args) + len(kwargs) < 2
    if name == "repeat_interleave":
        return len(args) + len(kwargs) < 2
    return name in _READERS


def advice_for(name: str, reason: str) -> str:
    """Return what is written in a function's place; '' where nothing is known."""
    if reason not in (NO_TRANSLATION, READ_VALUES):
        return ""
    return _ADVICE.get(name, "") or _ADVICE.get(name.removesuffix("_"), "")
