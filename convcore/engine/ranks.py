"""conv1d, conv2d and conv3d (and the like) from one function whose first argument is the rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def of_rank(
    rank: int, function: Callable[Concatenate[int, P], R]
) -> Callable[[Callable[[], None]], Callable[P, R]]:
    """Return a decorator that fills an empty named function with ``function`` at one rank.

    The signature is ``function``'s without the rank.  The source is generated, as in `dataclasses`:
    a call costs what a hand-written one does, and errors for wrong arguments say the new name.

    Parameters
    ----------
    rank : int
        Number of spatial axes.
    function
        A global of the module that is decorated.
    """

    def decorate(named: Callable[[], None]) -> Callable[P, R]:
        code, stub = function.__code__, named.__code__
        n = code.co_argcount
        names = code.co_varnames[1:n]
        keywords = code.co_varnames[n : n + code.co_kwonlyargcount]
        parameters = ", ".join((*names, "*", *keywords) if keywords else names)
        arguments = ", ".join((str(rank), *names, *(f"{name}={name}" for name in keywords)))
        source = f"def {named.__name__}({parameters}): return {function.__name__}({arguments})"
        made: dict = {}
        exec(source, named.__globals__, made)
        result = made[named.__name__]
        result.__code__ = result.__code__.replace(
            co_filename=stub.co_filename, co_firstlineno=stub.co_firstlineno
        )
        result.__doc__ = named.__doc__
        result.__defaults__, result.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        types = function.__annotations__
        result.__annotations__ = {n: types[n] for n in (*names, *keywords, "return")}
        return result

    return decorate
