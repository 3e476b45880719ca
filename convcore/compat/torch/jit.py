"""TorchScript's decorators: they return what they decorate, since there is no second language."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any
from typing import Final as Final

from convcore.nn import Module


class ScriptModule(Module):
    """A module in TorchScript: programs inherit from it, and ask whether a module is one."""


class TracerWarning(Warning):
    """What PyTorch's tracer warns with; nothing traces here."""


RecursiveScriptModule = TopLevelTracedModule = ScriptModule
_script_if_tracing = unused = export = interface = lambda function, *_, **__: function


def script(obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a module, function or class as it is."""
    return obj


script_if_tracing = script_method = _overload = _overload_method = script
freeze = optimize_for_inference = script


def trace(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a function or module as it is."""
    return func


trace_module = trace


def ignore(drop: bool = False, **kwargs: Any) -> Any:
    """Return the function, or a decorator that does."""
    return drop if callable(drop) else lambda function: function


def is_scripting() -> bool:
    """Return False."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value; the type is TorchScript's."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether a value is an instance of a class."""
    return builtins.isinstance(obj, target_type)


class Attribute:
    """A value and its type in TorchScript."""

    def __new__(cls, value: Any, type: Any) -> Any:
        """Return the value."""
        return value


def set_fusion_strategy(strategy: Any) -> None:
    """Do nothing: there is no fuser."""


# Contexts that change nothing.
fuser = optimized_execution = contextlib.nullcontext

__all__ = [
    *("Attribute", "Final", "ScriptModule", "TracerWarning", "annotate", "export", "freeze"),
    *("fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance"),
    *("optimize_for_inference", "optimized_execution", "script", "script_if_tracing"),
    *("script_method", "set_fusion_strategy", "trace", "trace_module", "unused"),
]
