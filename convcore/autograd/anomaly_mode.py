"""Anomaly detection: find the operation whose backward raises or returns NaN.

While it is on, nodes store the traceback of their operation, and gradients are checked.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from convcore.engine.runtime._restoring import Restoring

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class _Anomaly:
    """The switch: of the whole process, as in PyTorch."""

    __slots__ = ("check_nan", "enabled")

    def __init__(self) -> None:
        self.enabled = False
        self.check_nan = True


anomaly = _Anomaly()


def anomaly_settings() -> tuple:
    """Return the calls that set the switch as it is."""
    return tuple(
        (anomaly.__setattr__, (name, getattr(anomaly, name))) for name in _Anomaly.__slots__
    )


class set_detect_anomaly(Restoring):
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
        self._before = anomaly_settings()
        anomaly.enabled, anomaly.check_nan = bool(mode), bool(check_nan)

    def _back(self) -> tuple:
        return self._before

    def _enter(self) -> None:
        pass  # it is on since the call


class detect_anomaly(Restoring):
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

    def _back(self) -> tuple:
        return anomaly_settings()

    def _enter(self) -> None:
        anomaly.enabled, anomaly.check_nan = True, self.check_nan


_PACKAGE = str(Path(__file__).parents[1])


def where_made() -> dict[str, Any]:
    """Return the metadata of a new node: the traceback down to the user's innermost call."""
    stack = traceback.extract_stack()
    while stack and stack[-1].filename.startswith(_PACKAGE):
        stack.pop()
    return {"traceback_": traceback.format_list(stack)}


def watched(run: Callable, node: Any, grads: list, needs: tuple[bool, ...]) -> Sequence:
    """Return ``run(node, grads, needs)``; warn with the node's traceback if it raises or gives NaN.

    Not where the error itself says the line of the forward call.

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
    except Exception as error:
        if not getattr(error, "says_forward_line", False):
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
    try:
        warnings.warn(f"Error detected in {node.name()}. {text}", stacklevel=3)
    except Warning as warning:  # made an error by a filter: it must not hide the node's error
        print(warning, file=sys.stderr)
