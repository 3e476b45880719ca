"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from convcore.onnx.errors import OnnxError
from convcore.onnx.translation import composes, translates

if TYPE_CHECKING:
    from convcore.onnx.recording import Recorder


@translates("matmul", "mm", "bmm")
def _matmul(r: Recorder, y: Any, /, **arguments: Any) -> list[str]:
    a, b, *_ = arguments.values()
    return r.node("MatMul", [r.name(a), r.name(b)])


@composes("mv", "dot", "rmatmul")
def _product(**arguments: Any) -> Any:
    a, b = list(arguments.values())[:2]
    return a.matmul(b)


@composes("outer", "ger")
def _outer(*, input: Any, vec2: Any) -> Any:
    return input.unsqueeze(1) * vec2.unsqueeze(0)


def _enter_added(name: str, first: str, second: str) -> None:
    @composes(name)
    def added(*, input: Any, beta: Any = 1, alpha: Any = 1, **factors: Any) -> Any:
        product = factors[first].matmul(factors[second])
        product = product if alpha == 1 else product * alpha
        if beta == 0:
            return product
        return product + (input if beta == 1 else input * beta)


_enter_added("addmm", "mat1", "mat2")
_enter_added("baddbmm", "batch1", "batch2")


@translates("einsum")
def _einsum(r: Recorder, y: Any, *, args: Any) -> list[str]:
    equation, *factors = args
    if not isinstance(equation, str):
        raise OnnxError("einsum with lists of axes: write the equation as a string")
    if len(factors) == 1 and isinstance(factors[0], tuple | list):
        factors = factors[0]
    return r.node("Einsum", [r.name(each) for each in factors], equation=equation)


@composes("cross")
def _cross(*, input: Any, other: Any, dim: Any) -> Any:
    if dim is None:
        dim = list(input.shape).index(3)
    a, b = ([x.roll(shift, dim) for shift in (-1, -2)] for x in (input, other))
    return a[0] * b[1] - a[1] * b[0]
