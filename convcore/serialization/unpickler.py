"""A safe unpickler: a pickle calls only listed names, and changes only objects that it has made.

Python's unpickler lets a file call whatever it names, and set attributes of whatever it can reach,
classes and modules included.  Here names lead to a short list, calls to constructors that check
their arguments, and attributes are set on objects that this file has made, of a few kinds.
"""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from convcore.serialization.errors import CheckpointError

_Unpickler: Any = vars(pickle)["_Unpickler"]

# What no pickle of data needs: names by number (EXT), which pass by `find_class`; references to
# storages as text; Python 2's objects and strings with escapes; memory from outside the file.
_LEFT_OUT = [
    "EXT1",
    "EXT2",
    "EXT4",
    "PERSID",
    "INST",
    "OBJ",
    "STRING",
    "DUP",
    "NEXT_BUFFER",
    "READONLY_BUFFER",
]

# What calls copy, and how many elements of it are not counted: in one argument, and in a file.
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
_FREE_EACH = 6
_FREE = 1000

_WITH_ATTRIBUTES = (OrderedDict, Counter)

# A key's hash is computed anew at each use, so that keys of keys of keys would take forever.
LARGEST_KEY = 1000  # numbers and strings in a key
_LONGEST_INT = 8192  # bits


class Stateful:
    """The base of constructors' objects that a file may give a state, which they check."""


class _Opcodes(dict[int, Callable]):
    def __missing__(self, code: int) -> Callable:
        raise CheckpointError(f"its pickle is damaged, or no data: opcode 0x{code:02x} is not read")


def checked_key(key: Any) -> Any:
    """Return a key of a dict or set, or raise CheckpointError if its hash would take too long."""
    if key.__class__ is str:
        return key
    count, waiting = 1, [key]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (tuple, frozenset)):
            count += len(part)
            if count <= LARGEST_KEY:
                waiting.extend(part)
        too_long = isinstance(part, int) and part.bit_length() > _LONGEST_INT
        if too_long or count > LARGEST_KEY:
            raise CheckpointError("the key of a dict or set in it is too large")
    return key


def checked_keys(keys: Iterable[Any]) -> list[Any]:
    """Return keys of a dict or set as a list; see `checked_key`."""
    return [checked_key(key) for key in keys]


def set_attributes(made: Any, state: Any, base: type) -> Any:
    """Set attributes, a dict or a pair of dicts, but none of those that ``base`` has; return it."""
    for attributes in state if isinstance(state, tuple) else (state,):
        if attributes is None:
            continue
        if type(attributes) not in (dict, OrderedDict):
            raise CheckpointError(f"attributes are a dict, got {type(attributes).__name__}")
        for name in attributes:
            if not isinstance(name, str) or hasattr(base, name) or name.startswith("__"):
                shown = name[:99] if isinstance(name, str) else type(name).__name__
                raise CheckpointError(
                    f"attribute {shown!r} of a {base.__name__} is not set by files"
                )
        made.__dict__.update(attributes)
    return made


