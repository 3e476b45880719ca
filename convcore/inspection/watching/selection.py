"""Selection of calls by name, by module or its class, or by a function that decides."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from typing import Any

from convcore import nn
from convcore._errors import nearest


class Selection:
    """Calls by glob, module, class of modules, or predicate; or several of these.

    Parameters
    ----------
    given : str, Module, class, callable, a list of those, or None
        None selects all calls. A glob is compared with the name, with and without its number, and
        with the name that a node has in an ONNX file; its ``*`` matches dots too. A predicate is
        ``predicate(name, maker)``, of the module or function that was called.
    argument : str
        How errors call it.
    """

    def __init__(self, given: Any, argument: str = "select") -> None:
        self._argument = argument
        self._rules: list[Any] = []
        self._classes: list[str] = []
        self._found: dict[str, list[int]] = {}
        self._unused: dict[int, str] = {}  # globs
        self._uncalled: dict[int, str] = {}  # classes of modules
        many = given if isinstance(given, list | tuple | set | frozenset) else [given]
        for one in [_every] if given is None else many:
            self._add(one)

    def _add(self, one: Any) -> None:
        number = len(self._rules)
        if isinstance(one, str):
            self._rules.append(_glob(one))
            if given_name(one):
                self._unused[number] = one
        elif isinstance(one, nn.Module):
            self._rules.append(lambda name, maker: maker is one)
            self._uncalled[number] = type(one).__name__
        elif isinstance(one, type) and issubclass(one, nn.Module):
            self._classes.append(one.__name__)
            # Layers of an optimized net are of the classes that they had before.
            self._rules.append(
                lambda name, maker: issubclass(getattr(maker, "replaces", type(maker)), one)
            )
        elif callable(one) and not isinstance(one, type):
            self._rules.append(one)
        else:
            raise TypeError(
                f"{self._argument} takes globs, modules, their classes and functions of "
                f"(name, module), got {one!r:.99}"
            )

    def of(self, name: str, maker: Any) -> list[int]:
        """Return which of the rules select a call, by their numbers."""
        found = self._found.get(name)
        if found is None:
            found = [k for k, rule in enumerate(self._rules) if rule(name, maker)]
            self._found[name] = found
            for number in found:
                self._unused.pop(number, None)
                self._uncalled.pop(number, None)
        return found

    def check(self, names: Iterable[str]) -> None:
        """Refuse globs that no call fitted, and modules and classes of which there was no call.

        Raises
        ------
        ValueError
            There is one; the message has the nearest names, or that its modules were not called.
        """
        for number, glob in self._unused.items():
            uncalled = any(self._rules[number](name, None) for name in names)
            why = ", whose modules were not called" if uncalled else nearest_of(glob, names)
            raise ValueError(f"{self._argument}: no layer or call has the name {glob!r}{why}")
        for kind in self._uncalled.values():
            raise ValueError(f"{self._argument}: the net does not call the {kind} that was given")
        classes_alone = 0 < len(self._classes) == len(self._rules)
        if classes_alone and not any(self._found.values()):
            raise ValueError(f"{self._argument}: no call is of a {' or a '.join(self._classes)}")


def _every(name: str, maker: Any) -> bool:
    """Select a call: no pattern needs to be compiled for that."""
    return True


def given_name(glob: str) -> bool:
    """Return whether a glob has to fit something: all but '*' alone."""
    return glob != "*"


def onnx_name(maker: Any) -> str:
    """Return the name that a node of a loaded net has in its ONNX file; else an empty text."""
    return getattr(maker, "onnx_name", "") if hasattr(type(maker), "onnx_name") else ""


def _glob(pattern: str) -> Callable[[str, Any], bool]:
    fits = re.compile(fnmatch.translate(pattern)).match

    def rule(name: str, maker: Any) -> bool:
        call, bracket, part = name.partition("[")
        base = call.partition(":")[0]
        own = onnx_name(maker)
        names = (name, call, base, f"{base}{bracket}{part}", *([own] if own else []))
        return pattern in (name, own or name) or any(map(fits, names))

    return rule


def nearest_of(wanted: str, names: Iterable[str]) -> str:
    """Return words about the names that are most like one: empty if there are none."""
    names = sorted(names)
    close = [name for name in names if wanted in re.split(r"[./]", name)]
    if not close and (found := nearest(wanted, names)):
        return f"; is {found!r} meant?"
    close = close or [name for name in names if name.startswith(f"{wanted}[")]
    shown = (close or names)[:6]
    more = ", ..." if len(close or names) > 6 else ""
    return f"; there are {', '.join(shown)}{more}" if shown else ""
