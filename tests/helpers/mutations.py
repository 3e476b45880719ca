"""Mutants of the package: small errors in Python functions and kernels, and how they get in.

All mutants are compiled in at the same time, each behind a call `__mutant__(k)`, in C `mutant(k)`.
The call records in `state[k]` that the place was reached, and is true if `state[0]` is k.
"""

from __future__ import annotations

import ast
import builtins
import copy
import hashlib
import mmap
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import ClassVar, NamedTuple

__all__ = ["COMPILED", "PYTHON", "Mutant", "build", "draw", "find", "instrument", "share_state"]

# Files of the package by group; each group has the same number of mutants.
PYTHON = {
    "conv": "engine/conv/*.py engine/conv/*/*.py functions/windows/conv.py",
    "autograd": "autograd/*.py",
    "layers": "functions/windows/pooling.py functions/normalization/*.py",
    "modules": "nn/modules/_hooks.py nn/modules/_boundary.py nn/modules/conv.py "
    "nn/modules/batchnorm.py nn/modules/normalization.py nn/modules/pooling.py",
    "optim": "optim/*.py",
}
COMPILED = {
    "conv kernels": "engine/conv/**/*.pyx engine/conv/**/*.[ch]",
    "layer kernels": "engine/layers/pooling/*.[ph]* engine/layers/norm/*.[ph]* "
    "engine/layers/optimizers/*optim*.[ph]*",
}
SWAPS = {ast.Add: ast.Sub, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
for _a, _b in (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)),
    *((ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.And, ast.Or)),
):
    SWAPS |= {_a: _b, _b: _a}
STATE_BYTES = 65536
HEADER = f"""
#pragma once
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
static volatile int *mutant_state;
static inline int mutant(int k)
{{
    if (!mutant_state)
        mutant_state = (volatile int *)mmap(0, {STATE_BYTES}, PROT_READ | PROT_WRITE, MAP_SHARED,
                                            open(getenv("CONVCORE_MUTANTS"), O_RDWR), 0);
    if (!mutant_state[k]) mutant_state[k] = 1;
    return *mutant_state == k;
}}
"""
DECLARATION = 'cdef extern from "{}":\n    bint __mutant__ "mutant" (int k) noexcept nogil\n'


class Mutant(NamedTuple):
    """An error, and the index of its place in a file."""

    group: str
    path: Path
    index: int
    line: int
    about: str

    @property
    def module(self) -> str:
        """The name by which a Python file is imported."""
        path = self.about.partition(".py:")[0]
        return "convcore." + path.replace("/", ".").removesuffix(".__init__")


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the erroneous forms of a node."""
    match node:
        case ast.Compare(left, [operator], right):
            yield ast.Compare(left, [SWAPS[type(operator)]()], right)
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right):
            yield ast.BinOp(left, SWAPS[type(operator)](), right)
            yield left
        case ast.BinOp(left, operator, right) if type(operator) in SWAPS:
            yield ast.BinOp(left, SWAPS[type(operator)](), right)
        case ast.BoolOp(operator, [_, *rest]):
            yield ast.BoolOp(SWAPS[type(operator)](), node.values)
            yield ast.BoolOp(operator, rest) if rest[1:] else rest[0]
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.AugAssign(target, operator, value) if type(operator) in SWAPS:
            yield ast.AugAssign(target, SWAPS[type(operator)](), value)
        case ast.Expr(ast.Call()) | ast.Assign([ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.If() | ast.While() | ast.IfExp():
            negated = copy.copy(node)
            negated.test = ast.UnaryOp(ast.Not(), node.test)
            yield negated


class Mutate(ast.NodeTransformer):
    """List the mutants of a file, and put the chosen ones in: a number k by index."""

    def __init__(self, chosen: dict[int, int]) -> None:
        self.chosen = chosen
        self.found: list[tuple[int, str]] = []
        self.names: list[str] = []
        self.n_functions = 0

    def visit(self, node: ast.AST) -> ast.AST:
        # Texts of errors are not tested word by word; annotations and patterns are not run.
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.arg | ast.pattern):
            return node
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
            return node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.names.append(node.name)
            self.n_functions += isinstance(node, ast.FunctionDef)
            node.body = [self.visit(statement) for statement in node.body]
            self.n_functions -= isinstance(node, ast.FunctionDef)
            self.names.pop()
            return node
        new = []
        for variant in variants(node) if self.n_functions else ():
            index = len(self.found)
            old, text = (ast.unparse(tree).partition("\n")[0] for tree in (node, variant))
            self.found.append((node.lineno, f"{'.'.join(self.names)}: {old} -> {text}"))
            if index in self.chosen:
                new.append((self.chosen[index], copy.deepcopy(variant)))
        place, node = node, self.generic_visit(node)
        for k, variant in new:
            call = ast.Call(ast.Name("__mutant__", ast.Load()), [ast.Constant(k)], [])
            is_statement = isinstance(node, ast.stmt)
            both = (
                ast.If(call, [variant], [node]) if is_statement else ast.IfExp(call, variant, node)
            )
            node = ast.copy_location(both, place)
        return node


class Loader(SourceFileLoader):
    """Import a module with its mutants."""

    chosen: ClassVar[dict[str, dict[int, int]]] = {}  # by file

    def get_code(self, name: str) -> object:
        tree = Mutate(self.chosen[self.path]).visit(ast.parse(Path(self.path).read_bytes()))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith("convcore.") else None
        if not spec or spec.origin not in cls.chosen:
            return None
        spec.loader = cls(name, spec.origin)
        return spec


def edited_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the mutable lines of a kernel: number, change, and new text, with `@` for k."""
    is_c = path.suffix != ".pyx"
    end = ";" if is_c else ""
    condition = (
        r"(\s+(?:\} else )?if \()([^?]*)(\)(?: \{)?)" if is_c else r"(\s+(?:el)?if )(\w.*)(:)"
    )
    rules = [
        (r"(\s+.*\bfor \(.*; \w+ < )([^;]+)(; .*)", "{} - 1"),
        (r"(\s+for \w+ in range\((?:[^(),]+, )?)([^(),]+)(\):)", "{} - 1"),
        (rf"(\s+[\w.>\[\]* +-]*? [-+]= )([^=?:{{}}\"]+)({end})", "-({})"),
        (rf"(\s+[\w.>\[\]* +-]*? = )([^=?,{{}}\"]* [-+*] [^=?,{{}}\"]*)({end})", ""),
        (condition, "!({})" if is_c else "not ({})"),
    ]
    swaps = {" + ": " - ", " - ": " + ", " * ": " + "}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        matches = ((re.fullmatch(pattern, line), new) for pattern, new in rules)
        match, new = next(((match, new) for match, new in matches if match), (None, ""))
        if match and match[2].count("(") == match[2].count(")"):
            old = match[2]
            swapped = re.sub(r" [-+*] ", lambda sign: swaps[sign[0]], old, count=1)
            new = new.format(old) or swapped
            both = f"(mutant(@) ? ({new}) : ({old}))"
            both = both if is_c else f"(({new}) if __mutant__(@) else ({old}))"
            yield number, f"{line.strip()} -> {new}", match[1] + both + match[3]


