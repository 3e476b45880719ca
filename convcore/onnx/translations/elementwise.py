"""Functions of single elements that no activation is."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import convcore
from convcore.onnx.translation import as_dtype, composes, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder

_OPERATORS = {
    "Abs": ("absolute",),
    "Acos": ("acos", "arccos"),
    "Acosh": ("acosh", "arccosh"),
    "Asin": ("asin", "arcsin"),
    "Asinh": ("asinh", "arcsinh"),
    "Atan": ("atan", "arctan"),
    "Atanh": ("atanh", "arctanh"),
    "Cosh": ("cosh",),
    "Neg": ("negative",),
    "Sign": ("sgn",),
    "Sinh": ("sinh",),
    "Tan": ("tan",),
}


def _enter_operator(op: str, names: tuple[str, ...]) -> None:
    @translates(*names)
    def operator(r: Recorder, y: Any, *, input: Any) -> list[str]:
        return r.node(op, [as_dtype(r, input, y.dtype)])


for _op, _names in _OPERATORS.items():
    _enter_operator(_op, _names)


def _expm1(x: Any) -> Any:
    # exp(x) - 1 loses all digits of a small x; 2 t / (1 - t) with t = tanh(x / 2) does not.
    t = (x / 2).tanh()
    return convcore.where(x.abs() < 1, 2 * t / (1 - t), x.exp() - 1)


def _log1p(x: Any) -> Any:
    # What 1 + x is rounded by is made up for; D. Goldberg, ACM Computing Surveys 23, 1991, th. 4.
    y = 1 + x
    small = y == 1
    return convcore.where(small, x, y.log() * x / (y - 1).masked_fill(small, 1.0))


def _trunc(x: Any) -> Any:
    return x.sign() * x.abs().floor() if x.is_floating_point() else x * 1


def _sinc(x: Any) -> Any:
    turned = (x * math.pi).masked_fill(x == 0, 1.0)
    return (turned.sin() / turned).masked_fill(x == 0, 1.0)


_FORMULAS: dict[str, Callable[[Any], Any]] = {
    "deg2rad": lambda x: x * (math.pi / 180),
    "erfc": lambda x: 1 - x.erf(),
    "exp2": lambda x: 2**x,
    "expm1": _expm1,
    "fix": _trunc,
    "frac": lambda x: x - x.trunc(),
    "log10": lambda x: x.log() / math.log(10),
    "log1p": _log1p,
    "log2": lambda x: x.log() / math.log(2),
    "rad2deg": lambda x: x * (180 / math.pi),
    "rsqrt": lambda x: x.sqrt().reciprocal(),
    "sinc": _sinc,
    "trunc": _trunc,
}


def _enter_formula(name: str, formula: Callable[[Any], Any]) -> None:
    @composes(name)
    def computed(*, input: Any) -> Any:
        return formula(input if input.is_floating_point() or formula is _trunc else input.float())


for _name, _formula in _FORMULAS.items():
    _enter_formula(_name, _formula)


@composes("logit")
def _logit(*, input: Any, eps: float | None) -> Any:
    x = input if eps is None else input.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()
