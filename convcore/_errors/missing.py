"""Errors for names that PyTorch has and convcore lacks."""

from __future__ import annotations

import functools
import sys
from types import ModuleType

from convcore._errors import nearest, pytorch, scope


class NotInConvcoreError(Exception):
    """PyTorch has it, convcore has not; the text says why, and what to use instead.

    Catch this class for all such errors.  Those of attributes are AttributeErrors too, and those of
    modules ModuleNotFoundErrors, so that programs that ask before they use something still work.
    """


class MissingAttributeError(NotInConvcoreError, AttributeError):
    """A name, such as `torch.stft`."""


class MissingModuleError(NotInConvcoreError, ModuleNotFoundError):
    """A module, such as `torch.distributed`, or a name that is imported from one."""


class NotUsableError(NotInConvcoreError, RuntimeError):
    """A stand-in, such as `torch.fx.wrap`, is used and not only named."""


class MissingLibraryError(NotInConvcoreError, OSError):
    """A compiled library of operators for PyTorch."""


def missing_attribute(module: str, name: str) -> AttributeError:
    """Return the error of a name that a module, or a class such as torch.Tensor, has not."""
    path = f"{module}.{name}"
    if pytorch.is_public(module, name) or pytorch.is_module(path):
        return MissingAttributeError(explain(path), name=name)
    if use := scope.of_others(path):
        return MissingAttributeError(f"{module} has no attribute {name!r}; {use}", name=name)
    if meant := _meant(module, name):
        return MissingAttributeError(f"{module} has no attribute {name!r}{meant}", name=name)
    if scope.reason(path):
        return MissingAttributeError(explain(path), name=name)
    if name.startswith("_"):
        return MissingAttributeError(_private(path), name=name)
    return MissingAttributeError(f"{module} has no attribute {name!r}{_where(module)}", name=name)


def _where(module: str) -> str:
    """Say of which library it is known that it has no such name: not all of PyTorch is listed."""
    listed = module in pytorch.public()
    return f", neither in convcore nor in PyTorch {pytorch.VERSION}" if listed else " in convcore"


def not_usable(path: str) -> NotUsableError:
    """Return the error of a stand-in that is called."""
    return NotUsableError(explain(path))


@functools.lru_cache(1024)  # programs ask again and again whether a name is there
def nearest_in(module: str, name: str) -> str:
    """Return the name that was meant: the same in a module of this one, or one that is near."""
    owner = sys.modules[module]
    for submodule, inner in vars(owner).items():  # functional.relu for nn.relu
        is_own = isinstance(inner, ModuleType) and inner.__name__ == f"{module}.{submodule}"
        if is_own and name in getattr(inner, "__all__", ()):
            return f"{submodule}.{name}"
    if module == "convcore" and hasattr(owner.Tensor, f"{name}_"):
        return f"Tensor.{name}_"  # Tensor.uniform_ for torch.uniform, which there is not
    public = [one for one in dir(owner) if not one.startswith("_")]
    listed = getattr(owner, "__all__", public)  # the others are modules that it was made of
    return nearest(
        name, [n for n in public if n in listed or type(vars(owner).get(n)) is not ModuleType]
    )


def _meant(module: str, name: str) -> str:
    """Return a question that names what was meant by a misspelt name; '' if nothing is near.

    Private names are no slips of the fingers.
    """
    known = module in sys.modules and name[:1] != "_"
    meant = nearest_in(module, name) if known else ""
    return f": did you mean {meant!r}?" if meant else ""


def explanation(module: str, name: str) -> str:
    """Say why convcore has not this name of PyTorch's, or what another library's is; else ''."""
    path = f"{module}.{name}"
    known = pytorch.is_public(module, name) or pytorch.is_module(path)
    known = known or path in pytorch.public()["private"]
    return scope.of_others(path) or (explain(path) if known else "")


def out_of_scope(path: str) -> str:
    """Say why convcore has nothing of this kind, be the name PyTorch's or not; else ''."""
    return explain(path) if scope.reason(path) else ""


def missing_module(path: str) -> ModuleNotFoundError:
    """Return the error of a module, or of a name that is imported as if it were one."""
    # Without `name=path`, for which importlib would replace the text by "cannot import name".
    module, _, name = path.rpartition(".")
    if pytorch.is_module(path) or pytorch.is_public(module, name):
        return MissingModuleError(explain(path), name=module)
    if use := scope.of_others(path):
        return MissingModuleError(f"there is no {path}; {use}", name=module)
    if meant := _meant(module, name):
        return MissingModuleError(f"there is no {path}{meant}", name=module)
    if scope.reason(path):
        return MissingModuleError(explain(path), name=module)
    if "._" in path:
        return MissingModuleError(_private(path), name=module)
    return MissingModuleError(f"there is no {path}{_where(module)}", name=module)


def _private(path: str) -> str:
    """Say what is known of a private name: the lists hold PyTorch's public ones."""
    return (
        f"convcore has no {path}: of PyTorch's private names it has those that packages are known "
        "to use"
    )


def explain(path: str) -> str:
    """Say in a sentence why convcore has no such name."""
    why = scope.reason(path)
    if why:
        return f"{path} is out of scope for convcore: {why}"
    use = scope.instead(path)
    return (
        f"{path} is missing: PyTorch has it, and convcore does not have it yet"
        f"{f'; use {use}' if use else ''}"
    )
