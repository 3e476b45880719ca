"""The pages of the API, written from what the package says is public.

A page has a room or a few; a room's names are those of its `__all__`, in sections by the module
that defines them, each under that module's own first line.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import docstrings

import convcore
from convcore.functions._not_here import NAMES as NOT_HERE

# Title and rooms of each page, in the order of the site.  The package's own names, of which there
# are hundreds, have a page for each entry of TOP.
PAGES = {
    "engine": ("The NumPy face", "engine engine.conv.plan engine.reference"),
    "nn": (
        "Modules",
        "nn nn.modules.module nn.modules.utils nn.parameter nn.attention nn.parallel",
    ),
    "nn_functional": ("Functions of nets", "nn.functional nn.grad"),
    "nn_init": ("Initial weights", "nn.init"),
    "nn_utils": (
        "Clipping, pruning, parametrizations, sequences",
        "nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations nn.utils.prune "
        "nn.utils.fusion nn.utils.spectral_norm nn.utils.weight_norm nn.utils.stateless",
    ),
    "optim": ("Optimizers", "optim optim.optimizer optim.swa_utils"),
    "lr_scheduler": ("Learning rates", "optim.lr_scheduler"),
    "utils_data": ("Datasets and loaders", "utils.data utils.data.dataset utils.data.dataloader"),
    "autograd": (
        "The graph and its hooks",
        "autograd autograd.graph autograd.functional autograd.gradcheck autograd.anomaly_mode "
        "autograd.handle autograd.observation utils.hooks",
    ),
    "checkpoint": ("Recomputation", "utils.checkpoint utils"),
    "func": ("Transforms of functions", "func"),
    "inference": ("Nets that only run", "inference"),
    "inspection": ("Summaries, profiles, reports", "inspection"),
    "pictures": ("Pictures of nets", "inspection.pictures"),
    "attribution": ("Attribution", "inspection.attribution"),
    "models": ("Nets", "models models.blocks"),
    "onnx": ("Models in ONNX's format", "onnx"),
    "serialization": ("Checkpoints", "serialization serialization.safe"),
    "backends": (
        "Choice of algorithms",
        "backends backends.cpu backends.cuda backends.cudnn backends.mha backends.mkl "
        "backends.mkldnn backends.mps backends.openmp",
    ),
    "linalg": ("Linear algebra", "linalg"),
    "special": ("Special functions", "special"),
    "distributions": (
        "Distributions",
        "distributions distributions.constraints distributions.transforms distributions.kl "
        "distributions.utils",
    ),
    "random": ("Random numbers", "random random.rejection"),
    "amp": ("Mixed precision", "amp amp.autocast_mode"),
    "cpu": ("The CPU as a device", "cpu"),
    "cuda": ("The device that is not there", "cuda"),
    "multiprocessing": ("Processes", "multiprocessing multiprocessing.spawn futures"),
    "distributed": (
        "Distributed training",
        "distributed distributed.algorithms.ddp_comm_hooks.default_hooks",
    ),
    "overrides": ("Subclasses of Tensor", "overrides"),
    "testing": ("Comparisons for tests", "testing"),
    "hub": ("Nets from folders", "hub"),
    "compat": ("programs written for PyTorch", "compat"),
}
TOP = {
    "elementwise": (
        "Elementwise functions",
        "activation angles arithmetic compare complex_parts elementwise floats gamma logic "
        "piecewise rounding special ternary",
    ),
    "shapes": (
        "Shapes, parts and places",
        "broadcast convert index_along indexing joining masked memory rearrange scatter "
        "scatter_reduce shape slicing splitting strided",
    ),
    "functions": ("Reductions, products and layers", ""),  # every other family of functions
    "tensors": ("Tensors, dtypes, threads and memory", ""),  # what is no function of tensors
}


DOTTED = (ast.Name, ast.Attribute)


class Section(NamedTuple):
    title: str
    about: str
    room: str
    names: list[str]


def title_of(module: ModuleType) -> tuple[str, str]:
    """Return a heading for a module's names, and the sentence that it was cut from."""
    line = (module.__doc__ or module.__name__).partition("\n")[0]
    title = re.split(r"[:;(]|``| at their edges| in the memory", line)[0].strip(" .")
    if len(title) > 60:
        title = title.partition(", ")[0]
    if not title or not title[0].isalpha():
        title = module.__name__.rpartition(".")[2]
    return title.replace("`", ""), line


def names_of(room: str) -> list[str]:
    """List the public names of a room: its `__all__`, or else what it defines or takes in."""
    module = importlib.import_module(room)
    if room == "convcore":
        return [name for name in dir(convcore) if not name.startswith("_")]
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = (
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and (getattr(value, "__module__", None) or "").startswith("convcore")
        )
    return sorted(listed)


