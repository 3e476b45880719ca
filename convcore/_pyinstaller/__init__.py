"""Where PyInstaller finds the hook that collects this package."""

from __future__ import annotations

import os


def get_hook_dirs() -> list[str]:
    """Return the folder of the hook, for PyInstaller's entry point ``hook-dirs``."""
    return [os.path.dirname(__file__)]
