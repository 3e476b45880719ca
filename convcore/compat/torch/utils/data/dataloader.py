"""The private names of `torch.utils.data.dataloader` that packages use in annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]
