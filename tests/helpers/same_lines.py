"""The same lines run on both libraries from one seed, and what came of them compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from against_torch import same
from torch_errors import errors

import convcore
from convcore._errors import without_hint


def state(module: Any) -> dict:
    """Return a module's state as a plain dictionary."""
    return dict(module.state_dict())


def told(library: Any, function: Callable) -> Any:
    """Return what a function of the library returns, or the kind and text of its error."""
    library.manual_seed(3)
    try:
        return function(library)
    except Exception as error:
        text = without_hint(error).replace("torch.", "").replace("convcore.", "")
        return type(error).__name__, text


def check(torch: Any, function: Callable, rtol: float = 1e-3) -> None:
    """Check that a function of the library returns the same in both; see `check_error`."""
    results = []
    for library in (convcore, torch):
        library.manual_seed(3)
        results.append(function(library))
    compare(*results, rtol)


def check_error(torch: Any, function: Callable) -> None:
    """Check that a function of the library raises the same error in both."""
    theirs = errors.of(torch, lambda: told(torch, function))
    assert isinstance(theirs, tuple)
    assert told(convcore, function) == theirs


def compare(ours: Any, theirs: Any, rtol: float) -> None:
    """Compare results: dictionaries, lists and tuples of tensors and of anything else."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), (ours, theirs)
        for a, b in zip(ours, theirs, strict=True):
            compare(a, b, rtol)
    elif hasattr(theirs, "detach"):
        same(ours, theirs, "values", rtol)
    else:
        assert ours == theirs