@cache
def modules_of(package: str) -> tuple[str, ...]:
    """List the modules of a package."""
    path = importlib.import_module(package).__path__
    return tuple(found.name for found in pkgutil.iter_modules(path, f"{package}."))


# Where the names of the large rooms come from.
SOURCES = {
    "convcore": [f"convcore.{family}" for family in convcore._FAMILIES[1:]],
    "convcore.nn": [*modules_of("convcore.nn.modules"), "convcore.nn.parameter"],
    "convcore.nn.functional": list(modules_of("convcore.functions")),
}
SOURCES["convcore"] += SOURCES["convcore.nn.functional"]


@cache
def families(room: str) -> dict[str, str]:
    """Return for each name of a large room the module whose `__all__` has it."""
    found: dict[str, str] = {}
    for module in SOURCES[room]:
        for name in getattr(importlib.import_module(module), "__all__", ()):
            found.setdefault(name, module)
    return found


def family_of(room: str, name: str) -> str:
    """Return the module that a name of a large room belongs to."""
    value = getattr(importlib.import_module(room), name)
    if isinstance(value, ModuleType):
        return room
    if room in SOURCES:
        for spelling in (name, name.rstrip("_")):
            if spelling in families(room):
                return families(room)[spelling]
    return getattr(value, "__module__", None) or room


def page_of(family: str) -> str:
    """Return the page of the package's own names that come from this module."""
    if not family.startswith("convcore.functions"):
        return "tensors"
    name = family.rpartition(".")[2]
    return next((page for page, (_, its) in TOP.items() if name in its.split()), "functions")


def sections_of_room(room: str, names: Iterable[str]) -> Iterator[Section]:
    """Yield a room in one section, or a large one in a section for each module behind it."""
    about = title_of(importlib.import_module(room))[1]
    if room not in (*SOURCES, "convcore.engine"):
        yield Section(room, about, room, list(names))
        return
    by_family: dict[str, list[str]] = {}
    for name in names:
        by_family.setdefault(family_of(room, name), []).append(name)
    found = [
        (("Rooms", "") if family == room else title_of(importlib.import_module(family)), its)
        for family, its in by_family.items()
    ]
    for (title, about), its in sorted(found, key=lambda pair: pair[0][0].lower()):
        yield Section(title, about, room, its)


def sections() -> dict[str, list[Section]]:
    """Return what stands on each page but that of Tensor's methods.

    The rooms come first: a class that the package has too is described in its room.
    """
    pages: dict[str, list[Section]] = {}
    for page, (_, rooms) in PAGES.items():
        pages[page] = [
            section
            for room in rooms.split()
            for section in sections_of_room(f"convcore.{room}", names_of(f"convcore.{room}"))
        ]
    own = names_of("convcore")
    for page in TOP:
        names = [name for name in own if page_of(family_of("convcore", name)) == page]
        pages[page] = list(sections_of_room("convcore", names))
    return pages


# --- writing --------------------------------------------------------------------------------------


def first_line(value: Any) -> str:
    """Return the sentence that a docstring starts with."""
    words = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return docstrings.escaped(re.split(r"(?<=\.)\s", words)[0])


