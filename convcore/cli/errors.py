"""Errors for the user: one sentence without a traceback, and exit code 2."""

from __future__ import annotations

import importlib.util


class UsageError(Exception):
    """A command that cannot be run as given; the message tells the user why."""


def require_extra(extra: str, *modules: str) -> None:
    """Raise a `UsageError` that names the extra to install if any of the modules is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"{' and '.join(missing)} {verb} not installed; get what this command needs with: "
            f"pip install 'convcore[{extra}]'"
        )
