"""Mersenne Twister generators: their state, the default one, and the raw draws that all else uses.

References
----------
M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998: the 32-bit words.
G. E. P. Box and M. E. Muller, Annals of Mathematical Statistics 29(2), 1958: normal numbers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from convcore._errors.calls import hinting
from convcore._tensor import Tensor, wrap
from convcore._tensor.device import check_device, device
from convcore.engine.runtime.locks import free_in_child, process_lock
from convcore.engine.runtime.restoring import Calls, restoring

__all__ = [
    "Generator",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

# PyTorch's seed of a new generator.
DEFAULT_SEED = 67280421310721

BLOCK = 1 << 16  # numbers drawn at a time: they stay in the cache; a multiple of 16
_TWO_PI = 2 * np.pi

# The byte layout of PyTorch's generator state: either library continues where the other stopped.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", 624),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("has_normal", "<i4"),
        ("unused", "<i4"),
        ("float_normal", "<f4"),
        ("has_float_normal", "<i4"),
    ]
)


class Generator:
    """A Mersenne Twister with a state of its own.

    Several threads may use one generator: no number is lost or drawn twice, but which thread gets
    which is undefined.

    Examples
    --------
    >>> import convcore
    >>> source = convcore.Generator().manual_seed(0)
    >>> convcore.rand(2, generator=source)
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu"):
        check_device(device)
        self._lock = process_lock()  # NumPy's own is free whenever this one is
        self._words = np.random.MT19937(0)
        free_in_child(self._words.lock)
        self._source = np.random.Generator(self._words)
        self.manual_seed(DEFAULT_SEED)

    @property
    def device(self) -> device:
        """The device of the numbers drawn: the CPU."""
        return device("cpu")

    def manual_seed(self, seed: int) -> Generator:
        """Seed the generator with the lowest 32 bits of ``seed``, and return it.

        Raises
        ------
        ValueError
            The seed does not fit into 64 bits; a negative one stands for seed + 2**64.
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        with self._lock:
            self._seed = seed % 2**64
            # RandomState seeds as PyTorch does; making a new MT19937 takes fifty times as long.
            np.random.RandomState(self._words).seed(seed % 2**32)
            self._spare: float | None = None  # the unused second number of a Box-Muller pair
        return self

    def seed(self) -> int:
        """Seed the generator from the operating system's entropy, and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed that was set last."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a uint8 tensor, in PyTorch's layout."""
        with self._lock:
            words = self._words.state["state"]
            state = np.zeros((), _STATE)
            state["seed"], state["seeded"] = self._seed, 1
            state["words"], state["next"] = words["key"], words["pos"]
            state["left"] = 625 - words["pos"]
            if self._spare is not None:
                state["normal_y"], state["has_normal"] = self._spare, 1
        return wrap(np.frombuffer(state.tobytes(), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> None:
        """Continue from a state that `get_state` returned, here or in PyTorch.

        Raises
        ------
        TypeError
            ``new_state`` is not a uint8 tensor.
        RuntimeError
            It has the wrong size, or its content is not a valid state.
        """
        array = getattr(new_state, "_array", None)
        if array is None or array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if array.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input "
                f"RNG state size to be {array.size}"
            )
        state = np.frombuffer(array.tobytes(), _STATE)[0]
        if not 1 <= state["left"] <= 624 or state["next"] > 624:
            raise RuntimeError("RNG state is invalid")
        with self._lock:
            words = self._words.state
            words["state"] = {
                "key": state["words"].astype(np.uint32),
                "pos": 625 - int(state["left"]),
            }
            self._seed = int(state["seed"])
            self._words.state = words
            self._spare = float(state["normal_y"]) if state["has_normal"] else None

    def clone_state(self) -> Generator:
        """Return a new generator in the same state, which draws the same numbers."""
        other = Generator()
        other.set_state(self.get_state())
        return other

    def __reduce__(self) -> tuple:
        return _generator_of, (self.get_state(),)

    # Raw draws, each made with the lock held.  They count elements, not shapes.

    def _uint32(self, count: int) -> np.ndarray:
        return self._source.integers(0, 2**32, count, np.uint32)

    def _uint64(self, count: int) -> np.ndarray:
        words = self._uint32(2 * count).astype(np.uint64)
        return words[::2] << np.uint64(32) | words[1::2]

    def _uniform(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Draw from [0, 1): 53 bits of two words in float64, else 24 bits of one word."""
        if dtype == np.float64:
            return (self._uint64(count) & np.uint64(2**53 - 1)) * 2.0**-53
        return (self._uint32(count) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2**-24)

    def _normals(self, count: int) -> np.ndarray:
        """Draw normal numbers in Box-Muller pairs, keeping an unused second one for the next."""
        n_spare = int(self._spare is not None and count > 0)
        n_pairs = (count - n_spare + 1) // 2
        drawn = np.empty(n_spare + 2 * n_pairs)
        if n_spare:
            drawn[0], self._spare = self._spare, None
        angle, distance = self._uniform(2 * n_pairs, np.dtype(np.float64)).reshape(-1, 2).T
        angle, radius = _TWO_PI * angle, np.sqrt(-2 * np.log1p(-distance))
        drawn[n_spare::2], drawn[n_spare + 1 :: 2] = radius * np.cos(angle), radius * np.sin(angle)
        if drawn.size > count:
            self._spare = float(drawn[-1])
        return drawn[:count]

    def _normal_blocks(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Draw 16 or more normal numbers in blocks of 8 pairs; a rest redraws the last 16."""
        kind = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        drawn = np.empty(count, kind)
        rest = count % 16
        for start in range(0, count - rest, BLOCK):
            stop = min(start + BLOCK, count - rest)
            drawn[start:stop] = _box_muller(self._uniform(stop - start, kind))
        if rest:
            if dtype.itemsize > 2:
                # PyTorch first fills the whole array with uniform numbers: these are dropped.
                self._uniform(rest, kind)
            drawn[-16:] = _box_muller(self._uniform(16, kind))
        return drawn


def _generator_of(state: Tensor) -> Generator:
    """Restore a pickled generator."""
    generator = Generator()
    generator.set_state(state)
    return generator


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Transform blocks of 16 uniform numbers, 8 for radii and 8 for angles, to normal ones.

    Products are rounded to the dtype of ``uniform``, like PyTorch's.
    """
    first, second = uniform.reshape(-1, 2, 8).transpose(1, 0, 2)
    number = uniform.dtype.type
    radius = np.sqrt(number(-2) * np.log(number(1) - first))
    angle = number(_TWO_PI) * second
    normal = np.empty((len(first), 2, 8), uniform.dtype)
    np.multiply(radius, np.cos(angle), out=normal[:, 0])
    np.multiply(radius, np.sin(angle), out=normal[:, 1])
    return normal.reshape(-1)


default_generator = Generator()
_numpys: Any = np.random  # its default generator, which workers seed
free_in_child(_numpys.get_bit_generator().lock)
default_generator.seed()


class _Thread(threading.local):
    """The generator a thread uses by default: the shared one, or its own in a data worker."""

    generator = default_generator


_thread = _Thread()


def resolve(generator: Any) -> Generator:
    """Return a ``generator`` argument, or the thread's default generator for None."""
    if generator is None:
        return _thread.generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a Generator or None, got {generator!r}")
    return generator


def use_own_generator(seed: int) -> None:
    """Give this thread a default generator of its own.

    What several threads draw then does not depend on which of them runs first.
    """
    _thread.generator = Generator().manual_seed(seed)


# The default generator


@hinting
def manual_seed(seed: int) -> Generator:
    """Seed the default generator, and return it; see `Generator.manual_seed`.

    Examples
    --------
    >>> import convcore
    >>> _ = convcore.manual_seed(0)
    >>> convcore.rand(2)
    tensor([0.4963, 0.7682])
    """
    return _thread.generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system's entropy, and return that seed."""
    return _thread.generator.seed()


def initial_seed() -> int:
    """Return the seed of the default generator that was set last."""
    return _thread.generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the default generator's state as a uint8 tensor."""
    return _thread.generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from a state; see `Generator.set_state`."""
    _thread.generator.set_state(new_state)


@restoring
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[Calls]:
    """Restore the default generator's state at the end of a ``with`` block.

    Parameters
    ----------
    devices : ignored
    enabled : whether the state is restored
    """
    generator = _thread.generator
    yield ((generator.set_state, (generator.get_state(),)),) if enabled else ()
