"""Print convcore/_errors/pytorch_names.txt: PyTorch's public names, by module.

    python tests/helpers/list_torch_names.py > convcore/_errors/pytorch_names.txt

Needs PyTorch, of the version in convcore/_errors/pytorch.py.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import types
from pathlib import Path
from typing import Any, TypeVar

# Without it PyTorch has a stand-in of its own, which is in the list.
sys.modules["tqdm"] = None  # type: ignore[assignment]

import torch  # noqa: E402

from convcore.compat.inert import is_inert  # noqa: E402

# Whose names count: modules that programs about nets import.
MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.parameter"),
    *("torch.nn.utils", "torch.nn.utils.rnn", "torch.nn.utils.prune"),
    *("torch.nn.utils.parametrize", "torch.nn.utils.parametrizations", "torch.nn.utils.stateless"),
    *("torch.nn.utils.fusion", "torch.nn.parallel", "torch.nn.attention", "torch.optim"),
    *("torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils", "torch.utils.data"),
    *("torch.utils.data.distributed", "torch.utils.checkpoint", "torch.utils.hooks"),
    *("torch.utils.model_zoo", "torch.autograd", "torch.autograd.functional"),
    *("torch.autograd.graph", "torch.autograd.forward_ad", "torch.autograd.profiler"),
    *("torch.linalg", "torch.special", "torch.fft", "torch.distributions", "torch.func"),
    *("torch.amp", "torch.cuda", "torch.cuda.amp", "torch.backends", "torch.backends.cudnn"),
    *("torch.random", "torch.testing", "torch.hub", "torch.serialization"),
    *("torch.multiprocessing", "torch.futures", "torch.jit", "torch.fx", "torch.onnx"),
    *("torch.compiler", "torch.distributed", "torch.library", "torch.overrides", "torch.profiler"),
    *("torch.sparse", "torch.accelerator", "torch.types", "torch.storage", "torch.signal.windows"),
)
FOREIGN = {"typing", "collections", "functools", "itertools", "enum", "abc", "contextlib"}
FOREIGN |= {"warnings", "math", "inspect", "typing_extensions", "dataclasses", "copy", "os"}
FOREIGN |= {"torch._C"}  # the classes of TorchScript's compiler, which torch does not list


def public_names(owner: Any) -> list[str]:
    """Return the names of a module, or of a class, that are its own and public."""
    found = [name for name in dir(owner) if name[0] != "_" and is_own(owner, name)]
    listed = [name for name in getattr(owner, "__all__", ()) if hasattr(owner, name)]
    return sorted({*listed, *(n for n in found if is_made_there(owner, n))} if listed else found)


def is_made_there(owner: Any, name: str) -> bool:
    """Return whether a name that ``__all__`` lacks, such as torch.solve, is more than an import."""
    value = getattr(owner, name)
    if isinstance(value, types.ModuleType | str):
        return True
    home = str(getattr(value, "__module__", None) or type(value).__module__)
    inside = f"{home}.".startswith(f"{owner.__name__}.")
    from_private = home.startswith("torch.") and "._" in home
    return (inside or from_private) and not isinstance(value, TypeVar)


def is_own(owner: Any, name: str) -> bool:
    """Return whether a name is neither the standard library's nor an import of another module."""
    value = getattr(owner, name)
    if isinstance(value, types.ModuleType):
        return value.__name__.startswith(f"{owner.__name__}.")
    home = str(getattr(value, "__module__", ""))
    of_another = isinstance(value, type | types.FunctionType) and not home.startswith("torch")
    return not (of_another or {home, home.split(".")[0]} & FOREIGN or name == "TYPE_CHECKING")


def modules_in(package: str) -> list[str]:
    """Return the names of the public modules of a package, imported or not."""
    paths = getattr(importlib.import_module(package), "__path__", ())
    return [module.name for module in pkgutil.iter_modules(paths) if module.name[0] != "_"]


def module_paths() -> list[str]:
    """Return the dotted paths of the public modules, read off the files."""
    root = Path(inspect.getfile(torch)).parent
    files = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
    parts = (path.parts[:-1] if path.name == "__init__" else path.parts for path in files)
    skipped = {"testing", "share", "include", "bin", "test", "hipify"}
    public = [p for p in parts if not any(x[0] == "_" or x in skipped for x in p[1:])]
    paths = sorted(".".join(p) for p in public)
    return [path for path in paths if not is_inert(path.rpartition(".")[0])]


def private_modules() -> list[str]:
    """Return PyTorch's private modules and packages right inside torch."""
    root = Path(inspect.getfile(torch)).parent
    found = [*root.glob("_*.py"), *(path.parent for path in root.glob("_*/__init__.py"))]
    return sorted({f"torch.{path.stem}" for path in found} - {"torch.__init__"} | {"torch._C"})


def main() -> None:
    """Print a line a module: its path, then its names."""
    print(f"# PyTorch {torch.__version__.partition('+')[0]}; see tests/helpers/list_torch_names.py")
    print("modules", *module_paths(), "torch.testing")
    print("private", *private_modules())
    print("torch.Tensor", *public_names(torch.Tensor))
    for path in MODULES:
        found = public_names(importlib.import_module(path))
        print(path, *sorted({*found, *(modules_in(path) if is_inert(path) else ())}))


if __name__ == "__main__":
    main()
