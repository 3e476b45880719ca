"""Linear algebra under PyTorch's names: torch.linalg.

>>> import convcore
>>> convcore.linalg.norm(convcore.tensor([3.0, 4.0]))
tensor(5.)
"""

from typing import TYPE_CHECKING

from convcore._errors import names as _names
from convcore.functions import matmul
from convcore.functions._support.out import with_out as _with_out
from convcore.functions.linalg import (
    LinAlgError,
    cholesky,
    cholesky_ex,
    cross,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    inv_ex,
    lstsq,
    matrix_norm,
    norm,
    pinv,
    qr,
    slogdet,
    solve,
    solve_ex,
    solve_triangular,
    svd,
    svdvals,
    vector_norm,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "matmul",
    "matrix_norm",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "vector_norm",
]

# Those that take no `out`, as in PyTorch, and matmul, which has it already.
_WITHOUT = {"LinAlgError", "lstsq", "matmul"}

if not TYPE_CHECKING:  # which would find no misspelt names
    globals().update(
        (name, _with_out(f"linalg.{name}", globals()[name], __name__))
        for name in __all__
        if name not in _WITHOUT
    )

_names.explain_names(__name__)
