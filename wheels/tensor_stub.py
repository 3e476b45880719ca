"""Write convcore/_tensor/tensor.pyi, the type stub of Tensor, from the sources.

    python wheels/tensor_stub.py

Most methods are attached to Tensor when the package is loaded (convcore/functions/_bind.py), where
no type checker and no editor sees them.  The stub is read off the finished class and lists them
all.  A method that is a function of another module is assigned from there, where its signature and
its docstring are.

setup.py runs this before the kernels are compiled, and the linters without them: stand-ins take
their place.  NumPy has to be installed.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class StandIn(int):
    """Whatever a compiled module defines: a number, a function, a class to derive from."""

    def __call__(self, *args: Any, **kwargs: Any) -> StandIn:
        return self

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __getitem__(self, key: Any) -> StandIn:
        return self

    def __or__(self, other: Any) -> StandIn:  # in a type such as `Block | None`
        return self

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()


class StandInModule(types.ModuleType):
    """A compiled module, before it is compiled."""

    __path__: typing.ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> StandIn:
        return StandIn(1).__getattr__(name)


class StandInFinder(MetaPathFinder, Loader):
    """Finds a stand-in for each module in Cython, and for SciPy, which linters may lack."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        is_compiled = ROOT.joinpath(*name.split(".")).with_suffix(".pyx").exists()
        return ModuleSpec(name, self) if is_compiled or name == "scipy" else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.meta_path.insert(0, StandInFinder())

import convcore.functions  # noqa: E402, F401  attaches the methods to Tensor
from convcore._tensor import Tensor, memory_format, tensor  # noqa: E402
from convcore.functions.table import ROWS  # noqa: E402

WIDTH = 100
QUOTES = '"""'
HEAD = '''\
"""Tensor with every method it has once the package is loaded; see wheels/tensor_stub.py."""'''

# What slots hold: nothing can be read off them.
SLOTS = {
    "_array": "np.ndarray",
    "_counter": "list[builtins.int]",
    "_grad": "Tensor | None",
    "_grad_fn": "Any",
    "_leaf": "Any",
    "_name": "str",
    "_output_nr": "builtins.int",
    "_requires_grad": "builtins.bool",
    "_view": "Any",
}

# What the code says less exactly than it could.  Several signatures are overloads.
EXTREME = (
    "(self, dim: builtins.int, keepdim: builtins.bool = False) -> Picked",
    "(self, dim: None = None) -> Tensor",
    "(self, dim: Tensor) -> Tensor",
)
SIGNATURES = {
    **dict.fromkeys(("max", "min"), EXTREME),
    "size": ("(self, dim: None = None) -> Size", "(self, dim: builtins.int) -> builtins.int"),
    "stride": (
        "(self, dim: None = None) -> tuple[builtins.int, ...]",
        "(self, dim: builtins.int) -> builtins.int",
    ),
    "type": (
        "(self, dtype: None = None) -> str",
        "(self, dtype: Any, non_blocking: builtins.bool = False) -> Tensor",
    ),
}
RESULTS = {
    **dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"), "Tensor"),
    **dict.fromkeys(("__matmul__", "__rmatmul__", "conj"), "Tensor"),
    "__init__": "None",
}
# object has it that any two things can be compared and that the answer is a bool.
REMARKS = dict.fromkeys(("__eq__", "__ne__"), "  # type: ignore[override]")


