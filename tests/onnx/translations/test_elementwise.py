"""Functions of single elements in exported models."""

from __future__ import annotations

import pytest

import convcore

CASES = {
    "rounding": lambda x: (
        x.round() + x.floor() + x.ceil() + x.trunc() + x.frac() + x.sign() + x.fix()
    ),
    "exponentials": lambda x: x.exp() + x.expm1() + x.exp2(),
    "small": lambda x: (x * 1e-6).expm1() * 1e6 + (x * 1e-6).log1p() * 1e6,
    "logarithms": lambda x: x.abs().log1p() + x.abs().log2() + x.abs().log10(),
    "roots": lambda x: x.abs().sqrt() + x.abs().rsqrt(),
    "angles": lambda x: x.tan() + x.atan() + x.tanh().asin() + x.tanh().acos(),
    "hyperbolic": lambda x: (
        x.sinh() + x.cosh() + x.asinh() + x.tanh().atanh() + (x.abs() + 1).acosh()
    ),
    "errors": lambda x: x.erf() + x.erfc(),
    "other_names": lambda x: x.absolute() + x.negative() + x.sgn() + convcore.special.expit(x),
    "degrees": lambda x: x.deg2rad() + x.rad2deg(),
    "sinc": lambda x: x.sinc() + (x * 0).sinc(),
    "logit": lambda x: x.sigmoid().logit() + x.logit(0.1),
    "of_integers": lambda x: (x * 3).int().exp(),
    "in_place": lambda x: (x * 1).abs_().sqrt_(),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_computes_what_the_function_does(name, agree, x):
    agree(CASES[name], x)