def find(package: Path, groups: dict[str, str]) -> Iterator[Mutant]:
    """Yield all mutants of some groups of files."""
    for group, patterns in groups.items():
        for path in sorted(path for pattern in patterns.split() for path in package.glob(pattern)):
            if path.suffix == ".py":
                mutate = Mutate({})
                mutate.visit(ast.parse(path.read_bytes()))
                places = [(index, *place) for index, place in enumerate(mutate.found)]
            else:
                places = [(line, line, text) for line, text, _ in edited_lines(path)]
            name = path.relative_to(package).as_posix()
            for index, line, text in places:
                yield Mutant(group, path, index, line, f"{name}: {text}")


def draw(mutants: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw the same number of mutants from each group; edits elsewhere do not change the draw."""
    groups: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(mutant.group, []).append(mutant)
    drawn = []
    for group in groups.values():
        group.sort(key=lambda mutant: hashlib.sha256(f"{seed}{mutant.about}".encode()).digest())
        drawn += group[: -(-count // len(groups))]
    return drawn


def share_state(file: Path) -> memoryview:
    """Create the state that this process, its forks and the kernels share."""
    file.write_bytes(bytes(STATE_BYTES))
    with file.open("r+b") as opened:
        state = memoryview(mmap.mmap(opened.fileno(), STATE_BYTES)).cast("i")

    def is_selected(k: int) -> bool:
        state[k] = 1
        return state[0] == k

    builtins.__mutant__ = is_selected
    os.environ["CONVCORE_MUTANTS"] = str(file)
    return state


def instrument(mutants: list[Mutant]) -> None:
    """Have modules imported from now on with their mutants, numbered from 1."""
    for k, mutant in enumerate(mutants, 1):
        Loader.chosen.setdefault(str(mutant.path), {})[mutant.index] = k
    sys.meta_path.insert(0, Loader)


def copy_checkout(root: Path, copied: Path) -> Path:
    """Copy what a build of the kernels needs; return the copied package."""
    copied.mkdir()
    for name in ("convcore", "build", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        if (root / name).is_dir():
            shutil.copytree(root / name, copied / name)
        elif (root / name).exists():
            shutil.copy2(root / name, copied / name)
    return copied / "convcore"


def build(mutants: list[Mutant], copied: Path) -> None:
    """Put compiled mutants into a copy of the checkout, and build its kernels."""
    header = copied / "mutant.h"
    header.write_text(HEADER)
    for path in {mutant.path for mutant in mutants}:
        lines = path.read_text("utf-8").splitlines()
        edits = {number: line for number, _, line in edited_lines(path)}
        for k, mutant in enumerate(mutants, 1):
            if mutant.path == path:
                lines[mutant.line - 1] = edits[mutant.line].replace("@", str(k))
        is_c = path.suffix != ".pyx"
        at = 0 if is_c else next(i for i, line in enumerate(lines) if "import " in line)
        lines.insert(at, f'#include "{header}"' if is_c else DECLARATION.format(header))
        path.write_text("\n".join(lines) + "\n", "utf-8")
    subprocess.run([sys.executable, "setup.py", "build_ext", "--inplace"], cwd=copied, check=True)