class Speller:
    """Writes types by name, and remembers what must be imported for that."""

    def __init__(self) -> None:
        self.imports = {"typing": {"Any", "overload"}}
        self.modules: set[str] = set()

    def __call__(self, hint: Any) -> str:
        if hint is Any or hint is inspect.Parameter.empty:
            return "Any"
        if hint is None or hint is types.NoneType:
            return "None"
        if hint is Ellipsis:
            return "..."
        if isinstance(hint, list):
            return f"[{', '.join(map(self, hint))}]"
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (types.UnionType, typing.Union):
            return " | ".join(map(self, arguments))
        if origin is not None:
            return f"{self.named(origin)}[{', '.join(map(self, arguments))}]"
        return self.named(hint)

    def named(self, cls: type) -> str:
        """Return a class's name; Tensor has methods of the same name as some classes."""
        module, name = cls.__module__, cls.__name__
        hidden = hasattr(Tensor, name)
        if module == tensor.__name__:
            return name
        if module == "builtins":
            return f"builtins.{name}" if hidden else name
        if module == "numpy":
            return f"np.{name}"
        self.imports.setdefault(module, set()).add(f"{name} as _{name}" if hidden else name)
        return f"_{name}" if hidden else name

    def import_lines(self, body: str) -> Iterator[str]:
        """Yield the body's imports in isort's order: the standard library, NumPy, the package."""
        yield "import builtins"
        words = set(re.findall(r"\w+", body))
        lines = []
        for module in sorted(self.imports):
            used = [name for name in sorted(self.imports[module]) if name.split()[-1] in words]
            lines += [f"from {module} import {', '.join(used)}"] if used else []
        own = [line for line in lines if line.startswith("from convcore")]
        yield from (line for line in lines if line not in own)
        yield from ("", "import numpy as np", "")
        # Not "from convcore.functions import": there, matmul is the function.
        yield from (f"import {module} as {shortened(module)}" for module in sorted(self.modules))
        yield from own


spell = Speller()


def signature_of(function: Callable, name: str, first: str) -> tuple[list[str], str]:
    """Return a function's parameters, the first one called ``first`` and bare, and its result."""
    function = inspect.unwrap(function)
    hints = typing.get_type_hints(function)
    parameters = list(inspect.signature(function).parameters.values())
    if name.startswith("__") and "other" in hints:  # an operator has no further arguments
        parameters = parameters[:2]
    written: list[str] = []
    if first:
        written, parameters = [first], parameters[1:]
    keyword_only = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            written.append("*")
        keyword_only = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        written.append(parameter_line(parameter, spell(hints.get(parameter.name, Any))))
    # Without annotations are a few lambdas, and they all give tensors.
    return written, RESULTS.get(name) or spell(hints.get("return", Tensor))


def parameter_line(parameter: inspect.Parameter, hint: str) -> str:
    """Return a parameter as a stub writes it: defaults that are no literals are dots."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    line = f"{stars}{parameter.name}: {hint}"
    default = parameter.default
    if default is parameter.empty:
        return line
    literal = default is None or default == () or type(default) in (bool, int, float, str)
    return f"{line} = {show(default) if literal else '...'}"


def show(value: Any) -> str:
    """Return a literal, a string in double quotes."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def definition(
    name: str, parameters: list[str], result: str, indent: str, tail: str
) -> Iterator[str]:
    """Yield the head of a definition, as ruff breaks it where it is too long."""
    line = f"{indent}def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) + len(tail) <= WIDTH:
        yield line + tail
        return
    yield f"{indent}def {name}("
    inner = f"{indent}    {', '.join(parameters)}"
    if len(inner) <= WIDTH:
        yield inner
    else:
        yield from (f"{indent}    {parameter}," for parameter in parameters)
    yield f"{indent}) -> {result}:{tail}"


def function_stub(function: Callable, name: str, first: str = "self") -> Iterator[str]:
    """Yield the lines of a function or method, with the first line of its docstring."""
    indent = "    " if first else ""
    document = (inspect.getdoc(function) or "").partition("\n")[0]
    if name.startswith("_"):
        document = ""
    tail = "" if document else f" ...{REMARKS.get(name, '')}"
    yield from definition(name, *signature_of(function, name, first), indent, tail)
    if document:
        yield from (f'{indent}    """{document}"""', "")


def property_stub(found: property, name: str) -> Iterator[str]:
    """Yield the lines of a property: how it is read, set and deleted."""
    yield "    @property"
    yield from function_stub(found.fget, name)
    if found.fset is not None:
        yield f"    @{name}.setter"
        yield from function_stub(found.fset, name)
    if found.fdel is not None:
        yield f"    @{name}.deleter"
        yield from function_stub(found.fdel, name)


