"""Names of modules, parameters and arguments after the names in an ONNX graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from onnx import NodeProto

from convcore._errors.text import printable


def identifier(name: str) -> str:
    """Return a name as a Python identifier: every other character is an underscore."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{name}" if not name or name[0].isdigit() else name


class Names:
    """Distinct names: each name, or the first of its endings _1, _2 and so on that is free.

    Parameters
    ----------
    taken : iterable of str
        Names that are not free.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._next_ending = dict.fromkeys(taken, 1)  # of each name that is taken

    def free(self, name: str) -> str:
        """Return a name that is free, and take it."""
        ending = self._next_ending.get(name)
        if ending is None:
            self._next_ending[name] = 1
            return name
        while (found := f"{name}_{ending}") in self._next_ending:
            ending += 1
        self._next_ending[name] = ending + 1
        self._next_ending[found] = 1
        return found


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return names of which each is new: the first of the endings _1, _2 and so on makes it so."""
    used = Names(taken)
    return [used.free(name) for name in names]


def quoted(name: str) -> str:
    """Return a name of a file in quotes, as messages show it."""
    return f"'{printable(name)}'"


def named(kind: str, given: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    """Return the names of inputs or outputs: those given, and the usual ones of the rest."""
    if isinstance(given, str):
        raise TypeError(f"{kind}_names must be a list of names, got {given!r}")
    names = [*(given or ()), *usual[len(given or ()) :]]
    if len(names) != len(usual) or len(set(names)) != len(names):
        raise ValueError(
            f"{kind}_names: {len(usual)} different names are needed, got {list(given or ())}"
        )
    return names


def module_names(nodes: Sequence[NodeProto], taken: Iterable[str]) -> list[str]:
    """Return the names of the modules of a graph's nodes.

    A node's own name, with ``.``, which separates modules, replaced by ``_`` and with unprintable
    characters escaped; a node without a name is ``<optype>_<k>``, where k counts the nodes of its
    type from 0.  A name that is taken gets the
    first of the endings _1, _2 and so on that makes it new; names that nodes have go first.

    Parameters
    ----------
    nodes : sequence of NodeProto
    taken : iterable of str
        Names that no node may have.
    """
    taken = set(taken)
    own = distinct((_as_module(node.name) for node in nodes if node.name), taken)
    seen: Counter[str] = Counter()
    made = []
    for node in nodes:
        made.append(f"{_as_module(node.op_type)}_{seen[node.op_type]}")
        seen[node.op_type] += 1
    made = [name for name, node in zip(made, nodes, strict=True) if not node.name]
    rest = iter(distinct(made, taken | set(own)))
    given = iter(own)
    return [next(given if node.name else rest) for node in nodes]


def _as_module(name: str) -> str:
    return printable(name.replace(".", "_"), len(name))
