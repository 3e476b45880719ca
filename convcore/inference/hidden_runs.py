"""Runs of a net that its user did not ask for: they leave nothing behind.

`HiddenRun` saves the state that the net's code can reach, and restores it after the run: buffers,
parameters, attributes, variables of closures and modules, random generators.  It ends a run before
that prints, reads or writes a file, or asks for the time, whose effects nobody can undo.
"""

from __future__ import annotations

import functools
import io
import pickle
import random
import sys
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from convcore._tensor import Tensor
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.nn import Module
from convcore.nn.modules._hooks import HOOK_TABLES, hook_tables
from convcore.nn.parameter import is_lazy
from convcore.random.generator import Generator, resolve

# Objects visited at most.  A net whose code leads to more is not run without its user.
MAX_OBJECTS = 200_000

_LIBRARIES = ("convcore", "torch", "numpy", "scipy")
# Instances of these packages' classes are shared by the whole process, or hold threads.
_PROCESS_WIDE = ("logging", "threading", "concurrent", "multiprocessing", "asyncio", "weakref")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype)
_MISSING = object()
# The generators of Python and NumPy that have no object of their own.
_GENERATORS = (random._inst, np.random.mtrand._rand)
# The attributes of a tensor that say what it is; others say how it came about.
_TENSOR_SLOTS = ("_array", "_grad", "_requires_grad")
# Compiled functions whose effects or results lie outside the process's memory.
_OUTSIDE_MODULES = frozenset(
    ("posix", "nt", "_io", "io", "_socket", "_posixsubprocess", "_winapi", "select", "mmap", "time")
)
_OUTSIDE_BUILTINS = frozenset(("print", "input", "open", "exec", "breakpoint"))
_HARMLESS = frozenset(("fspath", "getpid", "getcwd", "cpu_count", "sched_getaffinity"))


class UnrepeatableError(BaseException):
    """A net cannot run without its user's notice.

    It ends a run before an effect outside; no ``except Exception`` of the net's code catches it.
    """


