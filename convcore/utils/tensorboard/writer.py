"""tensorboardX's writer of files for TensorBoard, which takes tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from convcore._tensor import Tensor

try:
    import tensorboardX
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "convcore.utils.tensorboard needs the package 'tensorboardX': pip install tensorboardX",
        name=missing.name,
    ) from None

__all__ = ["SummaryWriter"]


class SummaryWriter(tensorboardX.SummaryWriter):
    """tensorboardX's writer of files for TensorBoard; it takes tensors, and writes no graphs."""

    def add_graph(self, *args: Any, **kwargs: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "graphs are not written: convcore.inspection.report and pictures.graph draw a net"
        )


def _taking_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that is given arrays where it is called with tensors."""

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        return method(*_with_arrays(args), **_with_arrays(kwargs))

    return called


def _with_arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: _with_arrays(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_with_arrays, value))
    return value


for _name in dir(tensorboardX.SummaryWriter):
    if _name.startswith("add_") and _name not in vars(SummaryWriter):
        setattr(SummaryWriter, _name, _taking_tensors(getattr(SummaryWriter, _name)))
