"""Modules made without drawing their initial parameters."""

from __future__ import annotations

import inspect
from typing import Any

from convcore.nn.modules.module import Module
from convcore.random.generator import fork_rng

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args: Any, **kwargs: Any) -> Any:
    """Make a module whose parameters are to be overwritten, and draw no random numbers for it.

    Parameters
    ----------
    module_cls : a class of modules with an argument ``device``
    args, kwargs
        Its arguments.

    Raises
    ------
    RuntimeError
        It is no such class.

    Notes
    -----
    Here the parameters are set as always, and the random generator is put back to where it was.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with fork_rng():
        return module_cls(*args, **kwargs)
