"""What `load` may call beyond tensors: functions and classes that the user trusts."""

from __future__ import annotations

import _compat_pickle
from collections.abc import Iterable
from typing import Any

from convcore._errors.text import printable
from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.restoring import Calls
from convcore.serialization.errors import CheckpointError

# Never read as data, even if the user allows something of them.
_BLOCKED = ("sys", "os", "posix", "nt")

_allowed: dict[str, Any] = {}  # what was given, by the name that it has in files


def _name_and_value(given: Any) -> tuple[str, Any]:
    if not isinstance(given, tuple):
        return f"{given.__module__}.{given.__qualname__}", given
    if len(given) != 2 or not isinstance(given[1], str):
        raise ValueError(
            f"expected a function or class, or a tuple of one and its name in files, got {given!r}"
        )
    return given[1], given[0]


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow `load` to call functions and classes in files, which must be harmless.

    Parameters
    ----------
    safe_globals : list
        Functions and classes; or tuples of one and the full name that it has in files.
    """
    _allowed.update([_name_and_value(given) for given in safe_globals])


def get_safe_globals() -> list[Any]:
    """Return the functions and classes that were added."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Forget the functions and classes that were added."""
    _allowed.clear()


class safe_globals(Restoring):
    """A context in which `load` may call functions and classes; see `add_safe_globals`."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.safe_globals = dict(_name_and_value(given) for given in safe_globals)

    def _back(self) -> Calls:
        return ((_allowed.clear, ()), (_allowed.update, (dict(_allowed),)))

    def _enter(self) -> None:
        _allowed.update(self.safe_globals)


def modern(module: str, name: str) -> tuple[str, str]:
    """Return Python 3's name of something; pickles of protocol 2 have Python 2's."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def is_allowed(module: str, name: str) -> bool:
    """Return whether the user has allowed a name."""
    return f"{module}.{name}" in _allowed


# What PyTorch rebuilds that convcore has not, and what to do about it in PyTorch.
_NOT_READ = {
    "_rebuild_sparse_tensor": "a sparse tensor: save its to_dense()",
    "_rebuild_sparse_csr_tensor": "a sparse tensor: save its to_dense()",
    "_rebuild_qtensor": "a quantized tensor: save its dequantize()",
    "_rebuild_nested_tensor": "a nested tensor: save the list of its unbind()",
    "_rebuild_meta_tensor_no_storage": "a tensor on the device 'meta', which has no values",
    "_rebuild_wrapper_subclass": "a tensor of a class of its own: save a plain tensor",
    "_rebuild_device_tensor_from_numpy": "a tensor of another device: save its cpu()",
    "_rebuild_device_tensor_from_cpu_tensor": "a tensor of another device: save its cpu()",
}
_TYPES = ("float8", "float4", "complex32", "qint", "quint", "uint", "int", "bits")


def unread(module: str, name: str) -> str:
    """Say what convcore never reads, trusted or not, if a name tells that it is there; else ''."""
    if module == "torch._utils" and name in _NOT_READ:
        return f"it holds {_NOT_READ[name]}"
    if module == "torch" and name.startswith(_TYPES):
        shown = printable(name)
        return f"it holds tensors of torch.{shown}, which are not read: cast them in PyTorch first"
    return ""


_AS_WEIGHTS = (
    "in PyTorch, torch.save({}.state_dict(), 'weights.pt') keeps its weights alone, which are read"
)
_OF_NET = _AS_WEIGHTS.format("torch.load(file, weights_only=False)")
SCRIPTED = (
    "it is a TorchScript archive, a program, which convcore does not read: "
    f"{_AS_WEIGHTS.format('torch.jit.load(file)')}"
)


def _advice(module: str, name: str) -> str:
    """Return a sentence about the code that a name says is in the file."""
    path = printable(f"{module}.{name}")
    if module.startswith("torch.nn."):
        return f"It holds a whole module, {path}, which is code: {_OF_NET}."
    if module.startswith("torch.optim."):
        return f"It holds a whole {path}, which is code: save its state_dict()."
    return "" if module == "builtins" else f"If it is of a whole module: {_OF_NET}."


def found(module: str, name: str) -> Any:
    """Return what the user has allowed under a name in a file, or raise CheckpointError."""
    path = f"{module}.{name}"
    if module in _BLOCKED:
        raise CheckpointError(
            f"Weights only load failed. Trying to load unsupported GLOBAL {path} whose module "
            f"{module} is blocked."
        )
    for known in (path, f"convcore{path[5:]}" if path.startswith("torch.") else path):
        if known in _allowed:
            return _allowed[known]
    if why := unread(module, name):
        raise CheckpointError(why)
    path = printable(path.removeprefix("builtins."))
    raise CheckpointError(
        "Weights only load failed. Only tensors, numbers, strings and containers of them are read. "
        f"WeightsUnpickler error: Unsupported global: GLOBAL {path} was not an allowed global by "
        f"default. Please use `torch.serialization.add_safe_globals([{path}])` or the "
        f"`torch.serialization.safe_globals([{path}])` context manager to allowlist this global if "
        "you trust this class/function, or weights_only=False, which runs any code in the file, if "
        f"you trust whoever wrote it. {_advice(module, name)}".rstrip()
    )
