"""Compiled modules that are older than the Python files beside them."""

from __future__ import annotations

from pathlib import Path


def stale_kernels(error: Exception) -> ImportError | None:
    """Return what to raise where kernels lack what the Python files beside them ask for."""
    text = str(error)
    asked = isinstance(error, ImportError) or text.startswith("module ") or "signature" in text
    if not asked or "convcore.kernels." not in text:
        return None
    folder = Path(__file__).parents[1] / "kernels"
    return ImportError(
        f"the compiled modules in {folder} were built from other sources than lie there now: run "
        "'python setup.py build_ext --inplace' in the source tree, or install convcore again"
    )
