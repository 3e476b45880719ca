"""Switches of PyTorch's that can be set and read; most change nothing here."""

from __future__ import annotations

from convcore import (
    are_deterministic_algorithms_enabled,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    use_deterministic_algorithms,
)
from convcore.autograd import anomaly_mode as _anomaly_mode

has_lapack = has_openmp = has_spectral = True
has_mkl = has_cuda = False
_DEBUG_MODES = ("default", "warn", "error")
_warn_always = False


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2 for what `use_deterministic_algorithms` asked for: none, warn, or error."""
    if not are_deterministic_algorithms_enabled():
        return 0
    return 1 if is_deterministic_algorithms_warn_only_enabled() else 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Call `use_deterministic_algorithms` for 'default', 'warn' or 'error', or for 0, 1 or 2."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    modes = _DEBUG_MODES if isinstance(debug_mode, str) else (0, 1, 2)
    if debug_mode not in modes:
        expected = "one of `default`, `warn`, `error`" if modes is _DEBUG_MODES else "0, 1, or 2"
        raise RuntimeError(
            f"invalid value of debug_mode, expected {expected}, but got {debug_mode}"
        )
    use_deterministic_algorithms(
        debug_mode not in (0, "default"), warn_only=debug_mode in (1, "warn")
    )


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on."""
    return _anomaly_mode.anomaly.enabled


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection on or off."""
    _anomaly_mode.set_detect_anomaly(mode, check_nan)


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` set."""
    return _warn_always


def set_warn_always(mode: bool) -> None:
    """Store the switch; Python's warning filters decide how often a warning shows."""
    global _warn_always
    _warn_always = bool(mode)


def set_flush_denormal(mode: bool) -> bool:
    """Return False: the processor's mode is left alone."""
    return False


def get_num_interop_threads() -> int:
    """Return the number of threads: there is one pool."""
    return get_num_threads()


def set_num_interop_threads(num_threads: int) -> None:
    """Do nothing: there is one pool; see `set_num_threads`."""
    if not 0 < num_threads < 2**31:
        raise RuntimeError("Expected positive number of threads")
