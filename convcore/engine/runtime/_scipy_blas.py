"""SciPy's BLAS without the rest of scipy.linalg, whose import is most of convcore's own.

``scipy.linalg.cython_blas`` is an extension that stands alone, but importing it runs the package's
``__init__`` first: 220 more modules, which no kernel needs (``python benchmarks/imports.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

import scipy

_NAME = "scipy.linalg.cython_blas"


@contextmanager
def blas_alone() -> Iterator[None]:
    """Let the extension be imported, in this block, without its package.

    Where it is not found as a file it is imported as ever.  After the block nothing tells that it
    was: it is loaded once a process, so that an import to come finds the same module, and makes it
    the package's attribute.
    """
    folders = [str(Path(folder, "linalg")) for folder in scipy.__path__]
    spec = None if "scipy.linalg" in sys.modules else PathFinder.find_spec(_NAME, folders)
    if spec is None or spec.loader is None:
        yield
        return
    sys.modules[_NAME] = module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield
    finally:
        sys.modules.pop(_NAME, None)
