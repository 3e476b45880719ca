"""Unknown names and keywords: errors that say which one was meant, or why it is missing.

Nothing here runs before something has failed.
"""

from __future__ import annotations

import dis
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NoReturn, Self, TypeVar

from convcore._hints import hinted, nearest

_Function = TypeVar("_Function", bound=Callable)


def explain_names(room: str) -> None:
    """Have a module, and what is loaded of the modules in it, explain names that they have not.

    To be called at its end.  Type checkers, which find misspelt names, do not see it.
    """
    for path, module in list(sys.modules.items()):
        inside = path == room or path.startswith(f"{room}.")
        if inside and "._" not in path and not hasattr(module, "__getattr__"):
            module.__getattr__ = functools.partial(_refuse, path)  # type: ignore[method-assign]


def _refuse(module: str, name: str) -> NoReturn:
    raise missing_name(module, name)


def missing_name(module: str, name: str) -> AttributeError | ImportError:
    """Return the error of a name that a module has not; PyTorch's name is explained.

    To be called by the module's `__getattr__`.
    """
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):  # Python's own questions, such as __path__, and nobody's mistakes
        return AttributeError(text, name=name, obj=sys.modules.get(module))
    why, meant = _explained(module, name)
    if _is_imported_from(module) and f"{module}.{name}" not in sys.modules:
        return hinted(_not_imported(module, name, meant), why)
    # Without the module, in which Python would look for it again, and say it twice.
    obj = None if meant else sys.modules.get(module)
    text = f"{text}. Did you mean {meant!r}?" if meant else text
    return hinted(AttributeError(text, name=name, obj=obj), why)


def refuse_module(path: str) -> None:
    """Raise the error of a module that is imported and was not found; PyTorch's is explained.

    To be called by a finder of modules.  Who only asks whether there is such a module, as
    `importlib.util.find_spec` does, is answered by no finder that there is none.
    """
    importing = sys._getframe(3).f_code.co_name == "_find_and_load_unlocked"
    module, _, name = path.rpartition(".")
    if not importing or module not in sys.modules or module.startswith("convcore.compat"):
        return
    why, meant = _explained(module, name)
    if why or meant:
        text = f"No module named {path!r}"
        text = f"{text}. Did you mean {meant!r}?" if meant else text
        raise hinted(ModuleNotFoundError(text, name=path), why)


def _explained(module: str, name: str) -> tuple[str, str]:
    """Return why convcore has no such name, and which was meant: one of them, or none."""
    # By its name, for it stands above: its lists are read when something is missing, never before.
    compat: ModuleType = importlib.import_module("convcore.compat.errors")
    room = module.replace("convcore", "torch", 1)
    why = compat.explanation(room, name)
    meant = "" if why else nearest_in(module, name)
    return why or ("" if meant else compat.out_of_scope(f"{room}.{name}")), meant


@functools.lru_cache(1024)  # programs ask again and again whether a name is there
def nearest_in(module: str, name: str) -> str:
    """Return the name that was meant: the same in a module of this one, or one that is near."""
    found = sys.modules[module]
    for room, inner in vars(found).items():  # functional.relu for nn.relu
        is_own = isinstance(inner, ModuleType) and inner.__name__ == f"{module}.{room}"
        if is_own and name in getattr(inner, "__all__", ()):
            return f"{room}.{name}"
    in_place = f"{name}_"  # Tensor.uniform_ for torch.uniform, which there is not
    if module == "convcore" and hasattr(found.Tensor, in_place):
        return f"Tensor.{in_place}"
    return nearest(name, _names_of(found))


def _names_of(room: ModuleType) -> list[str]:
    """Return the names that users look for in a module: not the modules that it was made of."""
    found = [one for one in dir(room) if not one.startswith("_")]
    listed = getattr(room, "__all__", found)
    return [one for one in found if one in listed or type(vars(room).get(one)) is not ModuleType]


def _is_imported_from(module: str) -> bool:
    """Return whether who asks a module for a name stands at ``from module import name``."""
    frame: FrameType | None = sys._getframe(1)
    while frame and frame.f_globals.get("__name__") in (__name__, module):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_code[frame.f_lasti] == dis.opmap["IMPORT_FROM"]


def _not_imported(module: str, name: str, meant: str) -> ImportError:
    """Return the error of ``from module import name``.

    Of an AttributeError Python would make one of its own, without the hint, and before Python 3.12
    without a suggestion.
    """
    found = sys.modules[module]
    return ImportError(
        f"cannot import name {name!r} from {module!r} ({found.__file__})"
        f"{f'. Did you mean {meant!r}?' if meant else ''}",
        name=module,
        path=found.__file__,
    )


def name_methods(cls: type, methods: Iterable[str]) -> None:
    """Have errors of calls name a public class, not the private one that has its methods."""
    for name in methods:
        method = getattr(cls, name, None)
        if isinstance(method, FunctionType) and method.__qualname__.startswith("_"):
            setattr(cls, name, _renamed(method, f"{cls.__qualname__}.{name}"))


