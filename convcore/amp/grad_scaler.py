"""GradScaler: losses are multiplied before backward, so that small gradients do not vanish.

With gradients of float32 nothing vanishes; programs that scale find the same steps here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from convcore._tensor import Tensor
from convcore.autograd.grad_mode import no_grad
from convcore.functions.elementwise.compare import isfinite

__all__ = ["GradScaler"]


class GradScaler:
    """Dynamic loss scaling (Micikevicius et al. 2018, "Mixed Precision Training").

    Parameters
    ----------
    device : str
        'cpu'; for another device the scaler is disabled with a warning, as in PyTorch.
    init_scale : float
        The first factor.
    growth_factor, backoff_factor : float
        The factor of the scale after ``growth_interval`` steps with finite gradients, and after one
        without.
    growth_interval : int
    enabled : bool
        Whether anything is scaled.

    Raises
    ------
    ValueError
        A factor is not on its side of 1.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        if enabled and device != "cpu":
            warnings.warn(
                f"GradScaler is enabled, but {device.upper()} is not available.  Disabling.",
                stacklevel=2,
            )
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise ValueError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise ValueError("The backoff factor must be < 1.0.")
        self._device, self._enabled = device, enabled
        self._scale, self._growth_tracker = float(init_scale), 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._is_used = False  # whether anything was scaled
        # The optimizers unscaled since `update`: whether all was finite, None without a gradient
        self._found: dict[Any, bool | None] = {}  # by optimizer
        self._stepped: set[Any] = set()

    def is_enabled(self) -> bool:
        """Return whether anything is scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the factor; 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or tensors in lists and tuples, times the factor."""
        if not self._enabled:
            return outputs
        self._is_used = True
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the factor.

        Raises
        ------
        AssertionError
            Nothing was ever scaled.
        RuntimeError
            It was done already since the last `update`.
        """
        if not self._enabled:
            return
        self._check_used("unscale_")
        if optimizer in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if optimizer in self._found:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        finite: bool | None = None
        with no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(1.0 / self._scale)
                        finite = finite is not False and bool(isfinite(parameter.grad).all())
        self._found[optimizer] = finite

    def _check_used(self, method: str) -> None:
        """Raise unless something was scaled: what is divided, or taken for finite, was not."""
        if not self._is_used:
            raise AssertionError(
                f"Attempted {method} but _scale is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale, and call ``optimizer.step(*args, **kwargs)`` if all gradients are finite.

        Raises
        ------
        AssertionError
            Nothing was ever scaled, or no parameter has a gradient.
        RuntimeError
            It was done already since the last `update`, or a closure is given.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_used("step")
        if optimizer in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if optimizer not in self._found:
            self.unscale_(optimizer)
        finite = self._found[optimizer]
        if finite is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = optimizer.step(*args, **kwargs) if finite else None
        self._stepped.add(optimizer)
        return result

    def update(self, new_scale: Any = None) -> None:
        """Set the next factor: a given one, or one that follows from the steps since the last.

        Raises
        ------
        AssertionError
            Nothing was ever scaled; or no step was made, and no factor is given.
        """
        if not self._enabled:
            return
        self._check_used("update")
        found = [finite for finite in self._found.values() if finite is not None]
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif not all(found):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._found, self._stepped = {}, set()

    def state_dict(self) -> dict[str, Any]:
        """Return the factors and the count; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises
        ------
        RuntimeError
            It is empty.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many steps the scale grows."""
        self._growth_interval = new_interval
