"""Calls whose arguments do not fit: an unknown keyword, a wrong type, too large a number.

Nothing is checked before a call: which argument is to blame is looked up once the call has failed.
"""

from __future__ import annotations

import dis
import functools
import inspect
import math
import numbers
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np

from convcore._errors import HINT, hinted, nearest
from convcore.engine.integers import is_int
from convcore.engine.runtime.checks import is_too_large

Function = TypeVar("Function", bound=Callable)

# What a call may fail with because an argument is of a wrong type, too large a number, or unknown.
UNNAMED = (AttributeError, OverflowError, TypeError, ValueError)

# NumPy's and Keras' names of arguments, and those that arguments have here.
_SAME = {
    **dict.fromkeys(("axis", "axes"), ("dim", "dims", "start_dim")),
    "batch": ("batch_size",),
    "epsilon": ("eps",),
    "filters": ("out_channels",),
    "layers": ("select",),
    "learning_rate": ("lr",),
    "rate": ("p",),
    "strides": ("stride",),
    "units": ("out_features",),
}


# Unknown keywords


def _meant(word: str, names: Sequence[str]) -> str:
    """Return the argument that a keyword was meant to be: by its meaning, or its spelling."""
    same = [name for name in _SAME.get(word, ()) if name in names]
    longer = [name for name in names if name.startswith(word) and len(word) > 2]
    return (same or (longer if len(longer) == 1 else [nearest(word, names, 0.65)]))[0]


def _keywords(function: Callable) -> list[str]:
    """Return the names of the arguments that may be given by keyword; not that of self."""
    parameters = inspect.signature(function).parameters.values()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in parameters if one.kind in by_name and one.name != "self"]


def hint_call(error: TypeError, function: Callable, args: tuple, kwargs: dict) -> None:
    """Add to the error of a call which argument was meant, if the call does not fit at all."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without one
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        return  # it was raised inside
    names = _keywords(function)
    kinds = {one.kind: name for name, one in signature.parameters.items()}
    variadic = kinds.get(inspect.Parameter.VAR_POSITIONAL, "")
    unknown = [name for name in kwargs if name not in signature.parameters or name == variadic]
    if unknown and "Did you mean" not in str(error):  # as later Pythons say themselves
        hinted(error, _keyword_hint(unknown[0], names, variadic))
    elif not unknown and not variadic and len(args) > _n_positional(signature):
        usage = getattr(inspect.unwrap(function), "usage", "")  # of what is not called alone
        hinted(error, usage or f"its arguments are {', '.join(names)}")


def _keyword_hint(word: str, names: Sequence[str], variadic: str = "") -> str:
    if word == variadic:
        return f"{word} stand one by one, without a keyword"
    meant = _meant(word, names)
    return f"did you mean {meant!r}?" if meant else f"it takes {', '.join(names)}"


def _n_positional(signature: inspect.Signature) -> int:
    parameters = signature.parameters.values()
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def hinting(function: Function) -> Function:
    """Let a function say which keyword was meant; a call takes 0.13 us more."""

    @functools.wraps(function)
    def hinted_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            hint_call(error, function, args, kwargs)
            raise

    return hinted_call  # type: ignore[return-value]


def hint_keywords(path: str) -> None:
    """Let the public functions of a module say which keyword was meant."""
    module = sys.modules[path]
    for name in module.__all__:
        function = getattr(module, name)
        if isinstance(function, FunctionType):
            better = hinting(function)
            setattr(module, name, better)
            setattr(sys.modules[function.__module__], name, better)  # where pickle looks for it


def hint_methods(name: str, parts: Iterable[type]) -> None:
    """Let the public methods of a class, which has them from its parts, say the same."""
    for part in parts:
        methods = [n for n, one in vars(part).items() if isinstance(one, FunctionType)]
        for method in methods:
            if not method.startswith("_"):
                named = _renamed(vars(part)[method], f"{name}.{method}")
                setattr(part, method, hinting(named) if _keywords(named) else named)


def name_methods(cls: type, methods: Iterable[str]) -> None:
    """Have errors of calls name a public class, not the private one that has its methods."""
    for name in methods:
        method = getattr(cls, name, None)
        if isinstance(method, FunctionType) and method.__qualname__.startswith("_"):
            setattr(cls, name, _renamed(method, f"{cls.__qualname__}.{name}"))


def _renamed(function: FunctionType, qualname: str) -> FunctionType:
    """Return a copy of a function under another name."""
    parts = (function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copy = FunctionType(*parts, function.__closure__)
    copy.__dict__.update(function.__dict__)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__doc__, copy.__module__, copy.__qualname__ = (
        function.__doc__,
        function.__module__,
        qualname,
    )
    return copy


class KeywordHints:
    """A base of classes whose constructors say which keyword was meant."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            _check_keywords(cls, args, kwargs)
        new: Any = super().__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **kwargs)