class State:
    """The state that some objects' code can reach, as it is when this is made.

    Attributes
    ----------
    changed : bool
        Whether `restore` found a difference.
    codes : set of code
        The code of the functions that lead to the state, and of those inside them.

    Raises
    ------
    UnrepeatableError
        There are too many objects, or some whose state cannot be saved, such as generators.
    """

    def __init__(self, *roots: Any) -> None:
        self.changed = False
        # How to compare and restore, the object, and its saved content.
        self._saved: list[tuple[Callable[[Any, Any], bool], Any, Any]] = []
        self.codes: set[types.CodeType] = set()
        self._kept: dict[int, Any] = {}  # by id; the objects stay alive as long as this does
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if isinstance(value, _PLAIN) or id(value) in self._kept:
                continue
            self._kept[id(value)] = value
            if len(self._kept) > MAX_OBJECTS:
                raise UnrepeatableError("its code can change too many objects")
            waiting.extend(self._visit(value))

    def restore(self) -> None:
        """Restore what has changed; it may be called again."""
        for restored, value, content in self._saved:
            self.changed |= restored(value, content)

    def _save(self, restored: Callable[[Any, Any], bool], value: Any, content: Any) -> None:
        self._saved.append((restored, value, content))

    def _visit(self, value: Any) -> Iterator[Any]:
        """Save an object's content; yield the objects that it leads to."""
        if isinstance(value, Tensor):
            yield from self._visit_slots(value, _TENSOR_SLOTS)
            self._save(_restored_list, value._counter, list(value._counter))
            yield from self._visit_dict(vars(value))
        elif isinstance(value, np.ndarray):
            if value.flags.writeable:
                self._save(_restored_array, value, value.copy(order="K"))
        elif isinstance(value, Module):
            yield from self._visit_module(value)
        elif isinstance(value, dict):
            yield from self._visit_dict(value)
        elif isinstance(value, list):
            self._save(_restored_list, value, list(value))
            yield from value
        elif isinstance(value, deque):
            self._save(_restored_deque, value, list(value))
            yield from value
        elif isinstance(value, set):
            self._save(_restored_set, value, set(value))
            yield from value
        elif isinstance(value, bytearray):
            self._save(_restored_list, value, bytes(value))
        elif isinstance(value, tuple | frozenset):
            yield from value
        elif isinstance(value, type):
            yield from self._visit_class(value)
        elif isinstance(value, Generator | random.Random | np.random.RandomState):
            self._save(_restored_generator, value, _draws_of(value))
        elif isinstance(value, np.random.Generator | np.random.BitGenerator):
            bits: Any = getattr(value, "bit_generator", value)
            self._save(_restored_bits, bits, bits.state)
        elif hasattr(value, "__next__") and not isinstance(value, io.IOBase):
            raise UnrepeatableError(f"its code can reach a {type(value).__name__}")
        else:
            yield from self._visit_code(value)

    def _visit_slots(self, value: Any, names: tuple[str, ...]) -> Iterator[Any]:
        content = [(name, getattr(value, name, _MISSING)) for name in names]
        self._save(_restored_slots, value, content)
        yield from (each for _, each in content)

    def _visit_dict(self, value: dict) -> Iterator[Any]:
        self._save(_restored_dict, value, list(value.items()))
        yield from value.values()

    def _visit_module(self, module: Module) -> Iterator[Any]:
        if any(map(is_lazy, module._parameters.values())):
            raise UnrepeatableError("it has parameters without a shape")
        own = vars(module)
        self._save(_restored_dict, own, list(own.items()))
        # Hooks that are not called in the run may be called meanwhile in other threads.
        left_out = HOOK_TABLES if hook_tables(module) is not own else ()
        yield from (value for name, value in own.items() if name not in left_out or not value)
        yield type(module)

    def _visit_class(self, cls: type) -> Iterator[Any]:
        if not _is_library(cls) and cls.__module__.partition(".")[0] not in sys.stdlib_module_names:
            content = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
            self._save(_restored_class, cls, content)
            yield from content.values()
            yield from cls.__mro__

    def _visit_code(self, value: Any) -> Iterator[Any]:
        """Visit functions and other objects."""
        if isinstance(value, types.FunctionType):
            if not _is_library_name(str(value.__module__)):
                yield from self._visit_function(value)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, value.keywords)
        elif isinstance(value, staticmethod | classmethod):
            yield value.__func__
        elif isinstance(value, property):
            yield from (value.fget, value.fset)
        elif not isinstance(value, types.ModuleType) and not _is_library(type(value)):
            if type(value).__module__.partition(".")[0] in _PROCESS_WIDE:
                return
            if hasattr(value, "__dict__"):
                yield from self._visit_dict(vars(value))
            yield from self._visit_slots(value, _slots(type(value)))
            yield type(value)

    def _visit_function(self, function: types.FunctionType) -> Iterator[Any]:
        self.codes.update(_codes_in(function.__code__))
        for cell in function.__closure__ or ():
            yield from self._visit_slots(cell, ("cell_contents",))
        yield from (function.__defaults__, function.__kwdefaults__, vars(function))
        names = set(_names_in(function.__code__))
        yield from self._visit_names(function.__globals__, names)

    def _visit_names(self, namespace: dict[str, Any], names: set[str]) -> Iterator[Any]:
        """Visit the variables of a module that some code names, and those of modules it names."""
        for name in sorted(names):
            value = namespace.get(name, _MISSING)
            self._save(_restored_item, (namespace, name), value)
            if not isinstance(value, types.ModuleType):
                yield value
            elif id(value) not in self._kept and not _is_library_name(value.__name__):
                self._kept[id(value)] = value
                yield from self._visit_names(vars(value), names)


def _slots(cls: type) -> tuple[str, ...]:
    """Return the names of a class's slots, those of its bases included, that nothing overrides."""
    return tuple(
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType) and getattr(cls, name) is member
    )


def _is_library_name(module: str) -> bool:
    top = module.partition(".")[0]
    return top in _LIBRARIES or top in sys.stdlib_module_names


def _is_library(value: Any) -> bool:
    """Return whether a class or function is convcore's, or of a package that it stands on."""
    return str(getattr(value, "__module__", "")).partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=1024)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """Return the names of variables and attributes in code and in the functions inside it."""
    return frozenset(code.co_names).union(*map(_names_in, _codes_in(code)[1:]))


def _codes_in(code: types.CodeType) -> list[types.CodeType]:
    """Return code and that of the functions inside it."""
    found = [code]
    for each in found:
        found += [inner for inner in each.co_consts if isinstance(inner, types.CodeType)]
    return found


def _restored_slots(value: Any, content: list[tuple[str, Any]]) -> bool:
    changed = False
    for name, before in content:
        if getattr(value, name, _MISSING) is before:
            continue
        changed = True
        if before is _MISSING:
            delattr(value, name)
        else:
            setattr(value, name, before)
    return changed


def _restored_class(cls: type, content: dict[str, Any]) -> bool:
    now = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    for name in now.keys() - content.keys():
        delattr(cls, name)
    changed = {k: v for k, v in content.items() if now.get(k, _MISSING) is not v}
    for name, value in changed.items():
        setattr(cls, name, value)
    return bool(changed) or now.keys() != content.keys()


def _restored_item(place: tuple[dict[str, Any], str], before: Any) -> bool:
    namespace, name = place
    if namespace.get(name, _MISSING) is before:
        return False
    if before is _MISSING:
        namespace.pop(name, None)
    else:
        namespace[name] = before
    return True


