"""What comments and docstrings name is there: files, folders, and `names` in backticks.

A name has to be defined somewhere in the tree (a function, class, attribute, module, key, or a
constant of a module or class; any word of the compiled code), or to occur in the code of its own
file (a parameter, a local, an option), or to be Python's, NumPy's or PyTorch's.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
ROOMS = ("convcore", "tests", "benchmarks", "wheels")
PYTHON, CYTHON, C = (".py", ".pyi"), (".pyx", ".pxd"), (".c", ".h")

# Names that are not in the tree, and may be named all the same.
EXEMPT = {
    "c10/core/MemoryFormat.h": "PyTorch's source, which a function follows",
    "is_channels_last_strides_2d": "a function there",
    "script.py": "a user's program",
    "save_model": "a function of safetensors, whose way with tied weights is followed",
}

CYTHON_PROSE = re.compile(r'"""(.*?)"""|#[^\n]*', re.DOTALL)
C_PROSE = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
FILE = re.compile(r"(?<![\w./*<-])(?:[\w.-]+/)*\w+\.(?:pyx|pxd|pyi|py|h|c)\b(?![(\w/])")
FOLDERED = re.compile(r"(?<![\w./-])(\w+)/(?:\w+/)*\w+(?![\w./])")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)|``([^`\n]+)``|\b(convcore(?:\.\w+)+)")
NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each comment and docstring."""
    if path.endswith(PYTHON):
        yield from read_python(text).docstrings
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
        return
    pattern = C_PROSE if path.endswith(C) else CYTHON_PROSE
    for found in pattern.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def compiled_words(path: str, text: str) -> set[str]:
    """Collect every word of C or Cython but those of its prose."""
    pattern = C_PROSE if path.endswith(C) else CYTHON_PROSE
    return set(re.findall(r"[A-Za-z_]\w*", pattern.sub("", text)))


def top_level_names(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the names that a module or a class assigns to."""
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


class PythonFile(NamedTuple):
    """What a Python file's tree says."""

    definitions: set[str]  # for prose of any file to name
    words: set[str]  # every name in its code, for its own prose to name; words of strings too
    docstrings: list[tuple[int, str]]  # of the module, its classes and its functions, by line


@cache
def read_python(text: str) -> PythonFile:
    """Walk a file's tree once, and keep names instead of nodes."""
    found = PythonFile(set(), set(), [])
    documentation = set()
    for node in ast.walk(ast.parse(text)):  # parents first
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as docstring), *_]:
                    documentation.add(docstring)
                    found.docstrings.append((docstring.lineno, docstring.value))
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                found.words.add(name)
            case ast.FunctionDef(name=name):
                found.definitions.add(name)
            case ast.ClassDef(name=name, body=body):
                assigned = [s for s in body if not isinstance(s, ast.FunctionDef)]
                found.definitions.update((name, *top_level_names(assigned)))
            case ast.Module(body=body):
                simple = (ast.Assign, ast.AnnAssign)
                found.definitions.update(
                    top_level_names([s for s in body if isinstance(s, simple)])
                )
            case ast.Attribute(attr=name):
                found.words.add(name)
                if isinstance(node.ctx, ast.Store):
                    found.definitions.add(name)
            case ast.alias(name=name, asname=other):
                found.definitions.update((*name.split("."), other or ""))
            case ast.Constant(value=str(text)):
                if text.isidentifier():  # a key, most often
                    found.definitions.add(text)
                if node not in documentation:
                    found.words.update(re.findall(r"\w+", text))
    return found


def definitions(sources: dict[str, str]) -> set[str]:
    """Collect what prose may name wherever it stands."""
    found = {*dir(builtins), *keyword.kwlist, *dir(np), *dir(np.ndarray)}
    for path, text in sources.items():
        if path.endswith(PYTHON) and not path.endswith("/test_comments.py"):
            found.update(read_python(text).definitions)
        found.update(compiled_words(path, text) if path.endswith(CYTHON + C) else ())
        found.update(part.partition(".")[0] for part in path.split("/"))
    return found


def is_standard(name: str) -> bool:
    """Return whether a dotted name is one of Python's own library."""
    module, _, attribute = name.partition(".")
    return module in sys.stdlib_module_names and (
        not attribute or hasattr(importlib.import_module(module), attribute)
    )


@cache
def pytorchs_names() -> frozenset[str]:
    """Return the public names and modules of PyTorch, listed in _errors/pytorch_names.txt."""
    lines = (CHECKOUT / "convcore/_errors/pytorch_names.txt").read_text("ascii").splitlines()
    listed = [line.split() for line in lines if not line.startswith("#")]
    return frozenset(f"{m}.{name}" for m, *names in listed for name in names) | frozenset(
        name for m, *names in listed if m in ("modules", "private") for name in names
    )


