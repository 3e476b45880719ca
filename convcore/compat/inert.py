"""Stand-ins for names of PyTorch that programs import, inherit from or ask about, and do not use.

A stand-in can be named, imported, inherited from, used in annotations and isinstance().  Calling it
raises `NotUsableError`, which says what it is and why convcore has it not.
"""

from __future__ import annotations

from typing import Any, NoReturn

from convcore._errors import missing, pytorch

# Modules that exist only so far: every name in them, and every module below them, is a stand-in.
# PyTorch's private ones are too.
MODULES = (
    *("torch.ao", "torch.quantization", "torch.nn.quantized", "torch.nn.intrinsic", "torch.nn.qat"),
    *("torch.compiler", "torch.distributed", "torch.export", "torch.fx", "torch.jit"),
    *(
        "torch.library",
        "torch.onnx",
        "torch.ops",
        "torch.profiler",
        "torch.sparse",
        "torch.mps",
        "torch.xpu",
    ),
    *("torch.mtia", "torch.monitor", "torch.nested", "torch.package", "torch.masked"),
    *("torch.autograd.profiler", "torch.autograd.profiler_util", "torch.autograd._functions"),
    *("torch.autograd.profiler_legacy", "torch.utils.cpp_extension", "torch.utils.bottleneck"),
    *("torch.utils.mobile_optimizer", "torch.utils._sympy", "torch.utils.data.datapipes"),
    *("torch.utils.data.graph", "torch.utils._triton", "torch.cuda", "torch.utils.flop_counter"),
    *("torch.testing._internal", "torch.nn.parallel.scatter_gather", "torch.fft"),
)


# Names out of scope that a package imports, and uses only where its user asks for them.
NAMES = frozenset(
    (
        *("torch.nn.EmbeddingBag", "torch.optim.Adamax"),
        *(f"torch.autograd.{name}" for name in ("_calculate_shape", "kineto_available")),
        *(f"torch.distributions.{name}" for name in ("Laplace", "LogisticNormal")),
        *(f"torch.distributions.{name}" for name in ("NegativeBinomial", "StudentT")),
    )
)

# Where a call sets a switch of PyTorch's own, and does nothing here.
_SWITCHES = ("torch._C.", "torch._dynamo.", "torch._inductor.", "torch._logging.")

# What a call returns that asks whether something is there, or is going on.
_ANSWERS = {
    **{"is_available": False, "is_initialized": False, "device_count": 0},
    **{"get_proxy_mode": None, "is_fake": False, "kineto_available": False},
}


def is_inert(path: str) -> bool:
    """Return whether a module is one of the stand-ins, or below one."""
    if ".".join(path.split(".")[:2]) in pytorch.public()["private"]:
        return True
    return any(path == name or path.startswith(f"{name}.") for name in MODULES)


def has_stand_in(path: str) -> bool:
    """Return whether packages may import a name that is out of scope."""
    return path in NAMES or (is_inert(path) and not pytorch.is_unknown(path))


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
        if cls._path.startswith(_SWITCHES):
            return stand_in(f"{cls._path}()")
        if cls.__name__ in _ANSWERS:
            return _ANSWERS[cls.__name__]
        raise missing.not_usable(cls._path)

    def refuse(cls) -> NoReturn:
        """Raise the error of a dtype's stand-in that is used."""
        raise missing.not_usable(cls._path)

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *error: object) -> None:
        pass

    def __getitem__(cls, item: Any) -> Any:
        """Return the class: stand-ins may have parameters in annotations."""
        return cls

    def __iter__(cls) -> NoReturn:
        """Raise `NotUsableError`: `__getitem__` alone would make Python iterate without end."""
        raise missing.not_usable(cls._path)

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __repr__(cls) -> str:
        return f"<stand-in for {cls._path}>"


def stand_in(path: str) -> Inert:
    """Return a stand-in for a name such as 'torch.fx.Graph'."""
    module, _, name = path.rpartition(".")
    return Inert(name, (), {"_path": path, "__module__": module, "__init__": _init(path)})


def _init(path: str) -> Any:
    """Return the `__init__` that a program's own class inherits: one with arguments wants more."""

    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            raise missing.NotUsableError(missing.explain(path))

    return __init__
