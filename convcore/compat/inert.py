"""Stand-ins for names of PyTorch that programs import, inherit from or ask about, and do not use.

A stand-in can be named, imported, inherited from, used in annotations and isinstance().  Calling it
raises `NotUsableError`, which says what it is and why convcore has it not.
"""

from __future__ import annotations

from typing import Any

from convcore.compat import errors

# Modules that exist only so far: every name in them, and every module below them, is a stand-in.
MODULES = (
    *("torch._C", "torch._dynamo", "torch._inductor", "torch._export", "torch._functorch"),
    *("torch._higher_order_ops", "torch._subclasses", "torch._ops", "torch._prims"),
    *("torch._prims_common", "torch._refs", "torch._decomp", "torch._library", "torch._logging"),
    *("torch._guards", "torch._lowrank", "torch._vmap_internals", "torch._custom_op"),
    *("torch._weights_only_unpickler", "torch._namedtensor_internals", "torch._appdirs"),
    *("torch.ao", "torch.quantization", "torch.nn.quantized", "torch.nn.intrinsic", "torch.nn.qat"),
    *("torch.compiler", "torch.distributed", "torch.export", "torch.fx", "torch.jit"),
    *("torch.library", "torch.onnx", "torch.profiler", "torch.sparse", "torch.mps", "torch.xpu"),
    *("torch.mtia", "torch.monitor", "torch.nested", "torch.package", "torch.masked"),
    *("torch.autograd.profiler", "torch.utils.cpp_extension", "torch.utils.bottleneck"),
    *("torch.utils.mobile_optimizer", "torch.utils._sympy", "torch.utils.data.datapipes"),
    *("torch.utils.data.graph", "torch.utils._triton", "torch.cuda"),
    *("torch.testing._internal",),
)


def is_inert(path: str) -> bool:
    """Return whether a module is one of the stand-ins, or below one."""
    return any(path == name or path.startswith(f"{name}.") for name in MODULES)


class Inert(type):
    """The class of stand-ins, which are classes so that programs can inherit from them."""

    _path: str

    def __getattr__(cls, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        value = stand_in(f"{cls._path}.{name}")
        setattr(cls, name, value)
        return value

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Raise `NotUsableError`; a program's own class, which inherits from one, makes objects."""
        if "_path" not in vars(cls):
            return super().__call__(*args, **kwargs)
        raise errors.NotUsableError(errors.explain(cls._path))

    def __getitem__(cls, item: Any) -> Any:
        """Return the class: stand-ins may have parameters in annotations."""
        return cls

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __repr__(cls) -> str:
        return f"<stand-in for {cls._path}>"


def stand_in(path: str) -> Inert:
    """Return a stand-in for a name such as 'torch.fx.Graph'."""
    module, _, name = path.rpartition(".")
    return Inert(name, (), {"_path": path, "__module__": module})
