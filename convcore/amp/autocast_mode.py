"""autocast: the context in which PyTorch computes in a narrower dtype."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any

from convcore import _dtype

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
]

_DEFAULTS = {"cpu": _dtype.bfloat16, "cuda": _dtype.float16}
# Device type -> (enabled, dtype), in this thread or task.
# Whether a device has autocast, and in which dtype.
_State = dict[str, tuple[bool, Any]]
_state: ContextVar[_State] = ContextVar("autocast", default={})  # noqa: B039
_warned = False


def _of(device_type: str) -> tuple[bool, Any]:
    return _state.get().get(device_type, (False, _DEFAULTS.get(device_type, _dtype.bfloat16)))


class autocast:
    """A context, or decorator, that asks for a narrower dtype; tensors keep theirs.

    Results are those of float32: more exact than PyTorch's, and as fast as without autocast.  The
    first use with ``device_type='cpu'`` warns.

    Parameters
    ----------
    device_type : str
        'cpu'; other devices are accepted, and disabled with a warning, as in PyTorch.
    dtype : dtype, optional
        What `get_autocast_dtype` gives inside; bfloat16 by default.
    enabled, cache_enabled : bool
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if enabled and device_type != "cpu":
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not "
                "available. Disabling",
                stacklevel=2,
            )
            enabled = False
        self.device = device_type
        self.fast_dtype = dtype if dtype is not None else _of(device_type)[1]
        self._enabled = enabled
        # Per entry, for it may be entered again within itself.
        self._entered: list[tuple[Token[_State], tuple[bool, Any], _State]] = []

    def __enter__(self) -> autocast:
        global _warned
        if self._enabled and not _warned:
            _warned = True
            warnings.warn(
                "autocast changes nothing: convcore computes in the dtype of the tensors",
                stacklevel=2,
            )
        before, outside = _of(self.device), _state.get()
        try:
            token = _state.set({**outside, self.device: (self._enabled, self.fast_dtype)})
            self._entered.append((token, before, outside))
        except MemoryError:
            self._put_back(before, outside)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        token, before, outside = self._entered.pop()
        try:
            _state.reset(token)
        except MemoryError:  # a context's variable cannot be set without memory
            self._put_back(before, outside)

    def _put_back(self, before: tuple[bool, Any], outside: _State) -> None:
        """Undo `__enter__` in the state in force, where the variable may have been set or not."""
        state = _state.get()
        if state is not outside:
            state[self.device] = before

    def __call__(self, function: Callable) -> Callable:
        """Return a function that runs within the context."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled):
                return function(*args, **kwargs)

        return inside


def is_autocast_available(device_type: str) -> bool:
    """Return whether a device has autocast; it changes nothing here."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether an enabled `autocast` of a device is entered."""
    return _of(device_type)[0]


def is_autocast_cpu_enabled() -> bool:
    """Return whether an enabled `autocast` of the CPU is entered."""
    return is_autocast_enabled("cpu")


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype that `autocast` of a device asks for."""
    return _of(device_type)[1]


def get_autocast_gpu_dtype() -> Any:
    """Return float16, or what `autocast` asks for."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """Return bfloat16, or what `autocast` asks for."""
    return get_autocast_dtype("cpu")


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Set what `is_autocast_enabled` gives."""
    _state.set({**_state.get(), device_type: (enabled, _of(device_type)[1])})


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set what `get_autocast_dtype` gives."""
    _state.set({**_state.get(), device_type: (_of(device_type)[0], dtype)})


def is_autocast_cache_enabled() -> bool:
    """Return True; there is nothing to cache."""
    return True


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Do nothing: there is no cache of weights in another dtype."""


def clear_autocast_cache() -> None:
    """Do nothing: there is no cache of weights in another dtype."""


def autocast_increment_nesting() -> int:
    """Return 1."""
    return 1


def autocast_decrement_nesting() -> int:
    """Return 0."""
    return 0


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str = "cpu", cast_inputs: Any = None
) -> Callable:
    """Return the ``forward`` of an `autograd.Function` as it is."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd: Callable | None = None, *, device_type: str = "cpu") -> Callable:
    """Return the ``backward`` of an `autograd.Function` as it is."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd
