"""`__torch_function__`: classes and contexts that intercept the functions of tensors.

A class with the class method ``__torch_function__(func, types, args, kwargs)`` gets every call of a
function of convcore that has one of its objects among the arguments; a `TorchFunctionMode` gets
every call within its ``with`` block.  Functions are wrapped for that once the first subclass of
Tensor is made, and while a mode is entered: otherwise it costs nothing.
"""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from convcore import _tensor
from convcore._errors.calls import hint_call
from convcore._tensor import Tensor
from convcore.engine.runtime._restoring import Ending, Restoring
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls, restoring

__all__ = [
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "resolve_name",
    "wrap_torch_function",
]


class _State(threading.local):
    """What holds in this thread: the modes entered, and whether interception is off."""

    def __init__(self) -> None:
        self.modes: tuple[TorchFunctionMode, ...] = ()
        self.watchers: tuple[watching, ...] = ()
        self.no_subclasses = 0


_state = _State()


class _Off(Restoring):
    """A context without interception by classes."""

    def _back(self) -> Calls:
        return ((_state.__setattr__, ("no_subclasses", _state.no_subclasses)),)

    def _enter(self) -> None:
        _state.no_subclasses += 1


class DisableTorchFunctionSubclass(_Off):
    """A context in which no class intercepts functions; modes do."""


class DisableTorchFunction(_Off):
    """A context in which neither classes nor modes intercept functions."""

    def _back(self) -> Calls:
        return ((_state.__setattr__, ("modes", _state.modes)), *super()._back())

    def _enter(self) -> None:
        super()._enter()
        _state.modes = ()


class TorchFunctionMode(Ending):
    """A context that intercepts every function, whatever its arguments are.

    Subclasses define ``__torch_function__(self, func, types, args=(), kwargs=None)``, within which
    the mode itself is off.
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        raise NotImplementedError

    def _back(self) -> Calls:
        self._token = object()
        return ((_state.__setattr__, ("modes", _state.modes)), (_let_go, (self._token,)))

    def _enter(self) -> TorchFunctionMode:
        _hold(self._token)
        _state.modes = (*_state.modes, self)
        return self


@restoring
def intercepting(mode: TorchFunctionMode) -> Iterator[Calls]:
    """Have a mode intercept functions, without what a subclass does at its beginning and end."""
    yield TorchFunctionMode._back(mode)
    TorchFunctionMode._enter(mode)


def innermost_mode() -> TorchFunctionMode | None:
    """Return the mode that gets the next call of a function in this thread, or None."""
    return _state.modes[-1] if _state.modes else None


def _intercepts(value: Any) -> bool:
    kind = type(value)
    if kind is Tensor:
        return False
    found = getattr(kind, "__torch_function__", None)
    return found is not None and (kind in _intercepting or not issubclass(kind, Tensor))


# The subclasses of Tensor whose objects intercept: all but parameters and buffers of modules,
# unless their class defines `__torch_function__`.
_intercepting: set[type] = set()


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether a call with these arguments is intercepted."""
    if _state.modes:
        return True
    return not _state.no_subclasses and any(map(_intercepts, relevant_args))


def has_torch_function_unary(value: Any) -> bool:
    """Return whether a call with this argument is intercepted."""
    return has_torch_function((value,))