class DataUnpickler(_Unpickler):
    """An unpickler that makes data, and calls and changes nothing else.

    Parameters
    ----------
    file : binary file
        Read by ``read`` and ``readline``.
    n_bytes : int
        The size of the pickle, or more.
    constructors : dict
        By ``id`` of what `find_class` returns: what is called in its place, with checks of its own.

    Notes
    -----
    A subclass has `find_class`, and calls `trust` there for what the user has allowed: such
    functions and classes are called as they are, and such classes' objects get attributes.
    """

    def __init__(self, file: Any, n_bytes: int, constructors: Mapping[int, Callable]) -> None:
        super().__init__(file)
        self._left = n_bytes + _FREE
        self._constructors = constructors
        self._trusted: dict[int, Any] = {}
        self._kinds: tuple[type, ...] = ()  # the classes among them
        self._made: dict[int, Any] = {}  # what has been called into being, of the kinds to build

    def trust(self, value: Any) -> Any:
        """Let this file call a function or class that the user has allowed; return it."""
        if isinstance(value, type) and not self._is_trusted(value):
            self._kinds += (value,)
        self._trusted[id(value)] = value
        return value

    def _keep(self, value: Any) -> Any:
        """Remember what a call has made, if attributes may be set on it; return it."""
        if type(value) in _WITH_ATTRIBUTES or isinstance(value, (Stateful, *self._kinds)):
            self._made[id(value)] = value
        return value

    def _is_trusted(self, value: Any) -> bool:
        return id(value) in self._trusted

    def _charge(self, value: Any, depth: int = 1) -> None:
        """Take the elements that a constructor copies from what is left: those of a file are there.

        What is written once and given to many calls would take more memory than any file has.
        """
        if not isinstance(value, _SIZED):
            return
        if len(value) > _FREE_EACH:
            self._left -= len(value)
        if self._left < 0:
            raise CheckpointError("its objects are larger than the file")
        if depth and isinstance(value, tuple):
            for part in value:
                self._charge(part, depth - 1)

    def _call(self, function: Any, args: Any) -> Any:
        if type(args) is not tuple:
            raise CheckpointError(f"arguments are a tuple, got {type(args).__name__}")
        if id(function) in self._constructors:
            for argument in args:
                self._charge(argument)
            return self._keep(self._constructors[id(function)](*args))
        if self._is_trusted(function):
            return self._keep(function(*args))
        name = getattr(function, "__name__", type(function).__name__)
        raise CheckpointError(f"Weights only load failed. {name} is not called: it is no data")

    def _new(self, cls: Any, args: Any, options: Any) -> Any:
        if not (self._is_trusted(cls) and isinstance(cls, type)):
            name = getattr(cls, "__name__", type(cls).__name__)
            raise CheckpointError(f"Weights only load failed. No {name} is made: it is no data")
        return self._keep(cls.__new__(cls, *args, **options))

    def load_reduce(self) -> None:
        """Call a constructor."""
        args = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], args)

    def load_newobj(self) -> None:
        """Make an object of a class that the user has allowed."""
        args = self.stack.pop()
        self.stack[-1] = self._new(self.stack[-1], args, {})

    def load_newobj_ex(self) -> None:
        """Make an object of a class that the user has allowed, with keyword arguments."""
        options, args = self.stack.pop(), self.stack.pop()
        self.stack[-1] = self._new(self.stack[-1], args, options)

    def load_build(self) -> None:
        """Set the state of an object that this file has made."""
        state, made = self.stack.pop(), self.stack[-1]
        kind = type(made)
        if id(made) not in self._made or self._is_trusted(made):
            raise CheckpointError(f"Weights only load failed. No state is set of {kind.__name__}")
        if kind in _WITH_ATTRIBUTES:
            self._charge(state)
            set_attributes(made, state, kind)
        elif hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            self._set_state(made, state)

    def _set_state(self, made: Any, state: Any) -> None:
        """Set attributes as pickle does, where a class has no method for it."""
        self._charge(state)
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        for names in (attributes, slots):
            if names is not None and any(name.startswith("__") for name in names):
                raise CheckpointError(f"special attributes of a {type(made).__name__} are not set")
        if attributes:
            made.__dict__.update(attributes)
        for name, value in (slots or {}).items():
            setattr(made, name, value)

    def _container(self, value: Any, kinds: type | tuple[type, ...]) -> None:
        """Check that items are added to what this file has made."""
        is_one = isinstance(value, kinds) or id(value) in self._made
        if not is_one or self._is_trusted(value):
            raise CheckpointError(f"items are added to a {type(value).__name__}")

    def load_append(self) -> None:
        """Append to a list."""
        self._container(self.stack[-2], (list, deque))
        _Unpickler.load_append(self)

    def load_appends(self) -> None:
        """Append several items to a list."""
        self._container(self.metastack[-1][-1], (list, deque))
        _Unpickler.load_appends(self)

    def load_setitem(self) -> None:
        """Set an item of a dict."""
        self._container(self.stack[-3], dict)
        checked_key(self.stack[-2])
        _Unpickler.load_setitem(self)

    def load_setitems(self) -> None:
        """Set items of a dict."""
        self._container(self.metastack[-1][-1], dict)
        checked_keys(self.stack[::2])
        _Unpickler.load_setitems(self)

    def load_dict(self) -> None:
        """Make a dict of items."""
        checked_keys(self.stack[::2])
        _Unpickler.load_dict(self)

    def load_additems(self) -> None:
        """Add items to a set."""
        self._container(self.metastack[-1][-1], set)
        checked_keys(self.stack)
        _Unpickler.load_additems(self)

    def load_frozenset(self) -> None:
        """Make a frozenset of items."""
        checked_keys(self.stack)
        _Unpickler.load_frozenset(self)

    def load_bytearray8(self) -> None:
        """Make a bytearray, of what is there and no larger."""
        size = int.from_bytes(self.read(8), "little")
        content = self.read(size)
        if len(content) != size:
            raise CheckpointError("its pickle is damaged: it ends within a bytearray")
        self.append(bytearray(content))

    dispatch = _Opcodes(_Unpickler.dispatch)


for _name in _LEFT_OUT:
    del DataUnpickler.dispatch[getattr(pickle, _name)[0]]
for _name, _method in vars(DataUnpickler).items():
    if _name.startswith("load_"):
        DataUnpickler.dispatch[getattr(pickle, _name[5:].upper())[0]] = _method
