"""The same lines run on convcore and on PyTorch, and what came out compared.

A function under test takes the library as its first argument and Tensors as the others:
``lambda lib, x: x.gather(0, lib.tensor([[1]]))``.
"""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch_errors import errors

import convcore


def tensors(lib: Any, arrays: tuple, requires_grad: bool = True) -> list:
    """Return each ndarray as a leaf of the library, its strides kept; anything else as it is."""
    made = []
    for array in arrays:
        if not isinstance(array, np.ndarray):
            made.append(array)
            continue
        tensor = lib.from_numpy(array.copy(order="K"))
        if requires_grad and array.dtype.kind in "fc":
            tensor.requires_grad_()
        made.append(tensor)
    return made


def as_tuple(results: Any) -> tuple:
    """Return one result or several as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def plain(value: Any) -> Any:
    """Return a tensor of either library as an ndarray; anything else as it is."""
    if hasattr(value, "resolve_conj"):
        value = value.resolve_conj()
    return value.numpy(force=True) if hasattr(value, "detach") else value


def same(ours: Any, theirs: Any, what: str, rtol: float | None = None) -> None:
    """Compare two results: type of element, shape and values."""
    ours, theirs = plain(ours), plain(theirs)
    if not isinstance(theirs, np.ndarray):
        assert ours == theirs, what
        return
    assert ours.dtype == theirs.dtype, what
    assert ours.shape == theirs.shape, what
    if rtol is None:
        rtol = 1e-12 if theirs.dtype in (np.float64, np.complex128) else 1e-5
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol, err_msg=what)


def chain(tensor: Any, length: int = 3) -> list[str]:
    """Return the names of the nodes behind a tensor, along the first edges."""
    names = []
    node = tensor.grad_fn
    while node is not None and len(names) < length:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return names


def differentiated(lib: Any, function: Callable, arrays: tuple, seed: int) -> dict[str, Any]:
    """Return a function's results, its gradients, and the gradients of those.

    The gradients are differentiated by the results' gradients, which works for linear functions,
    and by the arguments.
    """
    args = tensors(lib, arrays)
    outs = as_tuple(function(lib, *args))
    found: dict[str, Any] = {f"result {n}": out for n, out in enumerate(outs)}
    leaves = [x for x in args if getattr(x, "requires_grad", False)]
    roots = [out for out in outs if getattr(out, "requires_grad", False)]
    found["requires grad"] = [bool(getattr(out, "requires_grad", False)) for out in outs]
    if not roots:
        return found
    rng = np.random.default_rng(seed)
    weights = tensors(lib, tuple(_random(rng, root) for root in roots))
    grads = lib.autograd.grad(roots, leaves, weights, create_graph=True, allow_unused=True)
    found |= {f"gradient {n}": grad for n, grad in enumerate(grads)}
    known = [n for n, grad in enumerate(grads) if grad is not None and grad.requires_grad]
    if known:  # a gradient of zeros may be missing in one library: each has numbers of its own
        again = [grads[n] for n in known]
        drawn = [_random(np.random.default_rng((seed, n)), grads[n]) for n in known]
        weights_again = tensors(lib, tuple(drawn), False)
        second = lib.autograd.grad(again, weights + leaves, weights_again, allow_unused=True)
        found |= {f"second gradient {n}": grad for n, grad in enumerate(second)}
    return found


def _random(rng: np.random.Generator, like: Any) -> np.ndarray:
    dtype = plain(like).dtype
    values = rng.normal(size=tuple(like.shape))
    if dtype.kind == "c":
        values = values + 1j * rng.normal(size=tuple(like.shape))
    return np.asarray(values, dtype)


def agree(
    torch: Any,
    function: Callable,
    *arrays: Any,
    seed: int = 0,
    strides: bool = False,
    nodes: int = 0,
    rtol: float | None = None,
) -> None:
    """Check that both libraries give the same results and gradients, up to the second order.

    Parameters
    ----------
    strides : compare the results' strides
    nodes : compare the names of so many nodes behind the first result
    """
    ours = differentiated(convcore, function, arrays, seed)
    with warnings.catch_warnings():  # PyTorch gives many of its warnings once a process
        warnings.simplefilter("ignore")
        theirs = differentiated(torch, function, arrays, seed)
    for what, expected in theirs.items():
        given = ours.get(what)
        if expected is None or given is None:  # no gradient, or one of zeros
            known = plain(given if expected is None else expected)
            assert known is None or not known.any(), what
        else:
            same(given, expected, what, rtol)
    if strides:
        assert ours["result 0"].stride() == theirs["result 0"].stride()
    if nodes:
        assert chain(ours["result 0"], nodes) == chain(theirs["result 0"], nodes)


def same_error(torch: Any, function: Callable, *arrays: Any) -> None:
    """Check that convcore raises PyTorch's error with the same text, but for our hints."""

    def raised() -> tuple[str, str]:
        with pytest.raises(Exception) as theirs, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(torch, *tensors(torch, arrays))
        kind = next(kind for kind in theirs.type.__mro__ if kind.__module__ == "builtins")
        return kind.__name__, str(theirs.value)

    kind, text = errors.of(torch, raised)
    with pytest.raises(getattr(builtins, kind)) as ours:
        function(convcore, *tensors(convcore, arrays))
    assert str(ours.value).partition("\nHint: ")[0] == text