def method_stub(member: Any, name: str) -> Iterator[str]:
    """Yield the lines of whatever the class has under a name; nothing for what object has too."""
    if name in SIGNATURES:
        for signature in SIGNATURES[name]:
            yield from ("    @overload", f"    def {name}{signature}: ...")
    elif isinstance(member, property):
        yield from property_stub(member, name)
    elif isinstance(member, staticmethod) and name == "__new__":
        yield from function_stub(member.__func__, name, "cls")
    elif isinstance(member, staticmethod):
        yield "    @staticmethod"
        yield from function_stub(member.__func__, name, "cls: builtins.type")
    elif isinstance(member, types.FunctionType):
        yield from function_stub(member, name)
    elif isinstance(member, types.MemberDescriptorType):
        yield f"    {name}: {SLOTS[name]}"
    elif isinstance(member, int) and name != "__firstlineno__":  # which Python 3.13 adds
        yield f"    {name}: builtins.int"


def identity(members: dict[str, Any], name: str) -> str:
    """Return a method's signature and document; an in-place form's are those of its operation."""
    text = "\n".join(function_stub(members[name], "method"))
    base = members.get(name.removesuffix("_"))
    if not isinstance(base, types.FunctionType):
        return text
    plain = "\n".join(function_stub(base, "method"))
    return plain if plain.partition(QUOTES)[0] == text.partition(QUOTES)[0] else text


def origin(function: Callable) -> str:
    """Return the name, in another module, of a function that is defined there; '' for others."""
    plain = inspect.unwrap(function)
    module = plain.__module__
    known = vars(sys.modules[module]).get(plain.__name__)
    # mypy infers the type of a function under a row later than it reads this class.
    is_row = plain.__name__ in ROWS
    if module == tensor.__name__ or known is not function or made(plain) or is_row:
        return ""
    spell.modules.add(module)
    return f"{shortened(module)}.{plain.__name__}"


def shortened(module: str) -> str:
    """Return the name of a module in the stub: _elementwise, _random_sampling."""
    return f"_{module.removeprefix('convcore.').removeprefix('functions.').lstrip('_')}".replace(
        ".", "_"
    )


def made(function: types.FunctionType) -> bool:
    """Return whether a function is another one's result, which type checkers bind to no tensor."""
    return function.__code__.co_name != function.__name__


def source_of(members: dict[str, Any], name: str, first: dict[str, str]) -> str:
    """Return what a method is assigned from, a method before it or a function; '' for neither.

    ``first`` has the methods so far, by what they are; editors show the document of the source.
    """
    if name[0] == "_" or name in SIGNATURES or not isinstance(members[name], types.FunctionType):
        return ""
    same = first.setdefault(identity(members, name), name)
    if same != name:
        return same
    return "" if name in RESULTS else origin(members[name])


def class_stub(cls: type) -> Iterator[str]:
    """Yield the lines of a class: slots first, then methods in the order of their tables."""
    members = dict(vars(cls))
    slots = [name for name in members if isinstance(members[name], types.MemberDescriptorType)]
    yield f"class {cls.__name__}:"
    for name in slots:
        yield from method_stub(members[name], name)
    first: dict[str, str] = {}
    for name, member in members.items():
        source = source_of(members, name, first)
        if source:
            yield f"    {name} = {source}"
        elif name not in slots:
            yield from method_stub(member, name)


def stub() -> str:
    """Return the whole stub."""
    body: list[str] = []
    for name, value in vars(tensor).items():
        if getattr(value, "__module__", None) == tensor.__name__:
            if isinstance(value, memory_format):
                body.append(f"{name}: memory_format")
            elif inspect.isclass(value):
                body += ["", *class_stub(value), ""]
            else:
                body += function_stub(value, name, "")
    text = "\n".join([HEAD, "", *spell.import_lines("\n".join(body)), "", *body]) + "\n"
    return text.replace("\n\n\n", "\n\n")


if __name__ == "__main__":
    (ROOT / "convcore/_tensor/tensor.pyi").write_text(stub(), "utf-8")
