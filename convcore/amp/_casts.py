"""The code that the listed functions have while autocast is open: it casts, then calls them."""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Iterator
from typing import Any

from convcore import functions
from convcore._tensor import Tensor, dtypes
from convcore.amp import _ops
from convcore.autograd.casting import exchange, here
from convcore.functions.elementwise.casts import ELIGIBLE, cast, lower, tensors

# What is cast to: a function of the call's arguments, or None where nothing is cast.


def _lower(args: tuple, kwargs: dict) -> Any:
    return lower()


def _float32(args: tuple, kwargs: dict) -> Any:
    return dtypes.float32


def _widest(args: tuple, kwargs: dict) -> Any:
    for value in tensors((*args, *kwargs.values())):
        if value.dtype is dtypes.float32:
            return dtypes.float32
        if value.dtype in ELIGIBLE and value.dtype is not lower():
            raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return lower()


def _padding(args: tuple, kwargs: dict) -> Any:
    """Return float32 where PyTorch's kernel is one of the list: not reflection of volumes."""
    how = kwargs.get("mode", args[2] if len(args) > 2 else "constant")
    pads = kwargs.get("pad", args[1] if len(args) > 1 else ())
    volumes = isinstance(pads, list | tuple) and len(pads) == 6
    listed = how == "replicate" or (how == "reflect" and not volumes)
    return dtypes.float32 if listed else None


# Other code for the functions


def _keeps_parameters(function: Callable, dtype: Any) -> bool:
    """Return whether a function takes parameters of float32 beside an input of bfloat16.

    Layers do, and round them where they are multiplied.
    """
    return dtype is dtypes.bfloat16 and function.__name__ in _ops.LAYERS


def _cast_input(args: tuple, kwargs: dict, dtype: Any) -> tuple[tuple, dict]:
    """Cast a layer's input, and its parameters only if they are not float32."""
    named = {**dict(enumerate(args)), **kwargs}
    for name, value in named.items():
        is_float32 = isinstance(value, Tensor) and value.dtype is dtypes.float32
        if name in (0, "input") or not is_float32:
            named[name] = cast(value, dtype)
    return tuple([named[place] for place in range(len(args))]), {
        name: named[name] for name in kwargs
    }


def _casting(function: types.FunctionType, target: Callable[[tuple, dict], Any]) -> Callable:
    """Return a function that casts operands as autocast of this thread does, and calls another."""

    def casting(*args: Any, **kwargs: Any) -> Any:
        if not here.enabled or here.inside or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        dtype = target(args, kwargs)
        try:
            here.inside = True
            if _keeps_parameters(function, dtype):
                args, kwargs = _cast_input(args, kwargs, dtype)
            elif dtype is not None:
                args = tuple([cast(value, dtype) for value in args])
                kwargs = {name: cast(value, dtype) for name, value in kwargs.items()}
            return function(*args, **kwargs)
        finally:
            here.inside = False

    return casting


def _templates() -> list[types.CodeType]:
    """Return code that calls its constant "casting", for 0, 1, 2 and 3 free variables.

    A function takes only code with as many free variables as its own code has.
    """
    a = b = c = None

    def without(*args: Any, **kwargs: Any) -> Any:
        call: Any = "casting"
        return call(*args, **kwargs)

    def with_one(*args: Any, **kwargs: Any) -> Any:
        call: Any = ("casting", a)[0]
        return call(*args, **kwargs)

    def with_two(*args: Any, **kwargs: Any) -> Any:
        call: Any = ("casting", a, b)[0]
        return call(*args, **kwargs)

    def with_three(*args: Any, **kwargs: Any) -> Any:
        call: Any = ("casting", a, b, c)[0]
        return call(*args, **kwargs)

    return [function.__code__ for function in (without, with_one, with_two, with_three)]


def _code(function: types.FunctionType, target: Callable[[tuple, dict], Any]) -> types.CodeType:
    """Return code for a function that casts, then runs the function's present code."""
    plain = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    names = function.__code__.co_freevars
    template, casting = _templates()[len(names)], _casting(plain, target)
    constants = tuple([casting if one == "casting" else one for one in template.co_consts])
    return template.replace(
        co_name=function.__name__,
        co_qualname=function.__qualname__,
        co_freevars=names,
        co_consts=constants,
    )


def _found(table: dict[str, str]) -> Iterator[types.FunctionType]:
    """Yield the functions of a table: those of the modules, and their forms with ``out=``."""
    for module, names in table.items():
        home = importlib.import_module(f"convcore.functions.{module}")
        for name in names.split():
            for owner in (home, functions, Tensor):
                function = vars(owner).get(name)
                if isinstance(function, types.FunctionType):
                    yield function


def prepare() -> None:
    """Make that code for all listed functions, once."""
    if not exchange.is_empty():
        return
    tables = ((_ops.LOWER, _lower), (_ops.FLOAT32, _float32), (_ops.WIDEST, _widest))
    targets = {f: target for table, target in tables for f in _found(table)}
    targets |= dict.fromkeys(_found({"windows.padding": "pad"}), _padding)
    exchange.fill([(function, _code(function, target)) for function, target in targets.items()])
