"""Inverse hyperbolic functions, sinc, hypot, and angles: degrees and those of complex numbers."""

from __future__ import annotations

import math

import numpy as np

from convcore._tensor import Tensor, wrap
from convcore.autograd.grad_mode import mode
from convcore.autograd.node import record
from convcore.functions._support.arguments import check_kind, check_tensor, check_tensors
from convcore.functions._support.errstate import ignore_errstate
from convcore.functions._support.in_place import in_place_methods
from convcore.functions.elementwise.arithmetic import add, compute, conj, div, mul
from convcore.functions.elementwise.elementwise import _as_float, _of_input, pow, rsqrt, sgn, square
from convcore.functions.elementwise.in_float32 import in_float32
from convcore.functions.elementwise.piecewise import masked, zeros_like
from convcore.functions.shapes.broadcast import cast, fitted

__all__ = [
    "acosh",
    "angle",
    "arccosh",
    "arcsinh",
    "arctanh",
    "asinh",
    "atanh",
    "deg2rad",
    "hypot",
    "rad2deg",
    "sinc",
]


asinh = _of_input(
    np.arcsinh,
    "the inverse hyperbolic sine of each element",
    lambda g, x: g * conj(rsqrt(square(x) + 1)),
)
acosh = _of_input(
    np.arccosh,
    "the inverse hyperbolic cosine of each element, NaN of those below 1",
    lambda g, x: g * conj(rsqrt(x - 1) * rsqrt(x + 1)),
)
atanh = _of_input(
    np.arctanh,
    "the inverse hyperbolic tangent of each element, NaN outside [-1, 1]",
    lambda g, x: g / conj(1 - square(x)),
)


def _sinc_slope(grad: Tensor, x: Tensor) -> Tensor:
    return mul(grad, conj(mul(_spherical_bessel(mul(x, math.pi), 1), -math.pi)))


def _spherical_bessel(t: Tensor, n: int) -> Tensor:
    """Return the spherical Bessel function j_n of each element; sinc(x) is j_0 of pi x.

    Its slope is (n j_(n-1) - (n+1) j_(n+1)) / (2n + 1), which does not cancel near 0, as the
    derivatives of sin(t) / t do where they are written in sines and cosines.
    """
    from scipy import special

    array = t._array
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    out = wrap(np.asarray(ignore_errstate(special.spherical_jn, n, wide)).astype(array.dtype))

    def backward(needs: tuple[bool, ...], grad: Tensor, t: Tensor) -> Tensor:
        slope = mul(_spherical_bessel(t, n + 1), -(n + 1))
        if n:
            slope = add(slope, mul(_spherical_bessel(t, n - 1), n))
        return mul(grad, conj(div(slope, 2 * n + 1)))

    record("SphericalBesselBackward", (t,), out, backward, (t,))
    return out


def _sinc(array: np.ndarray) -> np.ndarray:
    wide = array.astype(np.float32) if array.dtype == np.float16 else array  # pi x is rounded
    return np.sinc(wide).astype(array.dtype, copy=False)


sinc = in_float32(
    _of_input(_sinc, "sin(pi x) / (pi x) of each element x, and 1 of 0", _sinc_slope, "sinc")
)


def deg2rad(input: Tensor) -> Tensor:
    """Return angles in radians that are given in degrees."""
    return _scaled("deg2rad", input, math.pi / 180)


def rad2deg(input: Tensor) -> Tensor:
    """Return angles in degrees that are given in radians."""
    return _scaled("rad2deg", input, 180 / math.pi)


def _scaled(function: str, x: Tensor, by: float) -> Tensor:
    check_tensor(function, x)
    if x._array.dtype.kind == "c":
        raise RuntimeError(f"{function} is not supported for complex tensors.")
    return mul(x, by)


@in_float32
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """Return sqrt(input^2 + other^2), element by element, without overflow."""
    check_tensors("hypot", input, other)
    check_kind("hypot_cpu", input, "f", other)
    out = wrap(compute(np.hypot, input._array, other._array))
    if mode.enabled:
        backward = fitted(_hypot_backward, input, other)
        record("HypotBackward0", (input, other), out, backward, (input, other, out))
    return out


def _hypot_backward(
    needs: tuple[bool, ...], grad: Tensor, x: Tensor, y: Tensor, out: Tensor
) -> tuple:
    over = div(grad, out)
    return mul(over, x) if needs[0] else None, mul(over, y) if needs[1] else None


@in_float32
def angle(input: Tensor) -> Tensor:
    """Return the angle of each complex number in radians; of real ones 0 or, if negative, pi."""
    check_tensor("angle", input)
    array = _as_float(input._array)
    nan = array if array.dtype.kind == "f" else 0
    value = np.angle(array) if array.dtype.kind == "c" else np.where(np.isnan(nan), nan, 0)
    if array.dtype.kind == "f":
        value = np.where(array < 0, math.pi, value)
    out = wrap(np.asarray(value, array.real.dtype))
    if mode.enabled:
        record("AngleBackward0", (input,), out, _angle_backward, (input,))
    return out


def _angle_backward(needs: tuple[bool, ...], grad: Tensor, z: Tensor) -> Tensor:
    if z._array.dtype.kind != "c":
        return zeros_like(grad)
    # d angle / dz is at a right angle to z, and 1 / |z| long.
    turned = div(mul(sgn(z), 1j), pow(cast(mul(z, conj(z)), grad._array.dtype), 0.5))
    return masked(mul(cast(grad, z._array.dtype), turned), z._array != 0)


arccosh = acosh
arcsinh = asinh
arctanh = atanh

METHODS = {
    **in_place_methods(acosh, asinh, atanh, deg2rad, hypot, rad2deg, sinc),
    "arccosh_": in_place_methods(acosh)["acosh_"],
    "arcsinh_": in_place_methods(asinh)["asinh_"],
    "arctanh_": in_place_methods(atanh)["atanh_"],
}
