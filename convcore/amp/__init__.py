"""Automatic mixed precision under PyTorch's names: bfloat16 or float16 within `autocast`.

In its context convolutions and matrix products are computed in the lower precision and losses in
float32, by PyTorch's lists for the CPU; parameters and their gradients stay float32.  `GradScaler`
scales losses and gradients as PyTorch's does.
"""

from convcore._errors import names as _names
from convcore.amp.autocast_mode import autocast as autocast
from convcore.amp.autocast_mode import custom_bwd as custom_bwd
from convcore.amp.autocast_mode import custom_fwd as custom_fwd
from convcore.amp.autocast_mode import is_autocast_available as is_autocast_available
from convcore.amp.grad_scaler import GradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_names.explain_names(__name__)