def faults(sources: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (place, name) of what prose names and is not there, given a tree's texts by path."""
    defined = definitions(sources)
    paths = [f"/{path}" for path in sources]
    folders = {part for path in sources for part in path.split("/")[:-1]}
    for path, text in sources.items():
        if not path.endswith(PYTHON + CYTHON + C):
            continue
        known = defined | (read_python(text).words if path.endswith(PYTHON) else set())
        for line, words in prose(path, text):
            for found, name in missing(words, known, paths, folders):
                at = line + words.count("\n", 0, found.start())
                yield f"{path}:{at}", name


def missing(
    words: str, known: set[str], paths: list[str], folders: set[str]
) -> Iterator[tuple[re.Match, str]]:
    """Yield (match, name) of what one piece of prose names and nobody has."""
    for found in FILE.finditer(words):
        if not any(path.endswith(f"/{found[0]}") for path in paths):
            yield found, found[0]
    for found in FOLDERED.finditer(words):
        if found[1] in folders and not any(f"/{found[0]}" in path for path in paths):
            yield found, found[0]
    for found in CODE.finditer(words):
        name = (found[1] or found[2] or found[3]).removesuffix("()")
        if not NAME.fullmatch(name) or is_standard(name) or known.issuperset(name.split(".")):
            continue
        if not name.startswith("torch.") or name not in pytorchs_names():
            yield found, name


def checkout_sources() -> dict[str, str]:
    """Read the checkout's files by path; skip where the tests lie alone."""
    if not (CHECKOUT / "convcore").exists():
        pytest.skip("the sources are not beside the tests, which are here to test a wheel")
    kinds = PYTHON + CYTHON + C
    found = [path for room in ROOMS for path in (CHECKOUT / room).rglob("*")]
    found += CHECKOUT.glob("*")
    inner = [(path.relative_to(CHECKOUT).as_posix(), path) for path in found if path.is_file()]
    return {
        name: path.read_text("utf-8") if name.endswith(kinds) else ""
        for name, path in sorted(inner)
        if not re.search(r"(^|/)(\.cache|dist|__pycache__)/|\.(so|pyd)$", name)
    }


@pytest.fixture(scope="module")
def checkout_faults():
    return list(faults(checkout_sources()))


def test_comments_name_what_is_there(checkout_faults):
    found = [f"{at} names {name}" for at, name in checkout_faults if name not in EXEMPT]
    assert not found, "which is not there:\n" + "\n".join(found)


def test_every_exemption_is_needed(checkout_faults):
    assert EXEMPT.keys() <= {name for _, name in checkout_faults}


TREE = {
    "convcore/engine/conv.py": "LEAST = 4\ndef forward(x): return x.size + LEAST\n",
    "convcore/engine/net.py": "class Net:\n    depth: int = 3\n    def f(self): self.width = 2\n",
    "convcore/engine/deep/_conv.pyx": "cdef int taps(int most): return most\n",
    "convcore/engine/deep/loop.h": "#include <math.h>\n#define LANES 8\n",
    "README.md": "",
}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("convcore/a.py", '"""As engine/pool.py has it."""'),
        ("convcore/a.py", "x = 1  # see _pools.pyx"),
        ("convcore/a.py", "x = 1  # see engine/pool"),
        ("convcore/a.py", "x = 1  # nn/conv.py has another\n"),
        ("convcore/a.py", "x = 1  # `backward` does it"),
        ("convcore/a.py", '"""What ``Net.height`` is."""'),
        ("convcore/a.py", "x = 1  # `MOST` of them"),
        ("convcore/a.py", "x = 1  # `x` is what `forward` made of `most_taps`"),
        ("convcore/a.py", "x = 1  # `os.no_such_name`"),
        ("convcore/a.py", "x = 1  # convcore.engine.pool"),
        ("convcore/a.py", "def f(x):\n    y = 1\n    # `z` is far\n    return y"),
        ("convcore/a.pyx", '"""The loops of pools.h."""'),
        ("convcore/a.pxd", "cdef int x  # `old_name`"),
        ("convcore/a.h", "/* scratch: as\n * _pools.pyx says */"),
        ("convcore/a.c", "int x; // `old_name`"),
        ("tests/a.py", "x = 1  # setup.c"),
    ],
)
def test_fault_is_found(path, text):
    ((place, _),) = faults({**TREE, path: text})
    assert place.startswith(f"{path}:")


def test_word_of_one_files_code_is_not_known_in_another():
    tree = {"convcore/a.py": "def f(count): return count", "convcore/b.py": "# as `count` says"}
    assert list(faults(tree)) == [("convcore/b.py:1", "count")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("convcore/a.py", '"""As engine/conv.py, conv.py and engine/deep have it; `engine`."""'),
        ("convcore/a.py", "x = 1  # `forward()`, `Net.width`, `Net.depth`, `LEAST`, `x`"),
        ("convcore/a.py", "x = 1  # `np.einsum`, `ValueError`, `copy.deepcopy`, ``None``"),
        ("convcore/a.py", "x = 1  # `x + y`, `pip install that`, and/or, forward/backward"),
        ("convcore/a.py", "x = {'rate': 1}  # `rate`, `convcore.engine.conv`"),
        ("convcore/a.py", "text = 'pools.h and `nothing`'"),
        ("convcore/a.pyx", "# `taps` and `most` and `LANES`; README.md, loop.h, conv/_conv"),
        ("convcore/a.c", "/* #include <stdio.h>, of which loop.h has no need */"),
    ],
)
def test_what_is_there_passes(path, text):
    tree = {**TREE, "convcore/engine/deep/_conv.pyx": "cdef int taps(int most): return most"}
    tree["convcore/b.py"] = "import numpy as np"
    assert list(faults({**tree, path: text})) == []


def test_contributing_names_files_that_are_there():
    page = CHECKOUT / "CONTRIBUTING.md"
    if not (page.exists() and (CHECKOUT / "convcore").exists()):
        pytest.skip("the sources are not beside the tests, which are here to test a wheel")
    named = re.findall(r"`([\w./]+/[\w./]*|\w+\.(?:py|pyx|md))`", page.read_text(encoding="utf-8"))
    named = [name for name in named if not re.search(r"[A-Z]{4}", name)]  # placeholders
    assert len(named) > 20
    missing = {n for n in named if not any((CHECKOUT / at / n).exists() for at in ("", "convcore"))}
    assert not missing
