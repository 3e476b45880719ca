"""Contexts that are decorators too."""

from contextlib import ContextDecorator as _DecoratorContextManager  # noqa: F401
