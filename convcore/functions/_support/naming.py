"""Errors that name the argument: one in Python's own words from deep inside, explained afterwards.

An unknown keyword gets a hint at the one that was meant.

Nothing is checked before a call: which argument does not fit is looked up once the call has failed.
"""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

from convcore import _misnamed
from convcore._tensor import Tensor
from convcore.engine.runtime.checks import is_too_large
from convcore.functions._support.arguments import is_int, typename

Function = TypeVar("Function", bound=Callable)

# What a call may fail with because an argument is of a wrong type, too large a number, or unknown.
UNNAMED = (AttributeError, OverflowError, TypeError, ValueError)

# Python's and NumPy's words for what they were given: they do not know for which argument.
_OWN_WORDS = re.compile(
    r"object is not (iterable|subscriptable|callable|an iterator)|has no len\(\)|is not iterable|"
    r"not supported between|unsupported operand|bad operand type|must be real number|"
    r"cannot be interpreted as|can't multiply sequence|can only concatenate|could not convert|"
    r"invalid literal|argument must be a string|a bytes-like object is required|unhashable|"
    r"ufunc '|did not contain a loop|[Cc]annot convert|setting an array element|indices must be|"
    r"not all arguments converted|ambiguous|values to unpack|non-iterable|object too deep|"
    r"data type|dtype\(|descriptor '|must be str|Cannot cast|must be a number, not|numeric type"
)


def explained(name: str, function: Callable, error: Exception, args: tuple, kwargs: dict) -> Any:
    """Return the error to raise for one of a call: it names the argument, if one is to blame."""
    if isinstance(error, TypeError):
        _misnamed.hint_keyword(error, function)
    if hasattr(error, "__notes__"):  # a hint says already what was meant
        return error
    in_own_words, text = isinstance(error, TypeError | ValueError), str(error)
    if isinstance(error, ValueError) and is_too_large(error):
        return RuntimeError(f"{name}(): the result would be larger than any memory")
    # A constructor's own argument is to blame where what it calls names one of its own.
    names_another = isinstance(function, functools.partial) and not text.startswith(f"{name}()")
    if in_own_words and not (names_another if "argument '" in text else _OWN_WORDS.search(text)):
        return error
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return error
    if in_own_words:
        return _misfit(name, function, error, given, len(args)) or error
    for to_blame in _judges(error):
        for position, (argument, value) in enumerate(given.items(), 1):
            for one in (value, *_elements(value)):
                if to_blame(one):
                    place = f"{name}(): argument '{argument}' (position {position})"
                    if isinstance(error, AttributeError):
                        return TypeError(f"{place} must be Tensor, not {typename(one)}")
                    return RuntimeError(f"{place} is too large: {one}")
    return error


def _elements(value: Any) -> Iterable[Any]:
    """Return the elements of a sequence; of what is used up by that, or is none, nothing."""
    if isinstance(value, np.ndarray):
        return value.flat
    return value if isinstance(value, list | tuple | str | bytes) else ()


def _judges(error: Exception) -> tuple[Callable[[Any], bool], ...]:
    """Return what to ask of each argument whether it is to blame: the surest question first."""
    if not isinstance(error, AttributeError):
        return (_is_too_large,)
    found = error.obj
    lacks = lambda value: value is found and not isinstance(value, Tensor)  # noqa: E731
    if not isinstance(found, int | float | complex | np.generic):
        return (lacks,)
    # A number that may have been made of the argument.
    return lacks, lambda value: isinstance(value, bool | int | float | complex | np.generic)


def _is_too_large(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, int) and not -(2**31) <= value < 2**31


# What an argument is by its annotation

# Alternatives of an annotation, each with those of its elements if it is a sequence.
Kinds = tuple[tuple[str, Any], ...]


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


def _unfit(place: str, value: Any, kinds: Kinds) -> TypeError:
    return TypeError(f"{place} must be {_allowed(kinds)}, {_found(value, kinds)}")


