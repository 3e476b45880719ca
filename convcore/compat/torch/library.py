"""Registration of operators, kept and not used: a package that brings its own can be imported."""

from __future__ import annotations

from typing import Any


class Library:
    """A namespace of operators, whose definitions are accepted and ignored."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns = ns

    def define(self, schema: str, *args: Any, **kwargs: Any) -> str:
        """Return the operator's name."""
        return f"{self.ns}::{schema.partition('(')[0]}"

    def impl(self, *args: Any, **kwargs: Any) -> None:
        """Ignore an implementation."""

    fallback = impl


def _decorator(*args: Any, **kwargs: Any) -> Any:
    """Return the last function given, or a decorator that returns what it decorates."""
    functions = [value for value in args if callable(value)]
    return functions[-1] if functions else lambda function: function


def custom_op(name: str, fn: Any = None, /, **kwargs: Any) -> Any:
    """Return the Python function as it is, with the registrations that its decorator offers."""

    def decorate(function: Any) -> Any:
        for registration in ("register_fake", "register_kernel", "register_vmap"):
            setattr(function, registration, _decorator)
        function.register_autograd = lambda *_, **__: None
        return function

    return decorate if fn is None else decorate(fn)


register_fake = impl_abstract = register_kernel = register_vmap = impl = _decorator
register_torch_dispatch = triton_op = _decorator


def define(*args: Any, **kwargs: Any) -> Any:
    """Ignore a definition."""
    return _decorator(*(value for value in args if callable(value)))


def register_autograd(*args: Any, **kwargs: Any) -> None:
    """Ignore a derivative."""