def is_ours(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").startswith("convcore")


def headed(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def indented(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def short(text: str) -> str:
    return text if len(text) <= 60 and "\n" not in text and " at 0x" not in text else ""


def value_entry(full: str, value: Any) -> list[str]:
    """Return the entry of what is neither a class nor a function of ours."""
    if callable(value) and not is_ours(value):
        home = getattr(value, "__module__", None) or type(value).__module__
        called = getattr(value, "__name__", None) or type(value).__name__
        return [f".. py:function:: {full}", "", f"    The same as ``{home}.{called}``.", ""]
    lines = [f".. py:data:: {full}"]
    if shown := short(repr(value)):
        lines.append(f"    :value: {shown}")
    about = inspect.getdoc(value) if is_ours(type(value)) else None
    return [*lines, "", *indented([docstrings.escaped((about or "").partition("\n")[0])]), ""]


def entry(room: str, name: str, first: dict[Any, str], used: dict[str, list[str]]) -> list[str]:
    """Return the lines of one name; `first` has the names so far, of which it may be another."""
    full, value = f"{room}.{name}", getattr(importlib.import_module(room), name)
    if isinstance(value, ModuleType):
        return [f".. py:data:: {full}", "", f"    {docstrings.escaped(title_of(value)[1])}", ""]
    if not is_ours(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
        return value_entry(full, value)
    kind = "class" if inspect.isclass(value) else "function"
    # Sphinx wants a class once in all pages.
    other = first.setdefault(value if kind == "class" else (room, value), full)
    if other != full:
        return [f".. py:{kind}:: {full}", "", f"    The same as `{other}`.", ""]
    lines = [f".. auto{kind}:: {full}"]
    if kind == "class" and value is not convcore.Tensor:
        lines.append("    :members:")
    if value is convcore.Tensor:
        lines += ["", "    Its methods and attributes have :doc:`a page of their own <tensor>`."]
    if pages := used.get(full):
        lines += ["", "    Shown in " + ", ".join(f":ref:`{page}`" for page in pages) + "."]
    return [*lines, ""]


def table(room: str, names: Iterable[str]) -> list[str]:
    """Return a table of names, each with the first sentence of its docstring."""
    module = importlib.import_module(room)
    rows = [".. list-table::", "    :widths: 30 70", "    :class: names", ""]
    for name in names:
        value = getattr(module, name)
        about = first_line(value) if is_ours(value) or isinstance(value, ModuleType) else ""
        rows += [f"    * - :py:obj:`~{room}.{name}`", f"      - {about}"]
    return [*rows, ""]


def page(
    title: str, its: Iterable[Section], first: dict[Any, str], used: dict[str, list[str]]
) -> str:
    """Return a page: each section its table and its entries."""
    lines = headed(title, "=")
    for section in its:
        lines += headed(section.title, "-")
        if section.about.rstrip(".") != section.title:
            lines += [docstrings.escaped(section.about), ""]
        lines += [f".. py:currentmodule:: {section.room}", ""]
        lines += table(section.room, section.names)
        for name in section.names:
            lines += entry(section.room, name, first, used)
    return "\n".join(lines)


def tensor_page() -> str:
    """Return the page of Tensor's attributes and methods."""
    kinds: dict[str, list[str]] = {"Attributes": [], "Methods": [], "Functions as methods": []}
    public = {name for name in dir(convcore.Tensor) if not name.startswith("_")} - NOT_HERE
    for name in sorted(public):
        value = inspect.getattr_static(convcore.Tensor, name)
        full = f"convcore.Tensor.{name}"
        function = getattr(convcore, name, None)
        if not callable(value):
            kinds["Attributes"] += [f".. autoattribute:: {full}", ""]
        elif function is not None and inspect.getdoc(function) == inspect.getdoc(value):
            signature = re.sub(r"^\(\w+(, )?", "(", untyped(value))
            about = f"    `convcore.{name}`: {first_line(function)}"
            kinds["Functions as methods"] += [f".. py:method:: {full}{signature}", "", about, ""]
        else:
            kinds["Methods"] += [f".. automethod:: {full}", ""]
    lines = [*headed("Methods of Tensor", "="), ".. py:currentmodule:: convcore", ""]
    for title, its in kinds.items():
        lines += [*headed(title, "-"), *its]
    return "\n".join(lines)


def untyped(function: Any) -> str:
    """Return a signature without its types."""
    signature = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def users(tutorials: Path) -> dict[str, list[str]]:
    """Return for each name the labels of the tutorials that use it, by its full name."""
    found: dict[str, list[str]] = {}
    for path in sorted(tutorials.glob("*.py")):
        for name in sorted(names_used(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(f"sphx_glr_auto_tutorials_{path.name}")
    return found


def names_used(script: str) -> set[str]:
    """Return the full names of what a script uses of the package by attributes of its imports."""
    tree = ast.parse(script)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
            known |= {alias.name: alias.name for alias in node.names if not alias.asname}
        elif isinstance(node, ast.ImportFrom):
            known |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    chains = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, DOTTED))
    used = set(known.values())
    for chain in chains:
        first, dot, rest = chain.partition(".")
        used.add(known.get(first, "") + dot + rest)
    return {name for name in used if re.fullmatch(r"convcore(\.\w+)+", name)}


def write_if_changed(path: Path, text: str) -> None:
    """Leave a page alone that says the same: Sphinx reads again what was written again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(app: Any) -> None:
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    used = users(Path(app.srcdir) / "tutorials")
    titles = {name: title for name, (title, _) in TOP.items()}
    for name, (title, rooms) in PAGES.items():
        titles[name] = f"convcore.{rooms.split()[0]}: {title[0].lower()}{title[1:]}"
    first: dict[Any, str] = {}
    pages = {name: page(titles[name], its, first, used) for name, its in sections().items()}
    pages["tensor"] = tensor_page()
    for name, text in pages.items():
        write_if_changed(folder / f"{name}.rst", text)


def class_signature(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str, returns: Any
) -> tuple[str, None] | None:
    """Show the arguments of a class's constructor, where Sphinx would take those of `__new__`."""
    if what == "class" and signature == "(*args, **kwargs)":
        return untyped(value), None
    return None


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-signature", class_signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