def _check_keywords(cls: type, args: Sequence[Any], given: Mapping[str, Any]) -> None:
    init = cls.__init__  # type: ignore[misc]
    code = getattr(getattr(init, "__wrapped__", init), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:  # any keyword will do
        return
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    before = names[: min(len(args), len(names) - code.co_kwonlyargcount)]
    for name in given:
        if name in before:
            text = f"{cls.__qualname__}.__init__() got multiple values for argument {name!r}"
            raise hinted(
                TypeError(text), f"the arguments before the keywords are {', '.join(before)}"
            )
        if name not in names:
            raise unknown_keyword(f"{cls.__qualname__}.__init__", name, names)


def unknown_keyword(function: str, name: str, names: Sequence[str]) -> TypeError:
    """Return the error of a call for a keyword that is none of its names."""
    meant = _meant(name, names)
    text = f"{function}() got an unexpected keyword argument {name!r}"
    if meant:
        return TypeError(f"{text}. Did you mean {meant!r}?")
    return hinted(TypeError(text), f"it takes {', '.join(names) or 'no keywords'}")


# Arguments of a wrong type, by their annotations

# Alternatives of an annotation, each with those of its elements if it is a sequence.
Kinds = tuple[tuple[str, Any], ...]


def names_arguments(function: Function) -> Function:
    """Decorate a function so that its errors name the argument that has the wrong type.

    It takes NumPy's ``axis`` and ``keepdims`` for ``dim`` and ``keepdim``, as PyTorch's do.
    """

    @functools.wraps(function)
    def naming(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except UNNAMED as error:
            again = after(error, naming, function.__name__, function, args, kwargs)
            if again is None:
                raise
        return again()

    return naming  # type: ignore[return-value]


_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}


def after(
    error: Exception, call: Callable, name: str, function: Callable, args: tuple, kwargs: dict
) -> Callable[[], Any] | None:
    """Return what to call instead of raising the error of ``function``; None to raise it again.

    That is ``call`` with PyTorch's names of arguments, or a function that raises an error which
    names the argument.
    """
    if isinstance(error, TypeError) and not _OF_NUMPY.keys().isdisjoint(kwargs):
        known = inspect.signature(function).parameters
        word = next(one for one in kwargs if one in _OF_NUMPY)
        torchs = _OF_NUMPY[word]
        if word not in known and torchs in known and torchs not in kwargs:
            renamed = {torchs if one == word else one: value for one, value in kwargs.items()}
            return functools.partial(call, *args, **renamed)
    better = explained(name, function, error, args, kwargs)
    return None if better is error else functools.partial(_raise, better)


def _raise(error: Exception) -> NoReturn:
    raise error


def explained(name: str, function: Callable, error: Exception, args: tuple, kwargs: dict) -> Any:
    """Return the error to raise for one of a call: it names the argument, if one is to blame."""
    if isinstance(error, TypeError):
        hint_call(error, function, args, kwargs)
    if HINT in str(error):  # it says already what was meant
        return error
    if isinstance(error, ValueError) and is_too_large(error):
        return RuntimeError(f"{name}(): the result would be larger than any memory")
    # A constructor's own argument is to blame where what it calls names one of its own.
    names_another = isinstance(function, functools.partial) and "argument '" in str(error)
    names_another = names_another and not str(error).startswith(f"{name}()")
    if isinstance(error, TypeError | ValueError) and _is_deliberate(error) and not names_another:
        return error
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return error
    if isinstance(error, TypeError | ValueError):
        return _misfit(name, function, error, given, len(args)) or error
    for is_to_blame in _judges(error):
        for position, (argument, value) in enumerate(given.items(), 1):
            inner = value if isinstance(value, list | tuple | str | bytes) else ()
            for one in (value, *(value.flat if isinstance(value, np.ndarray) else inner)):
                if is_to_blame(one):
                    place = f"{name}(): argument '{argument}' (position {position})"
                    if isinstance(error, AttributeError):
                        return TypeError(f"{place} must be Tensor, not {typename(one)}")
                    return RuntimeError(f"{place} is too large: {one}")
    return error


def _is_deliberate(error: Exception) -> bool:
    """Return whether a ``raise`` outside NumPy raised an error: its text speaks for itself.

    Operators and engine/integers.py raise errors in Python's words, which name no argument.
    """
    if str(error).startswith("unsupported operand type(s)"):
        return False
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code if step is not None else None
    if step is None or code is None or code.co_filename.endswith(".pyx"):
        return False
    raised = code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"]
    module = step.tb_frame.f_globals.get("__name__", "")
    return raised and not module.startswith(("numpy", "convcore.engine.integers"))


def _judges(error: Exception) -> tuple[Callable[[Any], bool], ...]:
    """Return tests of whether an argument is to blame, the most certain one first."""
    if not isinstance(error, AttributeError):
        return (_is_out_of_range,)
    owner = error.obj
    lacks = lambda value: value is owner and not _is_tensor(value)  # noqa: E731
    if not isinstance(owner, int | float | complex | np.generic):
        return (lacks,)
    # A number that may have been made of the argument.
    return lacks, lambda value: isinstance(value, bool | int | float | complex | np.generic)


def _is_out_of_range(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and not -(2**31) <= value < 2**31


def _misfit(
    name: str, function: Callable, error: Exception, given: dict[str, Any], n_positional: int
) -> Any:
    """Return an error for the first argument that is not what its annotation says, or None.

    Where no annotation tells, it is an argument of the type that the error speaks of.
    """
    parameters = inspect.signature(function).parameters
    suspect = None
    for position, (argument, value) in enumerate(given.items(), 1):
        parameter = parameters[argument]
        place = f"{name}(): argument '{argument}'"
        place += f" (position {position})" if position <= n_positional else ""
        kinds = _kinds(parameter.annotation)
        if parameter.kind is parameter.VAR_POSITIONAL:
            value = value[0] if len(value) == 1 and isinstance(value[0], list | tuple) else value
            kinds = kinds and (("Sequence", kinds),)
        if not kinds and suspect is None and _is_named(value, str(error)):
            suspect = TypeError(f"{place} cannot be {typename(value)}: {error}")
        if kinds and value is not parameter.default and not _fits(value, kinds):
            return _unfit(place, value, kinds)
    return suspect


def _is_named(value: Any, text: str) -> bool:
    """Return whether an error speaks of a value's type, or of NumPy's for it."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufcV":
        return True  # no tensor is of that, and whatever is said of elements means these
    return f"'{type(value).__name__}'" in text and not _is_tensor(value)


@functools.cache
def _kinds(annotation: Any) -> Kinds:
    """Return the alternatives of an annotation; none where one is not known, as of Any."""
    text = annotation if isinstance(annotation, str) else ""
    pairs = re.findall(r"([\w.]+)(?:\[([^\]]*)\])?", text)
    sequences = ("list", "tuple", "Size")
    known = [("Sequence" if w in sequences else w, _kinds(inner)) for w, inner in pairs]
    return tuple(known) if all(word in _TESTS for word, _ in known) else ()


def _is_tensor(value: Any) -> bool:
    return isinstance(getattr(value, "_array", None), np.ndarray)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "Sequence": lambda value: isinstance(value, list | tuple),
    "Iterable": lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes),
    "Tensor": _is_tensor,
    "int": is_int,
    "float": lambda value: (
        isinstance(value, int | float | np.number | np.bool_)
        or (_is_tensor(value) and value._array.ndim == 0)
    ),
    "complex": lambda value: isinstance(value, int | float | complex | np.number),
    "bool": lambda value: isinstance(value, bool | np.bool_),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
}


def _fits(value: Any, kinds: Kinds) -> bool:
    return any(
        _TESTS[word](value) and (not inner or _wrong_element(value, inner) is None)
        for word, inner in kinds
    )


def _wrong_element(value: Any, kinds: Kinds) -> tuple[int, Any] | None:
    """Return the first element of a list that does not fit, and its place; a generator is kept."""
    elements = enumerate(value) if isinstance(value, list | tuple) else ()
    return next(((place, one) for place, one in elements if not _fits(one, kinds)), None)


def _unfit(place: str, value: Any, kinds: Kinds) -> TypeError:
    words = [f"tuple of {inner[0][0]}s" if inner else word for word, inner in kinds]
    allowed = " or ".join(words).replace("Sequence", "tuple").replace("Iterable", "tuple")
    wrong = next((_wrong_element(value, inner) for _, inner in kinds if inner), None)
    seen = (
        f"not {typename(value)}"
        if wrong is None
        else (f"but found element of type {typename(wrong[1])} at pos {wrong[0]}")
    )
    return TypeError(f"{place} must be {allowed}, {seen}")


def typename(value: Any) -> str:
    """Return the name of a value's type as PyTorch's errors give it: with NumPy's module."""
    kind = type(value)
    return kind.__name__ if kind.__module__ != "numpy" else f"numpy.{kind.__name__}"


# Constructors


def names_in_constructor(cls: type) -> None:
    """Let a class's own constructor name the argument that has the wrong type.

    What it only stores it would not miss: `forward` would fail, and speak of the function it calls.
    """
    init: Any = vars(cls).get("__init__")
    if init is None or init.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return

    @functools.wraps(init)
    def naming(self: Any, *args: Any, **kwargs: Any) -> None:
        better: Any
        try:
            init(self, *args, **kwargs)
        except UNNAMED as error:
            name, bound = type(self).__name__, functools.partial(init, self)
            # What is wrong with a number is beside the point where there is none.
            better = isinstance(error, ValueError) and _no_number(name, init, args, kwargs)
            better = better or explained(name, bound, error, args, kwargs)
            if better is error:
                raise
        else:
            better = _no_number(type(self).__name__, init, args, kwargs)
            if better is None:
                return
        raise better

    cls.__init__ = naming  # type: ignore[misc]


def _no_number(name: str, init: Callable, args: tuple, kwargs: dict) -> TypeError | None:
    """Return an error for the first argument of a constructor that is not the number it must be.

    Only numbers are looked at: anything can be true or false, and names have errors of their own.
    """
    for place, (argument, default, kinds) in enumerate(_numbers(init)):
        value = args[place] if place < len(args) else kwargs.get(argument, default)
        if kinds and value is not default and not _may_fit(value, kinds):
            where = f" (position {place + 1})" if place < len(args) else ""
            return _unfit(f"{name}(): argument '{argument}'{where}", value, kinds)
    return None


@functools.cache
def _numbers(init: Callable) -> tuple[tuple[str, Any, Kinds], ...]:
    """Return each argument's name, default and allowed types; no types where it is no number."""
    _, *parameters = inspect.signature(init).parameters.values()
    return tuple(
        (one.name, one.default, kinds if _are_numbers(kinds) else ())
        for one in parameters
        for kinds in (_kinds(one.annotation),)
    )


def _are_numbers(kinds: Kinds) -> bool:
    return all(
        word in ("int", "float", "Sequence", "None") and _are_numbers(inner or ())
        for word, inner in kinds
    )


def _may_fit(value: Any, kinds: Kinds) -> bool:
    """Return whether a value is what an annotation says, or only the call can tell.

    Some layers take bools, arrays, ranges and fractions.
    """
    if isinstance(value, list | tuple):
        inner = next((inner for word, inner in kinds if word == "Sequence"), None)
        return inner is not None and all(_may_fit(one, inner) for one in value)
    other = isinstance(value, numbers.Number | np.generic | Iterable)
    return _fits(value, kinds) or (other and not isinstance(value, str | bytes | dict | float))
