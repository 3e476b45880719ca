"""DataParallel: the module itself, wrapped as PyTorch wraps it."""

from __future__ import annotations

from typing import Any

from convcore.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Call a module on the only device there is; threads divide the work inside each operation.

    Parameters
    ----------
    module : Module
        The submodule ``module``: keys of the state begin with "module.".
    device_ids, output_device, dim
        Ignored, as PyTorch ignores them without GPUs.
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module on the only device there is; see `DataParallel`."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
