"""A deep look at what a process has in common: modules, classes, functions, and what they hold.

`look()` before and after something, and `changes` between the two: nothing that was there may be
another.  New objects are no change, unless something old leads to them.
"""

from __future__ import annotations

import contextlib
import sys
import types
from typing import Any

import numpy as np

ROOMS = ("convcore", "builtins", "collections", "copyreg", "pickle", "_compat_pickle", "operator")
ROOMS += ("functools", "io", "os", "zipfile", "numpy", "codecs", "_codecs", "types")

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
# What a test's own reads of values change.
_COUNTING = "reads.count"
# What pytest sets, and warnings that were shown once.
_MOVING = ("__warningregistry__", "'PYTEST_CURRENT_TEST'", "b'PYTEST_CURRENT_TEST'")


def _is_watched(module: str) -> bool:
    return module.partition(".")[0] == "convcore" or module in ROOMS


def _name(key: Any) -> Any:
    return repr(key) if isinstance(key, _PLAIN) else id(key)


def _members(value: Any) -> dict[Any, Any]:
    """Return what an object holds, by a name that stays."""
    if isinstance(value, types.FunctionType):
        members = {"defaults": value.__defaults__, "code": value.__code__, "dict": value.__dict__}
        return members | {"kwdefaults": value.__kwdefaults__}
    if isinstance(value, (type, types.ModuleType)):
        return {name: part for name, part in vars(value).items() if name not in _MOVING}
    if isinstance(value, dict):
        return {_name(key): part for key, part in value.items() if _name(key) not in _MOVING}
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, (set, frozenset)):
        return {_name(part): part for part in value}
    if isinstance(value, np.ndarray):
        return {"bytes": value.tobytes(), "dtype": str(value.dtype), "shape": str(value.shape)}
    if isinstance(value, (staticmethod, classmethod)):
        return {"function": value.__func__}
    if isinstance(value, property):
        return {"get": value.fget, "set": value.fset}
    return _attributes(value)


def _attributes(value: Any) -> dict[str, Any]:
    """Return an object's attributes, also those in slots."""
    found = dict(getattr(value, "__dict__", {}))
    if type(value).__module__.partition(".")[0] == "convcore":
        for base in type(value).__mro__:
            for name, slot in base.__dict__.items():
                if isinstance(slot, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):  # it is not set yet
                        found[name] = slot.__get__(value)
    return {name: part for name, part in found.items() if name not in _MOVING}


def look() -> dict[str, Any]:
    """Return, by path, each object's identity, or its value if it is a plain one."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    waiting = [(name, sys.modules[name]) for name in sorted(sys.modules) if _is_watched(name)]
    while waiting:
        path, value = waiting.pop()
        found[path] = (type(value).__name__, value) if isinstance(value, _PLAIN) else id(value)
        is_far = isinstance(value, types.ModuleType) and not _is_watched(value.__name__)
        if isinstance(value, _PLAIN) or id(value) in seen or is_far:
            continue
        seen.add(id(value))
        for name, part in _members(value).items():
            waiting.append((f"{path}.{name}", part))
    return found


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the paths of what has changed, come or gone."""
    paths = sorted(before.keys() | after.keys())
    paths = [path for path in paths if not path.endswith(_COUNTING)]
    return [path for path in paths if before.get(path, changes) != after.get(path, changes)]
