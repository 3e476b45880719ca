"""CheckpointError, the one error of a file that cannot be read."""

from __future__ import annotations

import pickle

__all__ = ["CheckpointError"]


class CheckpointError(pickle.UnpicklingError, ValueError, RuntimeError):
    """A file is no checkpoint, is damaged, or holds something other than data; the text says what.

    It is an `UnpicklingError`, a ValueError and a RuntimeError, whichever of them PyTorch raises.
    """