def has_torch_function_variadic(*values: Any) -> bool:
    """Return whether a call with these arguments is intercepted."""
    return has_torch_function(values)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return what the mode, or the first class of the arguments that answers, makes of a call.

    Subclasses are asked before their bases, otherwise from left to right.

    Raises
    ------
    TypeError
        All answer NotImplemented.
    """
    kinds = _kinds(relevant_args)
    if modes := _state.modes:
        try:
            _state.modes = modes[:-1]
            result = modes[-1].__torch_function__(public_api, tuple(kinds), args, kwargs)
        finally:
            _state.modes = modes
        if result is not NotImplemented:
            return result
    for kind in kinds:
        result = kind.__torch_function__(public_api, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    if not kinds:
        return public_api(*args, **kwargs)
    raise TypeError(
        f"Multiple dispatch failed for '{resolve_name(public_api)}'; all __torch_function__ "
        f"handlers returned NotImplemented: {kinds}"
    )


def _kinds(values: Iterable[Any]) -> list[Any]:
    """Return the intercepting classes, subclasses before their bases."""
    kinds: list[Any] = []
    if _state.no_subclasses:
        return kinds
    for value in values:
        kind = type(value)
        if kind not in kinds and _intercepts(value):
            bases = [place for place, other in enumerate(kinds) if issubclass(kind, other)]
            kinds.insert(bases[0] if bases else len(kinds), kind)
    return kinds


def _default(
    cls: type, func: Callable, types: Iterable[type], args: tuple = (), kwargs: dict | None = None
) -> Any:
    """Call the function without interception; tensors among its results become of the class."""
    plain = _belongs_to_modules(cls)
    if not plain and not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if plain or func in get_default_nowrap_functions() else _as_class(result, cls)


_of_tensors: Any = classmethod(_default)


def _as_class(value: Any, cls: type) -> Any:
    if cls is Tensor:
        return value
    if isinstance(value, Tensor) and not isinstance(value, cls):
        return value.as_subclass(cls)
    if isinstance(value, tuple | list):
        items = [_as_class(item, cls) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Return a decorator that makes a function one that classes and modes intercept.

    Parameters
    ----------
    dispatcher : callable
        Returns, of a call's arguments, those that may intercept.
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def _relevant(args: tuple, kwargs: dict) -> Iterator[Any]:
    """Yield the arguments, and those in lists and tuples."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def _intercepted(function: Callable) -> Callable:
    """Return a function that asks classes and modes first."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not _holders and not _lasting:  # nobody looks: see _MOST_WRAPS
            return function(*args, **kwargs)
        if _state.watchers:
            return _watched(wrapped, function, args, kwargs)
        if has_torch_function(_relevant(args, kwargs)):
            relevant = list(_relevant(args, kwargs))
            return handle_torch_function(wrapped, relevant, *args, **kwargs)
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            hint_call(error, function, args, kwargs)
            raise

    # As functools.wraps does, in a fourth of its time; signatures are those of what is wrapped.
    wrapped.__dict__.update(function.__dict__)
    wrapped.__wrapped__ = function  # type: ignore[attr-defined]
    wrapped.__doc__ = function.__doc__
    wrapped.__module__ = function.__module__
    wrapped.__qualname__ = function.__qualname__
    # What packages read to know an argument: `"indexing" in torch.meshgrid.__kwdefaults__`.
    wrapped.__kwdefaults__ = getattr(function, "__kwdefaults__", None)
    return wrapped


_WRAPPED = _intercepted(_intercepted).__code__  # all wrappers have it


def _watched(wrapped: Callable, function: Callable, args: tuple, kwargs: dict) -> Any:
    """Give a call to the innermost watcher, which is off meanwhile."""
    watchers = _state.watchers
    watcher = watchers[-1]
    try:
        _state.watchers = watchers[:-1]
        others = _state.watchers or _state.modes or _intercepting
        call = watcher.watch or _uninterested
        return call(wrapped if others else function, wrapped.__name__, args, kwargs)
    finally:
        _state.watchers = watchers


def _uninterested(function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """Be the watcher of a context that ended during a call that it watched."""
    return function(*args, **kwargs)


class watching(Restoring):
    """A context in which a watcher gets every call of a function in this thread.

    Parameters
    ----------
    watcher : callable
        ``watcher(function, name, args, kwargs)`` returns what the call returns.
    """

    def __init__(self, watcher: Callable) -> None:
        self._watcher = watcher
        self.watch: Callable | None = None  # the watcher, while the context is open

    def _back(self) -> Calls:
        return ((self._end, ()),)

    def _enter(self) -> None:
        _hold(self)
        self.watch = self._watcher
        _state.watchers = (*_state.watchers, self)

    def _end(self) -> None:
        """Watch no longer: contexts may end in any order."""
        self.watch = None
        _state.watchers = tuple([one for one in _state.watchers if one is not self])
        _let_go(self)


def unwatched(function: Callable, *args: Any) -> Any:
    """Call a function; what it calls is given to no watcher."""
    watchers = _state.watchers
    if not watchers:
        return function(*args)
    try:
        _state.watchers = ()
        return function(*args)
    finally:
        _state.watchers = watchers


# Wrapping all functions

# Where functions are public: modules that programs read, and the class Tensor.
_MODULES = ("convcore", "convcore.nn.functional", "convcore.linalg", "convcore.special")
_DEFINED_IN = (
    *("convcore.functions", "convcore.random"),
    *("convcore._tensor.creation", "convcore._tensor.printing", "convcore._tensor.tensor"),
    "convcore.linalg",  # whose functions take out=
)
# Looked at by interception itself, or asked of any object.
_LEFT = {"__new__", "__init__", "__hash__", "__reduce_ex__", "__deepcopy__", "__init_subclass__"}
_LEFT |= {"__torch_function__", "__array__", "__dir__", "__setstate__", "as_subclass", "_axis"}
_LEFT |= {"_scalar", "_real_scalar", "_suggested_format", "_is_view", "is_tensor", "dim", "size"}

_before: list[_Place] = []  # what is wrapped now
_wrappers: dict[tuple[Any, str, Any], Callable] = {}  # those of earlier times, to be used again
_places: list[_Place] = []  # what was found then
_lasting: list[bool] = []  # not empty once functions stay wrapped

_lock = process_lock()
_holders: set[object] = set()  # modes and watchers that need the wrappers, in all threads
_wraps = 0  # how often functions were wrapped

# From Python 3.13 on a class has 1,000 versions, two of which go with each wrapping and restoring;
# after that its attributes are looked up slowly. The wrappers stay before that.
_MOST_WRAPS = 200 if sys.version_info >= (3, 13) else sys.maxsize

# The names by which interception knows operators, as PyTorch's does.
_OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "neg", "abs")},
    **{f"__{name}__": name for name in ("ne", "lt", "le", "gt", "ge")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    **{"__radd__": "add", "__rmul__": "mul", "__mod__": "remainder", "__pos__": "positive"},
    **{"__truediv__": "div", "__rtruediv__": "__rdiv__", "__itruediv__": "div_"},
}


def install() -> None:
    """Wrap the public functions and the methods of Tensor for good, unless they are already."""
    if not _lasting:
        _lasting.append(True)
    if not _before:
        _wrap_all()


class _Place:
    """A module or class, and its functions as they are and wrapped."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        # Of a class `vars` is a view that nothing can be written through; what it views is asked of
        # the collector. Setting attributes one by one takes some ten times as long.
        is_module = isinstance(owner, types.ModuleType)
        self._now: dict[str, Any] = vars(owner) if is_module else gc.get_referents(vars(owner))[0]
        self._all: dict[str, Any] = {}
        self._before: tuple = ()  # all values, without the wrappers and with them
        self._during: tuple = ()
        self.plain: dict[str, Any] = {}
        self.wrapped: dict[str, Any] = {}

    def refresh(self) -> None:
        """Look for names that came or went, and functions that a tool has replaced by its own."""
        now = self._now
        if self._has(self._before):
            return
        changed = [
            name for name in {**self._all, **now} if self._all.get(name) is not now.get(name)
        ]
        for name in changed:
            self.plain.pop(name, None)
            self.wrapped.pop(name, None)
            one = now.get(name)
            if _is_public(self.owner, name, one):
                self.plain[name] = one
                self.wrapped[name] = _wrapper(self.owner, name, one)
        self._all, self._during = dict(now), ()
        self._before = tuple(now.values())  # last: after an interrupt all are looked at again

    def _has(self, values: tuple) -> bool:
        """Return whether these, and no others, are there."""
        try:
            return tuple(self._now.values()) == values  # which looks at identity first
        except Exception:  # an array in another's place, whose equality is no bool
            return False

    def _put(self, functions: dict[str, Any]) -> None:
        """Put functions in their places."""
        indexing = self._now.get("__getitem__")
        self._now.update(functions)
        if isinstance(self.owner, type):
            name = next(iter(self.plain))
            setattr(self.owner, name, self._now[name])  # Python forgets what it looked up before
            # But Python 3.13 may go on calling the __getitem__ that it knows, as it did after some
            # thousand changes of the class, unless that function itself changes.
            if isinstance(indexing, types.FunctionType):
                indexing.__defaults__ = indexing.__defaults__

    def wrap(self) -> None:
        """Put the wrappers in their places."""
        self._put(self.wrapped)
        self._during = self._during or tuple(self._now.values())

    def restore(self) -> None:
        """Put the functions back, but where others replaced the wrappers meanwhile."""
        if self._has(self._during):
            self._put(self.plain)
        else:
            now = self._now
            self._put({k: v for k, v in self.plain.items() if now.get(k) is self.wrapped[k]})


