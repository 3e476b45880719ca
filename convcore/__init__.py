"""convcore: convolutions on a CPU, forward and both gradients, on NumPy arrays.

One legend of shape letters serves the whole package:

    N       batch                           K       C_in/G * KH * KW, terms of one output's sum
    C_in    input channels                  P       OH * OW, output pixels of one image
    C_out   output channels                 SH, SW  strides
    G       groups                          DH, DW  dilations
    D, H, W     input sizes                 KD, KH, KW  kernel sizes
    OD, OH, OW  output sizes
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from convcore import engine
    from convcore.engine.threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

__all__ = ["__version__", "engine", "get_num_threads", "set_num_threads"]

# Where each name is, loaded when it is first asked for: a benchmark's worker for another library,
# or `convcore --help`, must not load the kernels and their OpenMP.
_ROOMS = {
    "engine": "convcore.engine",
    "get_num_threads": "convcore.engine.threads",
    "set_num_threads": "convcore.engine.threads",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'convcore' has no attribute {name!r}")
    room = importlib.import_module(_ROOMS[name])
    value = room if name == "engine" else getattr(room, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
