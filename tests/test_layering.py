"""The floors of the house: who may import whom, and what only one file may do.

Each rule is a function from a path inside the package and its text to a list of faults. One test
runs every rule over the checkout; the rest show, on small sources, that each rule can fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]

# From the ground up. A room is a string; where several files make one room, they share the string.
FLOORS = (
    ("_forks", "_pyinstaller"),
    ("engine",),
    ("_tensor _errors random",),
    ("autograd",),
    ("functions",),
    ("futures", "overrides"),
    ("distributed",),  # DistributedDataParallel and DistributedSampler stand on it
    (
        *("nn", "utils", "backends", "amp"),
        *("multiprocessing", "linalg", "special", "distributions", "testing"),
    ),
    ("optim", "func", "cpu cuda"),
    ("__init__",),  # the package itself: the front door to all that is below it
    ("inference", "serialization", "models", "demo"),
    ("hub", "inspection", "onnx"),
    ("bench",),  # reads nets as any other program, and writes them for peers that read ONNX
    ("compat", "verify"),
    ("cli",),
    ("__main__",),
)
FLOOR_AND_ROOM = {
    name: (floor, room)
    for floor, rooms in enumerate(FLOORS)
    for room in rooms
    for name in room.split()
}

# Inside a room, from the ground up; what is not named stands on top.
INNER = {
    "engine": (
        *("integers", "geometry", "runtime", "layers reference", "conv"),
        *("matmul_bfloat16", "matmul"),
    ),
    "functions": ("_support",),
}

# Functions whose bits depend on a thread pool that is not ours, and that set_num_threads ignores.
NUMPY_PRODUCTS = {"dot", "inner", "matmul", "einsum", "tensordot"}
ENVIRONMENT_WRITERS = {"update", "pop", "popitem", "setdefault", "clear", "__setitem__"}
CYTHON = (".pyx", ".pxd")


def room_name(module: str) -> str:
    """Name the file or folder right inside convcore that a dotted module belongs to."""
    return [*module.split("."), "__init__"][1]


def package_of(path: str) -> list[str]:
    """Give the package, as a list of names, that relative imports of a file start from."""
    return ["convcore", *Path(path).parent.parts]


def modules_of_from(path: str, level: int, module: str, names: list[str]) -> Iterator[str]:
    """Yield the dotted modules that `from module import names` reaches."""
    package = package_of(path)
    base = package[: len(package) - level + 1] if level else []
    base = ".".join(base + ([module] if module else []))
    if base != "convcore":
        yield base
        return
    for name in names:  # a name of the package is a room of it, or something of the front door
        yield f"convcore.{name}" if name in FLOOR_AND_ROOM else "convcore"


def without_prose(text: str) -> str:
    """Blank comments and docstrings of Cython, keeping lines where they are."""
    prose = re.compile(r'""".*?"""|#[^\n]*', re.DOTALL)
    return prose.sub(lambda found: "\n" * found[0].count("\n"), text)


def cython_imports(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) for each import and cimport."""
    statement = re.compile(
        r"^[ \t]*(?:from\s+(?P<dots>\.*)(?P<module>[\w.]*)\s+c?import\s+\(?(?P<names>[\w ,]*)"
        r"|c?import\s+(?P<plain>[\w., ]+))",
        re.MULTILINE,
    )
    code = without_prose(text)
    for found in statement.finditer(code):
        line = code.count("\n", 0, found.start()) + 1
        if found["plain"]:
            modules = [part.split()[0] for part in found["plain"].split(",")]
        else:
            names = [part.split()[0] for part in found["names"].split(",") if part.strip()]
            modules = modules_of_from(path, len(found["dots"]), found["module"], names)
        yield from ((line, module) for module in modules)


@lru_cache(maxsize=1)
def nodes(text: str) -> list[ast.AST]:
    """Return the nodes of a Python file, kept for the next rule."""
    return list(ast.walk(ast.parse(text)))


# Modules that load what stands above them at its first use, by import_module.
LOADERS = {("_tensor/tensor.py", "convcore.functions"), ("overrides.py", "convcore")}


def named_module(argument: ast.expr) -> str:
    """Return the module that an argument of import_module names, as far as it is written out."""
    parts = argument.values[:1] if isinstance(argument, ast.JoinedStr) else [argument]
    literal = parts[0] if parts else None
    is_text = isinstance(literal, ast.Constant) and isinstance(literal.value, str)
    return literal.value.rstrip(".") if is_text else ""


