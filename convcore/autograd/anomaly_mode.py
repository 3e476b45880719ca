"""Anomaly detection: find the operation whose backward raises or returns NaN.

While it is on, nodes store the traceback of their operation, and gradients are checked.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Anomaly:
    """The switch: of the whole process, as in PyTorch."""

    __slots__ = ("check_nan", "enabled")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


anomaly = _Anomaly()


class set_detect_anomaly:
    """Switch anomaly detection on or off, from the call on; as a context manager, until its end.

    While it is on, operations store their traceback.  A backward pass in which an operation raises,
    or returns NaN, warns with the traceback of the forward call.

    Parameters
    ----------
    mode : bool
    check_nan : bool
        Raise RuntimeError if a backward function returns NaN.

    Examples
    --------
    >>> import convcore
    >>> x = convcore.zeros(1, requires_grad=True)
    >>> with set_detect_anomaly(True, check_nan=False):
    ...     (x.sqrt() * 0).backward()
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = anomaly.enabled, anomaly.check_nan
        anomaly.enabled, anomaly.check_nan = bool(mode), bool(check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: Any) -> None:
        anomaly.enabled, anomaly.check_nan = self._before


class detect_anomaly:
    """Switch anomaly detection on, as a context manager; see `set_detect_anomaly`.

    Parameters
    ----------
    check_nan : bool
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._inside = set_detect_anomaly(True, self.check_nan)

    def __exit__(self, *exception: Any) -> None:
        self._inside.__exit__()


_PACKAGE = str(Path(__file__).parents[1])


def where_made() -> dict[str, Any]:
    """Return the metadata of a new node: the traceback down to the user's innermost call."""
    stack = traceback.extract_stack()
    while stack and stack[-1].filename.startswith(_PACKAGE):
        stack.pop()
    return {"traceback_": traceback.format_list(stack)}


def watched(run: Callable, node: Any, grads: list, needs: tuple[bool, ...]) -> Sequence:
    """Return ``run(node, grads, needs)``; warn with the node's traceback if it raises or gives NaN.

    Raises
    ------
    RuntimeError
        A gradient that it returns has NaN.
    """
    try:
        results = run(node, grads, needs)
        for number, grad in enumerate(results if anomaly.check_nan else ()):
            if grad is not None and np.isnan(grad._array).any():
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {number}th output."
                )
    except Exception:
        _warn_of(node)
        raise
    return results


def _warn_of(node: Any) -> None:
    lines = node.metadata.get("traceback_")
    text = (
        "No forward pass information available. Enable detect anomaly during forward pass for more "
        "information."
        if lines is None
        else "Traceback of forward call that caused the error:\n" + "".join(lines)
    )
    warnings.warn(f"Error detected in {node.name()}. {text}", stacklevel=3)
