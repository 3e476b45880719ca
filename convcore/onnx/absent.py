"""What `convcore.onnx` has where the package onnx is missing: calls say what to install."""

from __future__ import annotations

from typing import Any, NoReturn


def cut(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ModuleNotFoundError: nets of models are loaded with the package onnx."""
    raise _needed("cut")


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ModuleNotFoundError: nets are exported with the package onnx."""
    raise _needed("export")


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ModuleNotFoundError: models are read with the package onnx."""
    raise _needed("load")


def save(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ModuleNotFoundError: models are written with the package onnx."""
    raise _needed("save")


def train_only(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise ModuleNotFoundError: nets of models are loaded with the package onnx."""
    raise _needed("train_only")


class _Absent:
    """A class without objects, for programs that name it in isinstance() and annotations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise _needed(type(self).__name__)


class Backend(_Absent):
    """Raises ModuleNotFoundError; with the package onnx, runs the standard's own tests."""


class Graph(_Absent):
    """Raises ModuleNotFoundError; with the package onnx, the net of a model."""


class ONNXProgram(_Absent):
    """Raises ModuleNotFoundError; with the package onnx, an exported net."""


def _needed(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"convcore.onnx.{name} needs the package 'onnx': pip install 'convcore[onnx]'", name="onnx"
    )
