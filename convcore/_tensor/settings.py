"""PyTorch's switches: deterministic algorithms, matrix products, `compile`, the default type."""

from __future__ import annotations

from typing import Any

import numpy as np

from convcore._errors.calls import hinting
from convcore._tensor import dtypes
from convcore._tensor.dtype_names import from_legacy_name
from convcore.engine.conv.selection import current, select

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_default_tensor_type",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]


class _Determinism:
    enabled = False
    warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms: all are, and uninitialised memory is filled.

    `empty` and the like then give NaN, or the largest integer, as does ``resize_`` for what is new.

    Parameters
    ----------
    mode : bool
        The answer of `are_deterministic_algorithms_enabled`.
    warn_only : bool
        The answer of `is_deterministic_algorithms_warn_only_enabled`.

    Raises
    ------
    TypeError
        One of them is not a bool.
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {name} must be bool, not "
                f"{type(value).__name__}"
            )
    _Determinism.enabled = mode
    _Determinism.warn_only = warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Return the ``mode`` of `use_deterministic_algorithms`; results are deterministic anyway."""
    return _Determinism.enabled


def unset(array: np.ndarray) -> np.ndarray:
    """Return an uninitialised array, filled if deterministic algorithms are asked for."""
    if _Determinism.enabled:
        kind = array.dtype.kind
        array.fill(np.nan if kind in "fc" else kind == "b" or np.iinfo(array.dtype).max)
    return array


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the ``warn_only`` of `use_deterministic_algorithms`."""
    return _Determinism.warn_only


def set_default_tensor_type(t: Any) -> None:
    """Set the default floating-point dtype by a type such as ``DoubleTensor``, or by its name.

    `set_default_dtype` is the newer way.

    Parameters
    ----------
    t : HalfTensor, FloatTensor or DoubleTensor, or a name such as 'torch.DoubleTensor'

    Raises
    ------
    TypeError
        It is not such a type.
    ValueError
        It is a string, but not such a name.

    Examples
    --------
    >>> import convcore
    >>> set_default_tensor_type(convcore.DoubleTensor)
    >>> convcore.get_default_dtype()
    torch.float64
    >>> set_default_tensor_type("torch.FloatTensor")
    """
    dtype = dtypes.of(from_legacy_name(t)) if isinstance(t, str) else getattr(t, "dtype", None)
    if not isinstance(dtype, dtypes.dtype) or not isinstance(t, str | type):
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    dtypes.set_default_dtype(dtype)


# PyTorch's name -> what float32 products of matrices may be computed in, as it is set by PyTorch.
_MATMUL_PRECISIONS = {"highest": "ieee", "high": "tf32", "medium": "bf16"}


def get_float32_matmul_precision() -> str:
    """Return 'highest', 'high' or 'medium': what `set_float32_matmul_precision` set."""
    names = {precision: name for name, precision in _MATMUL_PRECISIONS.items()}
    return names.get(current().matmul, "highest")


def set_float32_matmul_precision(precision: str) -> None:
    """Let products of float32 matrices round their factors to bfloat16: 'medium'.

    'highest' and 'high' round nothing.  It sets ``backends.mkldnn.matmul.fp32_precision``;
    convolutions have a switch of their own, as in PyTorch: ``backends.mkldnn.conv.fp32_precision``.

    Raises
    ------
    RuntimeError
        Another name; PyTorch warns of it.
    """
    if precision not in _MATMUL_PRECISIONS:
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', and 'medium'.")
    select(matmul=_MATMUL_PRECISIONS[precision])


@hinting
def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """Return the model, or a decorator that returns what it decorates: nothing is compiled.

    PyTorch's other arguments change nothing. `convcore.optimize_for_inference` makes a net faster.

    Examples
    --------
    >>> from convcore import nn
    >>> compile(nn.ReLU(), mode="reduce-overhead")
    ReLU()
    """
    return model if model is not None else lambda function: function