def python_imports(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) for each import, those inside functions and by name too."""
    for node in nodes(text):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            for module in modules_of_from(path, node.level, node.module or "", names):
                yield node.lineno, module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            module = named_module(node.args[0])
            if module and (path, module) not in LOADERS:
                yield node.lineno, module


def imports(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted module) for each import of a Python or Cython file."""
    if path.endswith(".py"):
        yield from python_imports(path, text)
    elif path.endswith(CYTHON):
        yield from cython_imports(path, text)


def upward_imports(path: str, text: str) -> Iterator[str]:
    """A room imports from itself and from floors below it."""
    own_floor, own_room = FLOOR_AND_ROOM[Path(path).parts[0].removesuffix(".py")]
    for line, module in imports(path, text):
        if module.split(".")[0] != "convcore":
            continue
        floor, room = FLOOR_AND_ROOM[room_name(module)]
        if floor >= own_floor and room != own_room:
            yield f"{path}:{line} imports {module}, which is not below it"


def inner_floor(room: str, name: str) -> tuple[int, str]:
    """Give the floor of a file or folder inside a room, and its name."""
    for floor, names in enumerate(INNER[room]):
        if name in names.split():
            return floor, name
    return len(INNER[room]), "the rest"


def upward_imports_inside(path: str, text: str) -> Iterator[str]:
    """Inside a room too, what stands below imports nothing from above, nor from beside it."""
    room, *rest = Path(path).with_suffix("").parts
    if room not in INNER or rest == ["__init__"]:
        return
    own = inner_floor(room, rest[0])
    for line, module in imports(path, text):
        parts = module.split(".")
        if parts[:2] != ["convcore", room] or len(parts) < 3:
            continue
        floor, name = inner_floor(room, parts[2])
        if floor > own[0] or (floor == own[0] and name != own[1]):
            yield f"{path}:{line} imports {module}, which is not below it"


def compiled_oracle(path: str, text: str) -> Iterator[str]:
    """The slow oracle stands on NumPy and on geometry, so that it cannot share a kernel's fault."""
    allowed = {"__future__", "collections", "itertools", "math", "typing", "numpy"}
    if path == "engine/reference.py":
        for line, module in imports(path, text):
            if module.split(".")[0] not in allowed and module != "convcore.engine.geometry":
                yield f"{path}:{line} imports {module}"


def foreign_products(path: str, text: str) -> Iterator[str]:
    """Every float product goes through the package's own gemm."""
    peer = path.startswith("bench/") and "numpy" in Path(path).name
    if path == "engine/reference.py" or peer:
        return
    if path.endswith(CYTHON):
        for line, code in enumerate(without_prose(text).splitlines(), 1):
            if re.search(rf"\b(np|numpy)\.({'|'.join(NUMPY_PRODUCTS)})\b|\.dot\(", code):
                yield f"{path}:{line} multiplies with NumPy"
    if not path.endswith(".py"):
        return
    for node in nodes(text):
        match node:
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield f"{path}:{node.lineno} uses the operator @"
            case ast.Attribute(attr="dot"):
                yield f"{path}:{node.lineno} uses .dot"
            case ast.Attribute(value=ast.Name("np" | "numpy"), attr=name) if name in NUMPY_PRODUCTS:
                yield f"{path}:{node.lineno} uses numpy.{name}"
            case ast.ImportFrom(module="numpy", names=names):
                for alias in names:
                    if alias.name in NUMPY_PRODUCTS:
                        yield f"{path}:{node.lineno} imports numpy.{alias.name}"


def second_blas(path: str, text: str) -> Iterator[str]:
    """One file touches BLAS."""
    if path != "engine/runtime/_gemm.pyx":
        for line, module in imports(path, text):
            if "cython_blas" in module or (module == "scipy.linalg" and "cython_blas" in text):
                yield f"{path}:{line} imports {module}: BLAS is engine/runtime/_gemm.pyx's"


