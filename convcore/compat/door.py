"""The import hook: `import torch.X` gives convcore.X, under PyTorch's names.

Each module `torch.X` is a `Facade` of its own.  It finds a name in `convcore.compat.torch.X`, then
in `convcore.X`; for what is in neither it raises `NotInConvcoreError`.  Setting a name through it
sets it in convcore too, so that programs that replace `torch.nn.functional.relu`, to count calls,
see every call that modules make.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any, ClassVar

from convcore import overrides
from convcore._errors import missing, pytorch
from convcore.compat import children, hidden, inert
from convcore.engine.runtime.locks import process_lock

# Where classes live that PyTorch shows by shorter names: str(type(x)) is "<class 'torch.Tensor'>".
_SHOWN = {
    "convcore._tensor.tensor": "torch",
    "convcore._tensor.dtypes": "torch",
    "convcore._tensor.limits": "torch",
    "convcore._tensor.device": "torch",
    "convcore._tensor.size": "torch",
    "convcore._tensor.storage": "torch",
    "convcore.random.generator": "torch",
    "convcore.onnx.program": "torch.onnx",
}


class Facade(types.ModuleType):
    """A module `torch.X`: what is set on it is set on convcore's module too."""

    __path__: list[str]

    def __init__(self, name: str, sources: Sequence[types.ModuleType]):
        super().__init__(name, sources[-1].__doc__)
        object.__setattr__(self, "_stands_for", sources)
        self.__dict__["__path__"] = []  # all are packages: `from torch.X import Y` asks the finder
        self.__dict__["__file__"] = getattr(sources[-1], "__file__", None)
        listed = getattr(sources[-1], "__all__", None)
        if listed is not None:
            self.__dict__["__all__"] = listed

    def __getattr__(self, name: str) -> Any:
        sources = object.__getattribute__(self, "_stands_for")
        for source in sources:
            try:
                value = getattr(source, name)
            except AttributeError:
                continue
            if not isinstance(value, types.ModuleType) or _is_shown(source, name, value):
                return self._kept(name, value)
        if name[:2] == "__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        path = f"{self.__name__}.{name}"
        found = fallback(sources, name) or _of_other_file(self.__name__, name)
        if found is not None:
            return self._kept(name, found)
        try:
            if (pytorch.is_module(path) or real(path)) and find(path):
                return self._below(name, path)
        except missing.MissingModuleError as error:  # of a package that it needs
            raise missing.MissingAttributeError(str(error), name=name) from None
        if inert.has_stand_in(path):
            return self._kept(name, inert.stand_in(path))
        raise missing.missing_attribute(self.__name__, name)

    def _kept(self, name: str, value: Any) -> Any:
        """Return a value as PyTorch's programs shall see it, and keep it if it will not change."""
        if isinstance(value, types.ModuleType):
            path = f"{self.__name__}.{name}"  # or a module of another place: F.grad is nn.grad
            there = path if find(path) else value.__name__.replace("convcore", "torch", 1)
            return self._below(name, there)
        if isinstance(value, type):
            _Door.relabel(value)
        if isinstance(value, types.FunctionType):
            value = overrides.interceptable(value)  # found once, for all who will look at calls
        if isinstance(value, type | types.FunctionType):
            self.__dict__[name] = value  # the next time it is found at once
        return value

    def _below(self, name: str, path: str) -> Any:
        """Return a module; without an import where the door has closed, as `torch` is another's."""
        if _Door.entered:
            return importlib.import_module(path)
        self.__dict__[name] = module = Facade(path, find(path))
        return module

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Facade) and self._is_function(name):
            return  # the import of torch.autograd.gradcheck leaves the function of that name
        if not (isinstance(value, types.ModuleType) or name[:2] == "__"):
            setattr(self._stands_for[-1], name, value)
        self.__dict__[name] = value

    def _is_function(self, name: str) -> bool:
        return callable(vars(self._stands_for[-1]).get(name))

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)
        if name in vars(self._stands_for[-1]):
            delattr(self._stands_for[-1], name)

    def __dir__(self) -> list[str]:
        return sorted({name for source in self._stands_for for name in dir(source)})

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: convcore in PyTorch's place>"


# Python's own errors name the type: of torch.optim.adam(...) they say "'module' object".
Facade.__name__ = types.ModuleType.__name__


def _is_shown(source: types.ModuleType, name: str, module: types.ModuleType) -> bool:
    """Return whether a module is a name of `source`, not only imported there as NumPy is."""
    if module.__name__ == f"{source.__name__}.{name}":
        return True
    # One of another place, under its own name: F.grad is nn.grad.
    path = module.__name__.replace("convcore", "torch", 1)
    return path.endswith(f".{name}") and pytorch.is_module(path)


