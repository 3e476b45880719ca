"""How the library was built and runs, as text: what `torch.__config__` has."""

from __future__ import annotations

import numpy as np

from convcore import __version__, get_num_threads


def show() -> str:
    """Return the versions of convcore and NumPy."""
    return f"convcore built with:\n  - convcore {__version__}\n  - NumPy {np.__version__}\n"


def parallel_info() -> str:
    """Return the number of threads; `convcore info` says more."""
    return f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"
