"""The states of all generators that a process draws from by default, as data."""

from __future__ import annotations

import random as python_random
from typing import Any

import numpy as np

from convcore.random.generator import get_rng_state, set_rng_state


def get_global_states() -> dict[str, Any]:
    """Return the states of the default generators of convcore, NumPy and Python.

    Raises
    ------
    RuntimeError
        NumPy's has been replaced by one of another kind.
    """
    numpys: Any = np.random.get_state()
    if not isinstance(numpys, tuple):
        raise RuntimeError("NumPy's default generator is no MT19937, and its state is not kept")
    return {
        "convcore": get_rng_state(),
        "numpy": [numpys[0], numpys[1].tolist(), *numpys[2:]],
        "python": python_random.getstate(),
    }


def set_global_states(states: dict[str, Any]) -> None:
    """Continue from what `get_global_states` returned; what is not in it stays as it is."""
    if "numpy" in states:
        name, words, *rest = states["numpy"]
        np.random.set_state((name, np.array(words, np.uint32), *rest))
    if "python" in states:
        version, words, gauss = states["python"]
        python_random.setstate((version, tuple(words), gauss))
    set_rng_state(states["convcore"])