def scattered_openmp(path: str, text: str) -> Iterator[str]:
    """Threads start in .pyx files alone; what those include or cimport is serial."""
    if path == "engine/runtime/team.h":  # has the functions that gcc makes of a prange
        return
    words = r"\bprange\b|\bcython\.parallel\b|\bopenmp\b|#\s*pragma\s+omp\b|\bomp\.h\b"
    if path.endswith((".pxd", ".c", ".h")):
        code = without_prose(text) if path.endswith(".pxd") else text
        for line, content in enumerate(code.splitlines(), 1):
            if re.search(words, content):
                yield f"{path}:{line} uses OpenMP"
    elif path.endswith(".py"):
        for line, module in imports(path, text):
            if module in ("cython.parallel", "openmp"):
                yield f"{path}:{line} uses OpenMP"


def joined_loops(path: str, text: str) -> Iterator[str]:
    """A prange is one parallel region on the pool of engine/runtime/team.h, which says why."""
    if not path.endswith(".pyx"):
        return
    code = without_prose(text)
    for found in re.finditer(r"\bparallel\(|\bprange\((?:[^()]|\([^()]*\))*\)", code):
        line = code.count("\n", 0, found.start()) + 1
        if found[0] == "parallel(":
            yield f"{path}:{line} opens a region: give prange num_threads, and nothing waits in it"
        elif "num_threads=" not in found[0]:
            yield f"{path}:{line} has a prange without num_threads"
    if "prange(" in code and "\nuse_team()\n" not in code:
        yield f"{path}:1 has a prange but does not call use_team()"


def environment_writes(path: str, text: str) -> Iterator[str]:
    """The process's environment is the user's."""
    if not path.endswith(".py"):
        return
    is_environment = {"os.environ", "environ", "os.environb"}.__contains__
    for node in nodes(text):
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                written = is_environment(ast.unparse(value))
            case ast.Assign(targets=targets):
                written = any(is_environment(ast.unparse(target)) for target in targets)
            case ast.AugAssign(target=target):
                written = is_environment(ast.unparse(target))
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if is_environment(
                ast.unparse(value)
            ):
                written = name in ENVIRONMENT_WRITERS
            case ast.Call(func=function):
                written = ast.unparse(function) in {"os.putenv", "os.unsetenv", "putenv"}
            case _:
                continue
        if written:
            yield f"{path}:{node.lineno} writes to the environment"


# Files whose contexts change only what belongs to them: files, processes, a line of progress; and
# `as_torch`, which opens at the call.
OWN_CONTEXTS = (
    *("serialization/replacing.py", "serialization/load.py", "inspection/watching/stream.py"),
    *("inspection/attribution/_batches.py", "bench/process.py", "bench/busy.py"),
    *("compat/inert.py", "compat/torch/hub.py", "compat/torch/utils/_python_dispatch.py"),
    *("engine/runtime/_scipy_blas.py", "compat/door.py"),
)


def interruptible_contexts(path: str, text: str) -> Iterator[str]:
    """Contexts derive from Restoring, whose end no signal interrupts; NumPy's errstate does not."""
    if not path.endswith(".py") or path in OWN_CONTEXTS:
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name="__exit__", lineno=line, args=args):
                if args.args[0].arg == "self":
                    yield f"{path}:{line} ends a context in Python: derive from Restoring"
            case ast.Attribute(attr="errstate", value=ast.Name(id="np"), lineno=line):
                yield f"{path}:{line} uses np.errstate: use engine.runtime.errstate"
            case (
                ast.Attribute(attr="contextmanager", lineno=line)
                | ast.Name(id="contextmanager", lineno=line)
            ):
                yield f"{path}:{line} uses contextmanager: use restoring"


RULES = (
    interruptible_contexts,
    upward_imports,
    upward_imports_inside,
    compiled_oracle,
    foreign_products,
    second_blas,
    scattered_openmp,
    joined_loops,
    environment_writes,
)


def package_sources() -> list[Path]:
    """List the sources of the package in the checkout; skip where the tests lie alone."""
    kinds = {".py", ".pyx", ".pxd", ".c", ".h"}
    package = CHECKOUT / "convcore"
    if not package.exists():
        pytest.skip("the sources are not beside the tests, which are here to test a wheel")
    return sorted(path for path in package.rglob("*") if path.suffix in kinds)


