"""Gradient checking by central finite differences.

A complex number counts as two real coordinates, its real and imaginary part.  A function then maps
real vectors to real vectors, and PyTorch's gradient of a complex tensor is the product with the
transposed Jacobian, so that one comparison serves real and complex functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore._tensor.dtypes import INEXACT
from convcore.autograd.differentiate import grad
from convcore.autograd.function import Function
from convcore.engine.runtime.storages import may_overlap

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Gradients and finite differences disagree."""


def gradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients of ``func`` at ``inputs`` against central differences.

    Parameters
    ----------
    func : callable(*inputs) -> Tensor or sequence
        Must be deterministic.  Outputs that do not require grad are not checked.
    inputs : Tensor or sequence
        Gradients with respect to the tensors that require grad are checked; they should be of
        float64 or complex128.  Differences are taken by moving their elements in place, so that
        func may read them otherwise than as arguments: as parameters of a module, for instance.
        Afterwards they have their values again.
    eps : step of the differences
    atol, rtol : the tolerance is ``|analytical - numerical| <= atol + rtol * |numerical|``
    raise_exception : raise if the check fails, instead of returning False
    nondet_tol : tolerated difference between two passes over the same graph
    check_undefined_grad : also check that backward accepts None for outputs without a gradient
    check_grad_dtypes : also check that gradients have the dtypes of their inputs
    check_batched_grad, check_batched_forward_grad, check_forward_ad
        Must be False: there are no batched gradients, and there is no forward mode.
    check_backward_ad : whether there is anything to check
    fast_mode : compare along one random direction an input and an output, not whole Jacobians
    masked : for sparse tensors, which there are none of

    Returns
    -------
    bool : whether all checks hold

    Raises
    ------
    NotImplementedError
        A check of batched gradients or of forward mode is asked for.
    GradcheckError
        A check fails; the message shows both Jacobians, with a row for each element of the input
        and a column for each of the output, two of each for a complex element.
    ValueError
        No input requires grad.
    RuntimeError
        Elements of an input share memory.

    Notes
    -----
    Calls func twice for each element of the inputs, and runs backward twice for each element of the
    outputs; in fast mode, twice for each input and output.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(3, dtype=convcore.float64, requires_grad=True)
    >>> gradcheck(lambda x: x * x, x)
    True
    """
    _refuse_forward_mode(check_batched_grad, check_batched_forward_grad, check_forward_ad)
    inputs = _as_tuple(inputs)
    _check_inputs(inputs)
    if not check_backward_ad:
        return True
    comparison = _Comparison(func, inputs, eps)
    try:
        if comparison.outputs:
            compare = _compare_directions if fast_mode else _compare_jacobians
            compare(comparison, atol, rtol, nondet_tol)
            _check_zero(comparison, check_grad_dtypes)
            if check_undefined_grad:
                _check_undefined(comparison)
        else:
            _check_constant(comparison, atol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable,
    inputs: Tensor | Sequence,
    grad_outputs: Tensor | Sequence | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of ``func`` against central differences of its gradients.

    Parameters
    ----------
    func, inputs
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensors
        The outputs' gradients at which to check; drawn at random if not given.
    gen_non_contig_grad_outputs : draw them with gaps in memory between their elements
    check_fwd_over_rev, check_rev_over_rev
        As check_forward_ad and check_backward_ad of `gradcheck`.
    eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes
        As for `gradcheck`, as are check_batched_grad, fast_mode and masked.

    Returns
    -------
    bool : whether all checks hold

    Raises
    ------
    GradcheckError, ValueError
        As `gradcheck`.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.ones(3, dtype=convcore.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x * x, x)
    True
    """
    inputs = _as_tuple(inputs)
    _check_inputs(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        grad_outputs = _random_gradients(outputs, gen_non_contig_grad_outputs)
    grad_outputs = _as_tuple(grad_outputs)

    def gradients(*args: Any) -> tuple:
        args, given = args[: len(inputs)], args[len(inputs) :]
        wanted = _differentiable(args)
        outputs = _differentiable(func(*args))
        found = grad(outputs, wanted, given, create_graph=True, allow_unused=True)
        return tuple([gradient for gradient in found if gradient is not None])

    return gradcheck(
        gradients,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )


def _as_tuple(values: Any) -> tuple:
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def _differentiable(values: Any) -> tuple[Tensor, ...]:
    """Return the tensors among some values that require grad."""
    return tuple([v for v in _as_tuple(values) if isinstance(v, Tensor) and v.requires_grad])


def _check_inputs(inputs: tuple) -> None:
    if not _differentiable(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for number, value in enumerate(inputs):
        if not _differentiable(value):
            continue
        if may_overlap(value._array):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
        if value._array.dtype not in (np.float64, np.complex128):
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                stacklevel=3,
            )


def _refuse_forward_mode(batched: bool, batched_forward: bool, forward: bool) -> None:
    if batched or batched_forward:
        raise NotImplementedError("check_batched_grad: there are no batched gradients to check")
    if forward:
        raise NotImplementedError("check_forward_ad: there is no forward mode to check")


def _random_gradients(outputs: tuple[Tensor, ...], spread: bool = False) -> tuple[Tensor, ...]:
    rng = np.random.default_rng(0)
    gradients = [
        _from_coordinates(rng.standard_normal(_coordinates(output._array).size), output)
        for output in outputs
    ]
    if spread:
        gradients = [wrap(np.repeat(g._array[..., None], 2, -1)[..., 0]) for g in gradients]
    for gradient in gradients:
        gradient.requires_grad = True
    return tuple(gradients)


def _coordinates(array: np.ndarray) -> np.ndarray:
    """Return the elements as a new vector of float64, two a complex number."""
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    return array.astype(kind, order="C").reshape(-1).view(np.float64)


def _from_coordinates(vector: np.ndarray, like: Tensor) -> Tensor:
    """Return a tensor of ``like``'s shape, dtype and memory order; undoes `_coordinates`."""
    array = np.empty_like(like._array)
    array[...] = _elements(vector, array)
    return wrap(array)


def _elements(vector: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return coordinates as an array of ``like``'s shape."""
    values = vector.view(np.complex128) if like.dtype.kind == "c" else vector
    return values.reshape(like.shape)


class _Comparison:
    """A function at one point: products with its Jacobian, and with its transpose."""

    def __init__(self, func: Callable, inputs: tuple, eps: float):
        self.func = func
        self.inputs = inputs
        self.eps = eps
        self.places = [n for n, value in enumerate(inputs) if _differentiable(value)]
        self.wanted = [inputs[n] for n in self.places]
        results = _as_tuple(func(*inputs))
        # Numbers of the results to compare; if none requires grad, all must be constant.
        self.compared = [n for n, value in enumerate(results) if _differentiable(value)]
        self.outputs = [results[n] for n in self.compared]
        if not self.outputs:
            self.compared = [
                n
                for n, value in enumerate(results)
                if isinstance(value, Tensor) and value._array.dtype.kind in INEXACT
            ]
        self.likes = [(results[n].shape, results[n].dtype) for n in self.compared]

    def forward(self, place: int, direction: np.ndarray) -> list[np.ndarray]:
        """Return J u for every output: the central difference along a direction of one input."""
        centre = _coordinates(self.inputs[place]._array)
        above = self._values(place, centre + self.eps * direction)
        below = self._values(place, centre - self.eps * direction)
        return [(a - b) / (2 * self.eps) for a, b in zip(above, below, strict=True)]

    def _values(self, place: int, coordinates: np.ndarray) -> list[np.ndarray]:
        """Return the results where an input has other elements, which are moved in place."""
        array = self.inputs[place]._array
        before = array.copy()
        array[...] = _elements(coordinates, array)
        try:
            results = _as_tuple(self.func(*self.inputs))
            for n, like in zip(self.compared, self.likes, strict=True):
                self._check_like(like, results[n])
            return [_coordinates(results[n]._array) for n in self.compared]
        finally:
            array[...] = before

    def _check_like(self, before: tuple, now: Tensor) -> None:
        for what, a, b in zip(("shape", "dtype"), before, (now.shape, now.dtype), strict=True):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed by {self.eps}, but got: {what}s {a} and {b}."
                )

    def backward(self, output: Tensor, direction: np.ndarray) -> list[np.ndarray]:
        """Return J^T v for every input: the gradient of one output's direction."""
        return [
            np.zeros(_coordinates(x._array).size) if g is None else _coordinates(g._array)
            for x, g in zip(self.wanted, self.gradients(output, direction), strict=True)
        ]

    def gradients(self, output: Tensor, direction: np.ndarray) -> tuple[Tensor | None, ...]:
        """Return the gradients of one output's direction, None where the output is constant."""
        given = _from_coordinates(direction, output)
        return grad(output, self.wanted, given, retain_graph=True, allow_unused=True)


def _compare_jacobians(
    comparison: _Comparison, atol: float, rtol: float, nondet_tol: float
) -> None:
    numerical = list(_numerical_jacobians(comparison))
    for m, output in enumerate(comparison.outputs):
        analytical = _analytical_jacobians(comparison, output)
        again = _analytical_jacobians(comparison, output)
        for place, columns, a, b in zip(
            comparison.places, numerical, analytical, again, strict=True
        ):
            n = columns[m]
            if not np.allclose(a, n, rtol, atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {m} with respect to input {place},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )
            _check_repeated(a, b, nondet_tol)


def _numerical_jacobians(comparison: _Comparison) -> Iterator[list[np.ndarray]]:
    """Yield for each input its Jacobians: one an output, a row an element of the input."""
    for place in comparison.places:
        size = _coordinates(comparison.inputs[place]._array).size
        rows = [comparison.forward(place, unit) for unit in np.eye(size)]
        # An input without elements has Jacobians without rows.
        yield [np.array(part) for part in zip(*rows, strict=True)] or [
            np.zeros((0, _coordinates(output._array).size)) for output in comparison.outputs
        ]


def _analytical_jacobians(comparison: _Comparison, output: Tensor) -> list[np.ndarray]:
    """Return an output's Jacobian for each input, a row an element of the input."""
    size = _coordinates(output._array).size
    columns = [comparison.backward(output, unit) for unit in np.eye(size)]
    return [np.array(part).T for part in zip(*columns, strict=True)] or [
        np.zeros((_coordinates(x._array).size, 0)) for x in comparison.wanted
    ]


def _compare_directions(
    comparison: _Comparison, atol: float, rtol: float, nondet_tol: float
) -> None:
    rng = np.random.default_rng(0)
    us = [_direction(rng, x) for x in comparison.wanted]
    numerical = [comparison.forward(*pair) for pair in zip(comparison.places, us, strict=True)]
    for m, output in enumerate(comparison.outputs):
        v = _direction(rng, output)
        analytical, again = comparison.backward(output, v), comparison.backward(output, v)
        for i, (place, u) in enumerate(zip(comparison.places, us, strict=True)):
            a = float((analytical[i] * u).sum())
            n = float((numerical[i][m] * v).sum())
            # The tolerance of each element of the Jacobian, summed along u and v.
            allowed = atol * float(np.abs(u).sum() * np.abs(v).sum())
            if not np.allclose(a, n, rtol, allowed):
                raise GradcheckError(
                    f"Jacobian mismatch for output {m} with respect to input {place}, along one "
                    f"random direction of each (fast_mode=False shows the Jacobians),\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )
            _check_repeated(analytical[i], again[i], nondet_tol)


def _direction(rng: np.random.Generator, tensor: Tensor) -> np.ndarray:
    """Return a random vector of length 1 in a tensor's coordinates."""
    vector = rng.standard_normal(_coordinates(tensor._array).size)
    return vector / max(np.sqrt((vector * vector).sum()), 1e-300)


def _check_repeated(first: np.ndarray, second: np.ndarray, nondet_tol: float) -> None:
    if not np.allclose(first, second, rtol=0, atol=nondet_tol):
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches numerical "
            f"gradient. The tolerance for nondeterminism was {nondet_tol}."
        )


def _check_zero(comparison: _Comparison, check_dtypes: bool) -> None:
    """Check that gradients of zero are zero."""
    for output in comparison.outputs:
        zero = np.zeros(_coordinates(output._array).size)
        found = comparison.gradients(output, zero)
        for x, gradient in zip(comparison.wanted, found, strict=True):
            if gradient is None:
                continue
            if gradient._array.any():
                raise GradcheckError("backward not multiplied by grad_output")
            if check_dtypes and gradient._array.dtype != x._array.dtype:
                raise GradcheckError(f"a gradient has dtype {gradient.dtype}, its input {x.dtype}")


class _Undefined(Function):
    """The identity, whose gradient is None."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> None:
        return None


def _check_undefined(comparison: _Comparison) -> None:
    """Check that a missing gradient of an output counts as zero."""
    outputs = comparison.outputs
    cases = [range(len(outputs))]
    if len(outputs) > 1:
        cases += [range(n, n + 1) for n in range(len(outputs))]
    for undefined in cases:
        roots = [_Undefined.apply(o) if n in undefined else o for n, o in enumerate(outputs)]
        zeros = [wrap(np.zeros_like(root._array)) for root in roots]
        try:
            found = grad(roots, comparison.wanted, zeros, retain_graph=True, allow_unused=True)
        except Exception as error:
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: where no gradient "
                "arrives for an output, backward must take None"
            ) from error
        if any(gradient is not None and gradient._array.any() for gradient in found):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero"
            )


def _check_constant(comparison: _Comparison, atol: float) -> None:
    """Check that outputs none of which requires grad are constant."""
    for jacobians in _numerical_jacobians(comparison):
        if any((np.abs(jacobian) > atol).any() for jacobian in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")
