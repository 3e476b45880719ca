"""The states of all generators that a process draws from by default, as data."""

from __future__ import annotations

import operator
import random as python_random
from typing import Any

import numpy as np

from convcore.random.generator import Generator, get_rng_state, set_rng_state


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
    """Continue from what `get_global_states` returned; what is not in it stays as it is.

    Raises
    ------
    ValueError
        ``states`` is something else; nothing has changed then.
    """
    check_global_states(states)
    if "numpy" in states:
        name, words, *rest = states["numpy"]
        np.random.set_state((name, np.array(words, np.uint32), *rest))
    if "python" in states:
        set_python_state(python_random, states["python"])
    set_rng_state(states["convcore"])


def check_global_states(states: Any) -> None:
    """Raise ValueError unless ``states`` is what `get_global_states` returns."""
    try:
        Generator().set_state(states["convcore"])
        if "numpy" in states:
            name, words, position, has_gauss, gauss = states["numpy"]
            state = {"bit_generator": name, "state": {"key": {"words": words}, "pos": position}}
            bits_state(np.random.MT19937(0), state)
            float(gauss), operator.index(has_gauss)
        if "python" in states:
            set_python_state(python_random.Random(), states["python"])
    except (TypeError, ValueError, RuntimeError, LookupError, OverflowError) as error:
        raise ValueError(f"it is no state of random numbers: {error}") from None


def set_python_state(generator: Any, state: Any) -> None:
    """Set the state of a generator of Python, whose words may be in a list."""
    version, words, gauss = state
    generator.setstate((version, tuple(words), gauss))


# Bit generators of NumPy.  Their setters trust positions, at which C code then reads.

_LIMITS = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "uinteger": 2**32 - 1}


def plain_state(state: Any) -> Any:
    """Return the state of a bit generator of NumPy without arrays."""
    if isinstance(state, dict):
        return {key: plain_state(value) for key, value in state.items()}
    return {"words": state.tolist()} if isinstance(state, np.ndarray) else state


def bits_state(bits: Any, state: Any) -> Any:
    """Return the state to set in a bit generator of NumPy, from `plain_state`.

    Raises
    ------
    ValueError
        It is the state of another generator, or holds numbers out of range.
    """
    return _like(bits.state, state, "state")


def _like(own: Any, value: Any, name: str) -> Any:
    """Return ``value`` in the form of the generator's own part of that name."""
    if isinstance(own, dict):
        if not isinstance(value, dict) or value.keys() != own.keys():
            raise ValueError(f"{name} must have {', '.join(own)}, got {value!r:.99}")
        return {key: _like(own[key], value[key], key) for key in own}
    if isinstance(own, str):
        if value != own:
            raise ValueError(f"{name} must be {own!r}, got {value!r:.99}")
        return value
    if isinstance(own, np.ndarray):
        words = value.get("words") if isinstance(value, dict) else None
        if not isinstance(words, list) or len(words) != own.size:
            raise ValueError(f"{name} must be {own.size} words")
        largest = int(np.iinfo(own.dtype).max)
        return np.array([_checked(word, largest, name) for word in words], own.dtype)
    return _checked(value, _LIMITS.get(name, 2**128 - 1), name)


def _checked(value: Any, largest: int, name: str) -> int:
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{name} must be an int from 0 to {largest}, got {value!r:.99}")
    return value