def fallback(sources: Sequence[types.ModuleType], name: str) -> Any:
    """Return what the first module finds by a rule; None if it has no such rule, or name."""
    rule = getattr(sources[0], "_fallback", None)
    return rule(name) if rule is not None else None


def _of_other_file(module: str, name: str) -> type | None:
    """Return a layer that stands in another file than PyTorch's, as CTCLoss; None for others."""
    if not module.startswith("torch.nn.modules."):
        return None
    found = getattr(importlib.import_module("convcore.nn.modules"), name, None)
    return found if isinstance(found, type) else None


def find(path: str) -> list[types.ModuleType]:
    """Return the modules that stand for a module `torch.X`; none if there is no such module."""
    return _imported(real(path)) or (
        [types.ModuleType(path, missing.explain(path))] if inert.has_stand_in(path) else []
    )


def _imported(modules: Sequence[str]) -> list[types.ModuleType]:
    """Import modules, less those whose package is not installed if there are others."""
    found, failed = [], None
    for name in modules:
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            failed = error
    if failed is not None and not found:
        raise missing.MissingModuleError(str(failed), name=failed.name) from None
    return found


def real(path: str) -> list[str]:
    """Return the names of convcore's modules for `torch.X`."""
    inside = path.removeprefix("torch")
    both = (f"convcore.compat.torch{inside}", f"convcore{inside}")
    return [name for name in both if _exists(name)]


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is no package, or does not exist
        return False


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and everything below it, and says honestly what is not there."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        sources = find(fullname)
        if not sources:
            raise missing.missing_module(fullname)
        return ModuleSpec(fullname, self, is_package=True, loader_state=sources)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Facade(spec.name, spec.loader_state)

    def exec_module(self, module: types.ModuleType) -> None:
        for value in list(vars(module._stands_for[-1]).values()):
            if isinstance(value, type):
                _Door.relabel(value)
        if module.__name__ == "torch":
            module.__dict__["torch"] = module  # PyTorch has torch.torch, too


class _Door:
    """Whether the door is open: how often it was entered, and what has to be undone."""

    lock = process_lock()
    entered = 0
    finder = _Finder()
    labels: ClassVar[dict[type, str]] = {}

    @classmethod
    def relabel(cls, kind: type) -> None:
        """Give a class of convcore's the module name that PyTorch's has, until the door closes."""
        module = kind.__module__
        if not cls.entered or not module.startswith("convcore"):
            return
        cls.labels[kind] = module
        inside = module.removeprefix("convcore.compat.torch").removeprefix("convcore")
        kind.__module__ = _SHOWN.get(module, f"torch{inside}")

    @classmethod
    def open(cls) -> None:
        present = sys.modules.get("torch")
        if present is not None and not isinstance(present, Facade):
            where = getattr(present, "__file__", "somewhere")
            raise RuntimeError(
                f"as_torch() has to come before the first `import torch`: torch is loaded already, "
                f"from {where}"
            )
        cls.entered += 1
        if cls.entered == 1:
            sys.meta_path.insert(0, cls.finder)
            overrides.install()
            children.follow(as_torch)
            hidden.hide()
            importlib.import_module("torch")

    @classmethod
    def close(cls) -> None:
        cls.entered -= 1
        if cls.entered:
            return
        sys.meta_path.remove(cls.finder)
        for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
            del sys.modules[name]
        for kind, module in cls.labels.items():
            kind.__module__ = module
        cls.labels.clear()
        children.leave()
        hidden.show()
        overrides.uninstall()


class as_torch(contextlib.AbstractContextManager):
    """Let ``import torch`` give convcore, until the end of a ``with`` block or for good.

    Every import of `torch` and `torch.X`, by anybody in the process, gives convcore under PyTorch's
    names, and `torch.__version__` is the PyTorch version whose names these are.  Packages that
    are imported meanwhile keep what they imported after the block.  Processes that
    `multiprocessing` starts meanwhile do so too.

    Raises
    ------
    RuntimeError
        PyTorch itself is loaded already.

    For instance::

        with as_torch():
            import torch.nn as nn
            import torchvision
    """

    def __init__(self) -> None:
        with _Door.lock:
            _Door.open()
        self._open = True

    def __enter__(self) -> types.ModuleType:
        """Return the module `torch`."""
        return importlib.import_module("torch")

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Undo it: `torch` is again what is installed under that name, if anything is."""
        with _Door.lock:
            if self._open:
                self._open = False
                _Door.close()
