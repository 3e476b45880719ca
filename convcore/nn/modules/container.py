"""Containers: Sequential, and lists and dictionaries of modules or parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, groupby
from typing import Any, Self, overload

from convcore._tensor import Tensor
from convcore.nn.modules._members import typename
from convcore.nn.modules.module import Module, _addindent, in_parentheses
from convcore.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Numbered(Module):
    """The list interface of Sequential and ModuleList: children are named '0', '1', ..."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, idx: int) -> Module: ...

    @overload
    def __getitem__(self, idx: slice) -> Self: ...

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return self._part(list(self._modules.items())[idx])
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._modules = {str(place): module for place, module in enumerate(self)}

    def _key(self, idx: int) -> str:
        """Return the name of the child at an index."""
        return list(self._modules)[_checked_index(idx, len(self))]

    def _part(self, items: list[tuple[str, Module]]) -> Any:
        """Return a container of the same class with the given (name, child) pairs."""
        raise NotImplementedError

    def append(self, module: Module) -> Any:
        """Add a module at the end; return the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add modules at the end; return the container.

        Raises
        ------
        TypeError
            ``modules`` is not iterable.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{self._get_name()}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Insert a module before the one at ``index``; return the container.

        Children with names of their own keep them; the others are renumbered.

        Raises
        ------
        IndexError
            ``index`` is out of range.
        AssertionError
            ``module`` is not a Module.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        children = list(self._modules.items())
        children.insert(index, ("0", module))
        self._modules = {
            str(place) if name.isdecimal() else name: child
            for place, (name, child) in enumerate(children)
        }
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module at an index, or a container of those in a slice."""
        removed = self[key]
        del self[key]
        return removed


class Sequential(_Numbered):
    """A chain of modules: each is called with the output of the one before.

    Parameters
    ----------
    *args : Module, or one OrderedDict of name -> Module
        Modules without names are named '0', '1', ...

    Examples
    --------
    >>> import convcore.nn as nn
    >>> len(nn.Sequential(nn.Sequential(), nn.Sequential()))
    2
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = enumerate(args)
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Tensor:
        """Call all modules in order, the first one with ``input``; return the last output."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _part(self, items: list[tuple[str, Module]]) -> Sequential:
        return type(self)(OrderedDict(items))

    def __add__(self, other: Sequential) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        _check_sequential(other)
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*list(self) * other)

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))

    def _check_factor(self, factor: int) -> None:
        if not isinstance(factor, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(factor)}")
        if factor <= 0:
            raise ValueError(f"Non-positive multiplication factor {factor} for {type(self)}")


def _check_sequential(other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )


class ModuleList(_Numbered):
    """A list of modules that are registered as submodules; it cannot be called.

    Parameters
    ----------
    modules : iterable of Module, optional
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _part(self, items: list[tuple[str, Module]]) -> ModuleList:
        return type(self)(module for _, module in items)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        """Return the printed form; equal neighbours appear once, with their count."""
        lines = []
        place = 0
        for text, run in groupby(map(repr, self)):
            count = len(list(run))
            if count == 1:
                line = f"({place}): {text}"
            else:
                line = f"({place}-{place + count - 1}): {count} x {text}"
            lines.append(_addindent(line))
            place += count
        return in_parentheses(self._get_name(), lines)


def _checked_index(idx: int, size: int) -> int:
    """Return an index, which may be negative, as an int; raise if it is out of range."""
    idx = operator.index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx


class ModuleDict(Module):
    """A dictionary of modules that are registered as submodules, in insertion order; not callable.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return the module under a key."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Return the pairs (key, module)."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the pairs of a mapping, or of an iterable of (key, value) pairs.

        Raises
        ------
        TypeError, ValueError
            It is neither.
        """
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _pairs(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the pairs of a mapping or an iterable of pairs; ``name`` is the class in errors."""
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        yield from given.items()
        return
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            f"{type(given).__name__}"
        )
    for place, pair in enumerate(given):
        element = f"{name} update sequence element #{place}"
        if not hasattr(pair, "__iter__"):
            raise TypeError(f"{element} should be Iterable; is {type(pair).__name__}")
        if len(pair) != 2:
            raise ValueError(f"{element} has length {len(pair)}; 2 is required")
        yield pair[0], pair[1]


def _as_parameter(value: Any) -> Any:
    """Return a plain tensor as a Parameter, and anything else unchanged."""
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _describe(items: Iterable[tuple[Any, Any]], kind: Any) -> str:
    """Return the printed form: a line for each value; ``kind(tensor)`` is a tensor's type."""
    lines = []
    for key, value in items:
        if isinstance(value, Tensor):
            name = "Parameter" if isinstance(value, Parameter) else "Tensor"
            sizes = "x".join(map(str, value.shape))
            text = f"{name} containing: [{kind(value)} of size {sizes}]"
        else:
            text = f"Object of type: {type(value).__name__}"
        lines.append(f"  ({key}): {text}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters that are registered as such; it cannot be called.

    Tensors that are put in become parameters; anything else stays as it is.

    Parameters
    ----------
    values : iterable, optional
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[place] for place in range(*idx.indices(len(self))))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._key(idx), _as_parameter(param))

    def _key(self, idx: int) -> str:
        """Return the name of the attribute that holds the value at an index."""
        return str(_checked_index(idx, len(self)) % len(self))

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end; return the list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; return the list.

        Raises
        ------
        TypeError
            ``values`` is not iterable, or a tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return _describe(enumerate(self), lambda tensor: tensor.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: there is nothing to compute."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters that are registered as such, in insertion order; not callable.

    Tensors that are put in become parameters; anything else stays as it is.

    Parameters
    ----------
    parameters : mapping of str, or iterable of pairs, optional
        A plain dict is sorted by key first, as in PyTorch.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _checked_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the pairs (key, value)."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """Yield the values."""
        return (self[key] for key in self._keys)

    def copy(self) -> ParameterDict:
        """Return a new dictionary of the same values."""
        return ParameterDict(self)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value under a key, set to ``default`` first if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value under a key, or ``default``."""
        return self[key] if key in self else default  # noqa: SIM401

    def pop(self, key: str) -> Any:
        """Remove and return the value under a key."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the pair that was added last."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove everything."""
        for key in list(self):
            del self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with the given keys, all with the same value."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Add the pairs of a mapping, or of an iterable of (key, value) pairs.

        Raises
        ------
        TypeError, ValueError
            It is neither.
        """
        pairs = _pairs("ParameterDict", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=operator.itemgetter(0))
        for key, value in pairs:
            self[key] = value

    def __or__(self, other: Any) -> ParameterDict:
        united = self.copy()
        united.update(other)
        return united

    def __ror__(self, other: Any) -> ParameterDict:
        united = other.copy()
        united.update(self)
        return united

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return _describe(self.items(), typename)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: there is nothing to compute."""
        raise RuntimeError("ParameterDict should not be called.")


def _checked_key(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string "
            f"(type is '{type(key).__name__}')."
        )
    return key