@pytest.fixture(scope="module")
def package_faults() -> dict[Callable, list[str]]:
    """Return the faults of the package by rule: all rules read a file before the next one."""
    faults = {rule: [] for rule in RULES}
    for source in package_sources():
        path = source.relative_to(CHECKOUT / "convcore").as_posix()
        text = source.read_text("utf-8")
        for rule in RULES:
            faults[rule] += rule(path, text)
    return faults


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_package_keeps_the_rule(rule, package_faults):
    assert not package_faults[rule], "\n".join(package_faults[rule])


def test_package_has_sources_to_check():
    names = {path.name for path in package_sources()}
    assert {"_gemm.pyx", "_gemm.pxd", "geometry.py", "reference.py"} <= names


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (upward_imports, "engine/conv/passes.py", "import convcore.nn"),
        (upward_imports, "engine/conv/passes.py", "import numpy, convcore.nn.functional as F"),
        (upward_imports, "engine/conv/passes.py", "from convcore.functions import conv"),
        (upward_imports, "engine/conv/passes.py", "from convcore import autograd"),
        (upward_imports, "engine/conv/passes.py", "from convcore import set_num_threads"),
        (upward_imports, "engine/conv/passes.py", "import convcore"),
        (upward_imports, "engine/conv/passes.py", "from ... import nn"),
        (upward_imports, "engine/conv/passes.py", "from ...nn import functional"),
        (upward_imports, "engine/conv/deep/conv.py", "from ....nn import functional"),
        (upward_imports, "engine/conv/passes.py", "def f():\n    from convcore import cli"),
        (upward_imports, "nn/modules/conv.py", "from convcore.optim import SGD"),
        (upward_imports, "_tensor/tensor.py", "from convcore.autograd import graph"),
        (upward_imports, "bench/suites.py", "from convcore.cli import main"),
        (upward_imports, "_errors/names.py", "importlib.import_module('convcore.compat.errors')"),
        (upward_imports, "_tensor/dtypes.py", "import_module(f'convcore.functions.{name}')"),
        (upward_imports, "cli/__init__.py", "from convcore import __main__"),
        (upward_imports, "engine/conv/_im2col.pyx", "from convcore.nn import plan"),
        (upward_imports, "engine/conv/_im2col.pyx", "    from ...nn import plan"),
        (upward_imports, "engine/conv/_im2col.pyx", "cimport convcore.functions as f"),
        (upward_imports, "engine/conv/_im2col.pxd", "from ... cimport nn"),
        (
            upward_imports_inside,
            "engine/runtime/_gemm.pyx",
            "from convcore.engine.conv cimport _im2col",
        ),
        (upward_imports_inside, "engine/layers/_reduce.pyx", "from ..conv._blocks cimport Blocks"),
        (
            upward_imports_inside,
            "engine/runtime/memory.py",
            "from convcore.engine.conv import passes",
        ),
        (
            upward_imports_inside,
            "engine/layers/norm/norm.py",
            "from convcore.engine.conv.plan import Plan",
        ),
        (upward_imports_inside, "engine/geometry.py", "import convcore.engine.runtime.checks"),
        (upward_imports_inside, "functions/_support/axes.py", "import convcore.functions.shapes"),
        (compiled_oracle, "engine/reference.py", "from convcore.engine import conv_forward"),
        (compiled_oracle, "engine/reference.py", "from .patches import im2col"),
        (compiled_oracle, "engine/reference.py", "import scipy.signal"),
        (foreign_products, "engine/conv/passes.py", "y = np.dot(a, b)"),
        (foreign_products, "engine/conv/passes.py", "product = numpy.einsum"),
        (foreign_products, "engine/conv/passes.py", "y = a @ b"),
        (foreign_products, "engine/conv/passes.py", "y @= b"),
        (foreign_products, "engine/conv/passes.py", "y = a.dot(b)"),
        (foreign_products, "demo/maps.py", "from numpy import tensordot as t"),
        (foreign_products, "bench/worker.py", "np.matmul(a, b)"),
        (foreign_products, "engine/numpy_face.py", "np.matmul(a, b)"),
        (foreign_products, "engine/conv/_im2col.pyx", "y = np.tensordot(a, b)"),
        (second_blas, "engine/conv/_im2col.pyx", "from scipy.linalg.cython_blas cimport sgemm"),
        (second_blas, "engine/conv/_im2col.pyx", "cimport scipy.linalg.cython_blas as blas"),
        (second_blas, "engine/conv/_im2col.pxd", "from scipy.linalg cimport cython_blas"),
        (second_blas, "engine/runtime/threads.py", "import scipy.linalg.cython_blas"),
        (scattered_openmp, "engine/conv/_im2col.pxd", "from cython.parallel cimport prange"),
        (scattered_openmp, "engine/conv/_im2col.pxd", "cimport openmp"),
        (scattered_openmp, "engine/conv/microkernels.c", "#pragma omp parallel for"),
        (scattered_openmp, "engine/conv/winograd/winograd.h", "#include <omp.h>"),
        (scattered_openmp, "engine/conv/passes.py", "from cython.parallel import prange"),
        (joined_loops, "engine/conv/_a.pyx", "\nuse_team()\nwith nogil, parallel(num_threads=2):"),
        (joined_loops, "engine/conv/_a.pyx", "\nuse_team()\nfor i in prange(f(n), nogil=True):"),
        (joined_loops, "engine/conv/_a.pyx", "for i in prange(f(n), num_threads=2):"),
        (interruptible_contexts, "optim/sgd.py", "class A:\n  def __exit__(self, *e): pass"),
        (interruptible_contexts, "optim/sgd.py", "@contextlib.contextmanager\ndef a(): yield"),
        (interruptible_contexts, "optim/sgd.py", "@contextmanager\ndef a(): yield"),
        (interruptible_contexts, "_tensor/dtypes.py", "with np.errstate(all='ignore'): pass"),
        (environment_writes, "engine/runtime/threads.py", "os.environ['OMP_NUM_THREADS'] = '1'"),
        (environment_writes, "engine/runtime/threads.py", "del os.environ['OMP_NUM_THREADS']"),
        (environment_writes, "engine/runtime/threads.py", "os.environ |= {'A': '1'}"),
        (environment_writes, "engine/runtime/threads.py", "os.environ = {}"),
        (environment_writes, "engine/runtime/threads.py", "environ.setdefault('A', '1')"),
        (environment_writes, "bench/worker.py", "os.environ.pop('A', None)"),
        (environment_writes, "bench/worker.py", "os.environ.update(A='1')"),
        (environment_writes, "bench/worker.py", "os.putenv('A', '1')"),
    ],
)
def test_rule_finds_the_fault(rule, path, text):
    faults = list(rule(path, text))
    assert len(faults) == 1 and faults[0].startswith(f"{path}:")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("engine/conv/passes.py", "from convcore.engine import conv\nfrom . import plan"),
        (
            "engine/conv/passes.py",
            "from ..geometry import Axis\nfrom .winograd._winograd import forward",
        ),
        ("engine/conv/passes.py", "y = engine.matmul(a, b)\n@cache\ndef f(): pass"),
        ("_tensor/tensor.py", "from convcore import random\nfrom .dtypes import float32"),
        ("bench/suites.py", "import convcore\nfrom convcore import engine, get_num_threads"),
        ("bench/peers/numpy_im2col.py", "y = np.tensordot(a, b)\nz = a @ b"),
        ("bench/worker.py", "env = os.environ.copy()\nenv['A'] = '1'\nenv.pop('B', None)"),
        ("engine/reference.py", "from convcore.engine.geometry import Axis\ny = np.einsum(s, a)"),
        (
            "engine/conv/_im2col.pyx",
            "from cython.parallel cimport prange\nfrom ..runtime._gemm cimport gemm\n"
            "use_team()\nfor i in prange(f(n), schedule='static', num_threads=m):",
        ),
        ("engine/conv/_im2col.pyx", '"""import convcore.nn\nfrom convcore.cli import main"""'),
        ("engine/conv/_im2col.pxd", "# prange stays out of here, as does cython_blas"),
        ("engine/runtime/_gemm.pyx", "cimport scipy.linalg.cython_blas as blas"),
        ("__main__.py", "from convcore.cli import main"),
    ],
)
def test_rules_pass_what_is_allowed(path, text):
    assert [fault for rule in RULES for fault in rule(path, text)] == []


def test_unknown_room_needs_a_floor():
    with pytest.raises(KeyError, match="attic"):
        list(upward_imports("engine/conv/passes.py", "import convcore.attic"))