def _restored_dict(value: dict, items: list[tuple[Any, Any]]) -> bool:
    now = list(value.items())
    if len(now) == len(items) and all(
        a is c and b is d for (a, b), (c, d) in zip(now, items, strict=True)
    ):
        return False
    base: Any = OrderedDict if isinstance(value, OrderedDict) else dict
    base.clear(value)
    base.update(value, items)
    return True


def _restored_list(value: Any, content: Any) -> bool:
    if len(value) == len(content) and all(a is b for a, b in zip(value, content, strict=True)):
        return False
    value[:] = content
    return True


def _restored_deque(value: deque, content: list) -> bool:
    if len(value) == len(content) and all(a is b for a, b in zip(value, content, strict=True)):
        return False
    value.clear()
    value.extend(content)
    return True


def _restored_set(value: set, content: set) -> bool:
    if value == content:
        return False
    value.clear()
    value.update(content)
    return True


def _restored_array(value: np.ndarray, content: np.ndarray) -> bool:
    if value.dtype.hasobject:
        same = all(a is b for a, b in zip(value.flat, content.flat, strict=True))
    else:  # bytes, for NaN differs from itself
        a, b = (each.ravel(order="K").view(np.uint8) for each in (value, content))
        same = np.array_equal(a, b)
    if not same:
        np.copyto(value, content)
    return not same


def _draws_of(source: Any) -> Any:
    """Return the state of a generator."""
    if isinstance(source, Generator):
        return source.get_state()
    get = getattr(source, "getstate", None) or source.get_state
    return get()


def _restored_generator(source: Any, state: Any) -> bool:
    now = _draws_of(source)
    if isinstance(source, Generator):
        same = np.array_equal(now._array, state._array)
    else:
        same = pickle.dumps(now) == pickle.dumps(state)
    if not same:
        set_state = getattr(source, "setstate", None) or source.set_state
        set_state(state)
    return not same


def _restored_bits(bits: np.random.BitGenerator, state: Any) -> bool:
    if pickle.dumps(bits.state) == pickle.dumps(state):
        return False
    bits.state = state
    return True


class HiddenRun(Restoring):
    """A context in which a net runs without its user's notice; see the top of this file.

    Parameters
    ----------
    model : Module
    effects : bool
        Whether the run may have effects outside, as a run that the user asked for.  It then takes
        place also where the state cannot be saved.
    draws : bool
        Whether the process's random generators stay where the run has brought them.

    Attributes
    ----------
    is_pure : bool
        Whether the run has changed nothing, and had no effects; known after the block.

    Raises
    ------
    UnrepeatableError
        The state cannot be saved, or the run would have had an effect outside.
    """

    def __init__(self, model: Module, effects: bool = False, draws: bool = False) -> None:
        self._model, self._effects, self._draws = model, effects, draws
        self._state: Any = None
        self._stopped = False

    @property
    def is_pure(self) -> bool:
        """Whether the run has changed nothing."""
        return not self._stopped and not self._state.changed

    def _back(self) -> Calls:
        self._stopped = False
        try:
            generators = () if self._draws else (*_GENERATORS, resolve(None))
            self._state = State(self._model, *generators)
        except UnrepeatableError:
            if self._effects:
                return ()
            raise
        restore = (self._state.restore, ())
        profile = sys.getprofile()
        if self._effects or (profile is not None and not isinstance(profile, types.FunctionType)):
            return (restore,)  # a profiler written in C cannot be put back
        return (sys.setprofile, (profile,)), restore

    def _enter(self) -> HiddenRun:
        if not self._effects:
            sys.setprofile(self._check)
        return self

    def _check(self, frame: types.FrameType, event: str, function: Any) -> None:
        """End the run if the net's code is about to call a function with effects outside."""
        if event != "c_call":
            return
        name = function.__name__
        module = function.__module__ or type(function.__self__).__module__
        if module == "builtins":
            outside = name in _OUTSIDE_BUILTINS
        else:
            outside = module in _OUTSIDE_MODULES and name not in _HARMLESS
        if outside and self._is_of_the_net(frame):
            self._stopped = True
            raise UnrepeatableError(f"its code calls {module}.{name}")

    def _is_of_the_net(self, frame: types.FrameType | None) -> bool:
        """Return whether the net's code calls a function, by functions of Python's own if need be.

        Others do so that run meanwhile: finalizers, handlers of signals, imports.  Warnings are
        shown once for each place in a program, so that they are none of the net's either.
        """
        while frame is not None and frame.f_code not in self._state.codes:
            module = str(frame.f_globals.get("__name__", ""))
            if module.partition(".")[0] not in sys.stdlib_module_names:
                return False
            if frame.f_code.co_name == "__del__" or module in ("weakref", "warnings"):
                return False
            if module.startswith("importlib."):
                return False
            frame = frame.f_back
        return frame is not None and frame.f_code.co_name != "__del__"