def prepare() -> None:
    """Make the wrappers, once: the first interception is then as quick as others."""
    if _before:
        return
    importlib.import_module("convcore").ones  # noqa: B018  the package loads its names
    if not _places:
        owners: list[Any] = [*map(importlib.import_module, _MODULES), Tensor]
        _places[:] = map(_Place, owners)
    for place in _places:
        place.refresh()


def _hold(token: object) -> None:
    """Have the functions wrapped until `_let_go`."""
    with _lock:
        _holders.add(token)
        if not _before:
            _wrap_all()


def _let_go(token: object) -> None:
    """Restore the functions if nobody else needs them wrapped."""
    with _lock:
        _holders.discard(token)
        if not _holders and not _lasting and _wraps < _MOST_WRAPS:
            _restore()


def _wrap_all() -> None:
    global _wraps
    prepare()
    _wraps += 1
    try:
        Tensor.__torch_function__ = _of_tensors  # type: ignore[attr-defined]
        for place in _places:
            _before.append(place)
            place.wrap()
    except BaseException:  # an interrupt
        _restore()
        raise


def _wrapper(owner: Any, name: str, value: Any) -> Callable:
    """Return the wrapper of a function in a place, made at the first call."""
    found = _wrappers.get((owner, name, value))
    if found is None:
        found = _wrappers[owner, name, value] = _intercepted(value)
        found.__name__ = _OPERATORS.get(name, name)
        if isinstance(owner, types.ModuleType):  # pickle looks for it where it is public
            found.__module__, found.__qualname__ = owner.__name__, name
    return found


