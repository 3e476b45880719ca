"""tensorboardX's writer of files for TensorBoard, which takes tensors."""

from __future__ import annotations

import functools
import warnings
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


class SummaryWriter(tensorboardX.SummaryWriter):
    """tensorboardX's writer of files for TensorBoard; it takes tensors, and writes no graphs."""

    @property
    def log_dir(self) -> str:
        """The folder that is written into."""
        return self.logdir

    def get_logdir(self) -> str:
        """Return the folder that is written into."""
        return self.logdir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Write a number; the last two arguments, a format of files, are ignored."""
        super().add_scalar(tag, _with_arrays(scalar_value), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Write settings and what they led to; the settings' domains are ignored."""
        given = _with_arrays((hparam_dict, metric_dict))
        super().add_hparams(*given, name=run_name, global_step=global_step)

    def add_tensor(self, *args: Any, **kwargs: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError("tensors are not written: add_histogram or convcore.save do so")

    def add_graph(self, *args: Any, **kwargs: Any) -> None:
        """Warn that no graph is written: the training that calls it goes on."""
        warnings.warn(
            "add_graph() writes nothing: convcore.inspection.report and pictures.graph draw a net",
            stacklevel=2,
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