def _renamed(function: FunctionType, qualname: str) -> FunctionType:
    """Return a copy of a function under another name."""
    own = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    own.__dict__.update(function.__dict__)
    own.__kwdefaults__, own.__annotations__ = function.__kwdefaults__, function.__annotations__
    own.__doc__, own.__module__, own.__qualname__ = function.__doc__, function.__module__, qualname
    return own


def hint_keyword(error: TypeError, function: Callable) -> None:
    """Add to the error of a call the keyword that was meant; later Pythons name it themselves."""
    found = re.fullmatch(r"(.+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    plain: Any = inspect.unwrap(function)
    own = getattr(plain, "__qualname__", "")
    if hasattr(error, "__notes__"):
        return
    if found and found[1] == own:
        names = _keywords(plain.__code__)
        hinted(error, _keyword_hint(found[2], names, plain.__code__))
    elif own and str(error).startswith(f"{own}() takes") and str(error).endswith("given"):
        usage = getattr(plain, "usage", "")  # of what is no call alone
        hinted(error, usage or f"its arguments are {', '.join(_keywords(plain.__code__))}")


def _keyword_hint(word: str, names: Sequence[str], code: CodeType) -> str:
    """Say which keyword was meant, or what there are."""
    takes_any = code.co_flags & inspect.CO_VARARGS
    several = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if takes_any else ""
    if word == several:
        return f"{word} stand one by one, without a keyword"
    meant = _meant(word, names)
    return f"did you mean {meant!r}?" if meant else f"it takes {', '.join(names)}"


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


def _meant(word: str, names: Sequence[str]) -> str:
    """Return the argument that a keyword was meant to be: by its meaning, or its spelling."""
    same = next((name for name in _SAME.get(word, ()) if name in names), "")
    longer = [name for name in names if name.startswith(word) and len(word) > 2]
    return same or (longer[0] if len(longer) == 1 else nearest(word, names, 0.65))


def hint_keywords(room: str) -> None:
    """Let the public functions of a module say which keyword was meant."""
    module = sys.modules[room]
    for name in module.__all__:
        function = getattr(module, name)
        if isinstance(function, FunctionType):
            better = hinting(function)
            setattr(module, name, better)
            setattr(sys.modules[function.__module__], name, better)  # where pickle looks for it


def hint_methods(name: str, parts: Iterable[type]) -> None:
    """Let the public methods of a class, which has them from its parts, say the same.

    Errors give them the name of the class.
    """
    for part in parts:
        for method in list(vars(part).values()):
            if isinstance(method, FunctionType) and not method.__name__.startswith("_"):
                named = _renamed(method, f"{name}.{method.__name__}")
                setattr(
                    part, method.__name__, hinting(named) if _keywords(method.__code__) else named
                )


def refuse_keywords(function: Callable, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for the first keyword that is not known to a function that takes any."""
    for name in given:
        if name not in known:
            where = function.__qualname__
            error = TypeError(f"{where}() got an unexpected keyword argument {name!r}")
            hint_keyword(error, function)
            raise error


def hinting(function: _Function) -> _Function:
    """Let a function say which keyword was meant; a call takes 0.13 us more."""

    @functools.wraps(function)
    def hinted_call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            hint_keyword(error, function)
            raise

    return hinted_call  # type: ignore[return-value]


def _keywords(code: CodeType) -> tuple[str, ...]:
    """Return the names of the arguments that may be given by keyword; not that of self."""
    first = max(code.co_varnames[:1] == ("self",), code.co_posonlyargcount)
    return code.co_varnames[first : code.co_argcount + code.co_kwonlyargcount]


class KeywordHints:
    """A base of classes whose constructors say which keyword was meant.

    Python 3.13 says it of misspelt ones, but not of those that have another name elsewhere.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if kwargs:
            _check_keywords(cls, args, kwargs)
        new: Any = super().__new__
        return new(cls) if new is object.__new__ else new(cls, *args, **kwargs)


def _check_keywords(cls: type, args: Sequence[Any], given: Mapping[str, Any]) -> None:
    init = cls.__init__  # type: ignore[misc]
    code = getattr(getattr(init, "__wrapped__", init), "__code__", None)
    if code is None or code.co_flags & 8:  # inspect.CO_VARKEYWORDS: any keyword will do
        return
    names = _keywords(code)
    before = names[: min(len(args), len(names) - code.co_kwonlyargcount)]
    for name in given:
        if name in before:
            raise hinted(
                TypeError(
                    f"{cls.__qualname__}.__init__() got multiple values for argument {name!r}"
                ),
                f"what stands before the keywords is {', '.join(before)}",
            )
        if name not in names:
            raise unknown_keyword(cls.__qualname__, name, names)


def unknown_keyword(cls: str, name: str, names: Sequence[str]) -> TypeError:
    """Return the error of a constructor for a keyword that is none of its names."""
    meant = _meant(name, names)
    return hinted(
        TypeError(
            f"{cls}.__init__() got an unexpected keyword argument {name!r}"
            f"{f'. Did you mean {meant!r}?' if meant else ''}"
        ),
        "" if meant else f"it takes {', '.join(names) or 'no keywords'}",
    )