def _is_public(owner: Any, name: str, value: Any) -> bool:
    if not isinstance(value, types.FunctionType) or name in _LEFT:
        return False
    return owner is Tensor or f"{value.__module__}.".startswith(_DEFINED_IN)


def intercepted(function: Any) -> Any:
    """Return what stands in a public function's place now: its wrapper while there is one."""
    return interceptable(function) if _before else function


def interceptable(function: Any) -> Any:
    """Return the wrapper of a public function, for who keeps it while others come and look.

    What is none, or has a wrapper already, stays as it is.
    """
    if not isinstance(function, types.FunctionType):
        return function
    if not f"{function.__module__}.".startswith(_DEFINED_IN):
        return function
    own = function.__name__
    for place in _places:
        if place.plain.get(own) is function:
            return place.wrapped[own]
    for place in _places:  # under another name, as torch.absolute
        for name, plain in place.plain.items():
            if plain is function:
                return place.wrapped[name]
    return function


def is_wrapper(function: types.FunctionType) -> bool:
    """Return whether a function is the wrapper of a public one, of whatever time."""
    return function.__code__ is _WRAPPED


def uninstall() -> None:
    """Undo `install`: the subclasses made so far intercept no longer."""
    global _wraps
    _wraps = 0
    _intercepting.clear()
    _lasting.clear()
    _restore()


def _restore() -> None:
    while _before:
        _before[-1].restore()
        _before.pop()  # last: after an interrupt it is restored again
    if "__torch_function__" in vars(Tensor):
        del Tensor.__torch_function__  # type: ignore[attr-defined]


def _subclassed(cls: type) -> None:
    """Note a new subclass of Tensor, whose objects intercept."""
    defines = any("__torch_function__" in vars(base) for base in cls.__mro__ if base is not Tensor)
    if defines or not _belongs_to_modules(cls):
        _intercepting.add(cls)
        install()


def _belongs_to_modules(cls: type) -> bool:
    """Return whether a class is of Parameter's or Buffer's kind: results are plain tensors."""
    bases = (base for base in cls.__mro__ if base is not Tensor and issubclass(base, Tensor))
    return any(base.__module__.startswith("convcore.") for base in bases)


_tensor.on_subclass(_subclassed)


# What can be asked


@functools.cache
def get_default_nowrap_functions() -> set[Callable]:
    """Return the functions whose results stay as they are."""
    names = ("_version", "grad", "grad_fn", "is_leaf", "_base", "_backward_hooks", "requires_grad")
    found = (vars(Tensor).get(name) for name in names)
    return {value.fget for value in found if isinstance(value, property) and value.fget}


def resolve_name(f: Callable) -> str | None:
    """Return a function's name as programs write it, such as 'torch.Tensor.add'."""
    for place in _before:
        owner = place.owner
        for name in (k for k, v in place.plain.items() if f is v or f is vars(owner).get(k)):
            where = "torch.Tensor" if owner is Tensor else owner.__name__
            return f"{where.replace('convcore', 'torch')}.{name}"
    return getattr(f, "__qualname__", None)
