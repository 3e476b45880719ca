"""autocast: a context in which products are computed in bfloat16 or float16, and losses in float32.

Outside of it nothing is asked: the listed functions have other code while a context is open
(`convcore.amp._casts`).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from convcore._errors.calls import KeywordHints
from convcore._tensor import dtypes
from convcore._tensor.device import device
from convcore.amp import _casts
from convcore.autograd.casting import Casting, exchange, here
from convcore.autograd.grad_mode import Uncalled
from convcore.functions.elementwise.casts import cast

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

_LOWER = (dtypes.bfloat16, dtypes.float16)
_UNSUPPORTED = (
    "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
    "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
)


class autocast(KeywordHints, Casting, metaclass=Uncalled):
    """Mixed precision: a context, or decorator, in which functions choose their dtype.

    Convolutions, linear layers and matrix products cast float32 operands to the lower precision,
    and so give it; losses, 3-d pools and the functions of linear algebra cast theirs to float32;
    `cat` and `stack` take the widest of their operands'; all others compute in the dtype that they
    are given.  The lists are PyTorch's for the CPU.  Parameters stay float32, and so do their
    gradients.  Convolutions and linear layers in bfloat16 round them where they are multiplied, and
    do not round their gradients; elsewhere each is cast once within the outermost context, unless
    it changes.  float64, complex and integer tensors are left as they are, and so are calls with
    ``out=``.

    The state is the thread's own.  A backward pass belongs outside, as in PyTorch.

    Parameters
    ----------
    device_type : str
        'cpu'; other devices are accepted, and disabled with a warning, as in PyTorch.
    dtype : dtype, optional
        The lower precision: bfloat16, the default, or float16; others disable it with a warning.
    enabled : bool
        False within another context switches that off for a while.
    cache_enabled : bool, optional
        Whether casts of parameters are kept; by default as outside.

    Raises
    ------
    ValueError
        ``device_type`` is no string.
    RuntimeError
        It is no device's name.

    Examples
    --------
    >>> import convcore
    >>> layer = convcore.nn.Linear(2, 3)
    >>> with autocast("cpu", dtype=convcore.bfloat16):
    ...     layer(convcore.ones(1, 2)).dtype
    torch.bfloat16
    >>> layer.weight.dtype
    torch.float32
    """

    _usual = '"cpu"'

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        _check_type(device_type)
        device_type = device(device_type).type
        if enabled and device_type != "cpu":
            warnings.warn(
                f"User provided device_type of '{device_type}', but {device_type.upper()} is not "
                "available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if dtype is None:
            dtype = get_autocast_dtype(device_type)
        if enabled and dtype not in _LOWER:
            warnings.warn(_UNSUPPORTED, stacklevel=2)
            enabled = False
        self.device, self.fast_dtype, self._enabled = device_type, dtype, bool(enabled)
        self._cache_enabled = cache_enabled
        super().__init__({})
        if enabled:
            _casts.prepare()

    def _enter(self) -> autocast:
        caching = here.caching if self._cache_enabled is None else bool(self._cache_enabled)
        self._wanted = {
            "enabled": self._enabled if self.device == "cpu" else here.enabled,
            "dtypes": {**here.dtypes, self.device: self.fast_dtype},
            "caching": caching,
        }
        super()._enter()
        return self

    def __call__(self, function: Callable) -> Callable:
        """Return a function that runs within the context."""

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return function(*args, **kwargs)

        return inside


def is_autocast_available(device_type: str) -> bool:
    """Return whether a device has autocast: the CPU has."""
    return device(device_type).type == "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is on for a device, in this thread."""
    return _type_of("is_autocast_enabled", device_type) == "cpu" and here.enabled


def _type_of(function: str, device_type: Any) -> str:
    """Return the type of device that a text names."""
    if not isinstance(device_type, str):
        raise TypeError(
            f"{function}(): argument 'device_type' (position 1) must be str, not "
            f"{type(device_type).__name__}"
        )
    return device(device_type).type


def is_autocast_cpu_enabled() -> bool:
    """Return whether autocast is on for the CPU, in this thread."""
    return here.enabled


def get_autocast_dtype(device_type: str) -> Any:
    """Return the lower precision of a device: what `autocast` asks for, or its default."""
    return here.dtypes.get(_type_of("get_autocast_dtype", device_type), dtypes.bfloat16)


def get_autocast_gpu_dtype() -> Any:
    """Return float16, or what `autocast` asks for."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """Return bfloat16, or what `autocast` asks for."""
    return get_autocast_dtype("cpu")


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Switch autocast of the CPU on or off in this thread, without a context.

    Raises
    ------
    RuntimeError
        It is to be on for a device that is not there.
    """
    if device(device_type).type != "cpu":
        if enabled:
            raise RuntimeError(f"autocast is not available for {device_type!r}, only for 'cpu'")
        return
    if enabled:
        _casts.prepare()
        exchange.hold(here.token)
        here.cache = {} if here.cache is None else here.cache
    here.enabled = bool(enabled)
    if not enabled:
        exchange.give_back(here.token)
        here.cache = here.cache if here.nesting else None


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the lower precision of a device in this thread."""
    here.dtypes = {**here.dtypes, device(device_type).type: dtype}


def is_autocast_cache_enabled() -> bool:
    """Return whether casts of parameters are kept within the outermost context."""
    return here.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether casts of parameters are kept within the outermost context."""
    here.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of parameters, as the end of the outermost context does."""
    if here.cache is not None:
        here.cache.clear()


def autocast_increment_nesting() -> int:
    """Count one more context, and return how many there are."""
    here.nesting += 1
    return here.nesting


def autocast_decrement_nesting() -> int:
    """Count one context less, and return how many there are."""
    here.nesting -= 1
    return here.nesting


# Functions of one's own


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable:
    """Decorate the ``forward`` of an `autograd.Function` for autocast.

    Parameters
    ----------
    device_type : str
    cast_inputs : dtype, optional
        What floating-point tensors are cast to where autocast is on; ``forward`` then runs without
        it.  By default ``forward`` runs as it is called.

    Raises
    ------
    ValueError
        ``device_type`` is no string.
    """
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(function)
    def forward(*args: Any, **kwargs: Any) -> Any:
        context, on = args[0], is_autocast_enabled(device_type)
        context._dtype = get_autocast_dtype(device_type)
        context._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return function(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return function(*_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return forward


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorate the ``backward`` of an `autograd.Function`: it runs as its ``forward`` did.

    Raises
    ------
    ValueError
        ``device_type`` is no string.
    """
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def backward(*args: Any, **kwargs: Any) -> Any:
        context = args[0]
        with autocast(device_type, context._dtype, context._fwd_used_autocast):
            return function(*args, **kwargs)

    return backward


def _check_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def _cast(value: Any, dtype: Any) -> Any:
    """Return what `cast` does, of tensors in dictionaries too."""
    if isinstance(value, dict):
        return {name: _cast(item, dtype) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_cast(item, dtype) for item in value])
    return cast(value, dtype)