def _is_named(value: Any, text: str) -> bool:
    """Return whether an error speaks of a value's type, or of NumPy's for it."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biufcV":
        return True  # no tensor is of that, and whatever is said of elements means these
    return f"'{type(value).__name__}'" in text and not isinstance(value, Tensor)


@functools.cache
def _kinds(annotation: Any) -> Kinds:
    """Return the alternatives of an annotation; none where one is not known, as of Any."""
    text = annotation if isinstance(annotation, str) else ""
    found = re.findall(r"([\w.]+)(?:\[([^\]]*)\])?", text)
    known = [(_SAME.get(word, word), _kinds(inner)) for word, inner in found]
    return tuple(known) if all(word in _TESTS for word, _ in known) else ()


_SAME = dict.fromkeys(("list", "tuple", "Size"), "Sequence")
_TESTS: dict[str, Callable[[Any], bool]] = {
    "Sequence": lambda value: isinstance(value, list | tuple),
    "Iterable": lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes),
    "Tensor": lambda value: isinstance(value, Tensor),
    "int": is_int,
    "float": lambda value: (
        isinstance(value, int | float | np.number | np.bool_)
        or (isinstance(value, Tensor) and value._array.ndim == 0)
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


def _allowed(kinds: Kinds) -> str:
    """Return in words what fits: int or tuple of ints."""
    words = [f"tuple of {inner[0][0]}s" if inner else word for word, inner in kinds]
    return " or ".join(words).replace("Sequence", "tuple").replace("Iterable", "tuple")


def _found(value: Any, kinds: Kinds) -> str:
    """Return in words what is there instead: the element at fault, if it is that of a sequence."""
    wrong = next((_wrong_element(value, inner) for _, inner in kinds if inner), None)
    if wrong is None:
        return f"not {typename(value)}"
    return f"but found element of type {typename(wrong[1])} at pos {wrong[0]}"


def names_arguments(function: Function) -> Function:
    """Let a function say which argument is none of what it takes.

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


def after(
    error: Exception, call: Callable, name: str, function: Callable, args: tuple, kwargs: dict
) -> Callable[[], Any] | None:
    """Return what to do after ``function`` failed, once its error is handled, or None.

    That is ``call`` with PyTorch's names of arguments, or raising an error that names the argument.
    """
    if renamed := _with_torchs_names(function, error, kwargs):
        return functools.partial(call, *args, **renamed)
    better = explained(name, function, error, args, kwargs)
    return None if better is error else functools.partial(_raise, better)


def _raise(error: Exception) -> NoReturn:
    raise error


_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}


def _with_torchs_names(function: Callable, error: Exception, kwargs: dict) -> dict | None:
    """Return a call's keywords with PyTorch's names in place of NumPy's, if those are to blame."""
    unknown = re.fullmatch(r"(.+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    if not unknown or unknown[1] != function.__qualname__ or unknown[2] not in _OF_NUMPY:
        return None
    name = _OF_NUMPY[unknown[2]]
    if name in kwargs or name not in inspect.signature(function).parameters:
        return None
    return {name if one == unknown[2] else one: value for one, value in kwargs.items()}


def names_in_constructor(cls: type) -> None:
    """Let a class's own constructor say which argument is none of what it takes.

    What it only stores it would not miss: `forward` would fail, and speak of the function it calls.
    """
    init: Any = vars(cls).get("__init__")
    if init is None or init.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return

    @functools.wraps(init)
    def naming(self: Any, *args: Any, **kwargs: Any) -> None:
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
    """Return an error for the first argument of a constructor that is a number by no means.

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
    """Return name, default and alternatives of each argument; none of what is no number."""
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
    """Return whether a value is what an annotation says, or something that may stand for it."""
    if isinstance(value, list | tuple):
        inner = next((inner for word, inner in kinds if word == "Sequence"), None)
        return inner is not None and all(_may_fit(one, inner) for one in value)
    return _fits(value, kinds) or _may_stand_for(value)


def _may_stand_for(value: Any) -> bool:
    """Return whether only the call can tell: some layers take bools, arrays, ranges, fractions."""
    if isinstance(value, str | bytes | dict | float):
        return False
    return isinstance(value, numbers.Number | np.generic | Iterable)
