"""Random numbers: those that PyTorch draws on a CPU after the same `manual_seed`.

The source is the Mersenne Twister's 32-bit words; what is made of them follows PyTorch draw by
draw, so that scripts give the numbers they always gave.  Words, integers, permutations and
uniform numbers are equal; normal numbers are equal up to the last digits of log, cos and sin.
Coins (`bernoulli` with one probability, and so dropout) follow PyTorch where it does not use
Intel's MKL for them, as on AMD and ARM.

The `fill_*` functions write into arrays, in the order of the elements in memory; all else is made
of them.

References
----------
M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998: the words.
G. E. P. Box and M. E. Muller, Annals of Mathematical Statistics 29(2), 1958: normal numbers.
R. Durstenfeld, Algorithm 235, Communications of the ACM 7(7), 1964: permutations.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from convcore import _dtype
from convcore._creation.arguments import DtypeLike, checked_number, leaf, shape
from convcore._creation.memory import array_like, empty_preserving
from convcore._device import check_device, device
from convcore._tensor import Tensor, memory_format, preserve_format, wrap
from convcore.engine.runtime.layout import real_parts
from convcore.engine.runtime.locks import process_lock

__all__ = [
    "Generator",
    "bernoulli",
    "default_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "seed",
    "set_rng_state",
]

# What PyTorch seeds its generators with until told otherwise.
DEFAULT_SEED = 67280421310721

_RUN = 1 << 16  # numbers made at a time: they stay in the cache; a multiple of 16 and of 2
_TWO_PI = 2 * np.pi

# PyTorch's bytes of a generator's state, so that either library continues where the other stopped.
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
    """A source of random numbers with a state of its own.

    Its methods may be called from several threads; each draw is then whole, their order is not
    defined.

    Examples
    --------
    >>> source = Generator().manual_seed(0)
    >>> rand(2, generator=source)
    tensor([0.4963, 0.7682])
    """

    def __init__(self, device: Any = "cpu"):
        check_device(device)
        self._lock = threading.RLock()
        self.manual_seed(DEFAULT_SEED)

    @property
    def device(self) -> device:
        """The CPU."""
        return device("cpu")

    def manual_seed(self, seed: int) -> Generator:
        """Start anew from ``seed``, of which the lowest 32 bits count; return the generator.

        Raises
        ------
        RuntimeError
            The seed is not within 64 bits; negative ones count as seed + 2**64.
        """
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise RuntimeError("Overflow when unpacking long")
        with self._lock:
            self._seed = seed % 2**64
            self._words = np.random.MT19937()
            state: Any = np.random.RandomState(seed % 2**32).get_state(legacy=False)
            self._words.state = state
            self._source = np.random.Generator(self._words)
            self._spare: float | None = None  # the second normal number of a pair, not used yet
        return self

    def seed(self) -> int:
        """Start anew from a seed that the operating system draws; return it."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed this generator started from."""
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
            It is no uint8 tensor.
        RuntimeError
            It has the wrong size, or is no state.
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
        words = self._words.state
        words["state"] = {
            "key": state["words"].astype(np.uint32),
            "pos": 625 - int(state["left"]),
        }
        with self._lock:
            self._seed = int(state["seed"])
            self._words.state = words
            self._spare = float(state["normal_y"]) if state["has_normal"] else None

    def clone_state(self) -> Generator:
        """Return another generator that will draw the same numbers."""
        other = Generator()
        other.set_state(self.get_state())
        return other

    def __reduce__(self) -> tuple:
        return _generator_of, (self.get_state(),)

    # Draws; each is called with the lock held

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
        """Draw normal numbers one after the other, as pairs of which the second may be left."""
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
        """Draw at least 16 normal numbers as blocks of 8 pairs; the last 16 are a block again."""
        kind = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        drawn = np.empty(count, kind)
        rest = count % 16
        for start in range(0, count - rest, _RUN):
            stop = min(start + _RUN, count - rest)
            drawn[start:stop] = _box_muller(self._uniform(stop - start, kind))
        if rest:
            if dtype != np.float16:
                # PyTorch fills all with uniform numbers first: those behind the blocks are lost.
                self._uniform(rest, kind)
            drawn[-16:] = _box_muller(self._uniform(16, kind))
        return drawn


def _generator_of(state: Tensor) -> Generator:
    """Make a generator from what was pickled."""
    generator = Generator()
    generator.set_state(state)
    return generator


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Turn blocks of 16 uniform numbers into normal ones: 8 radii, then 8 angles.

    The products are rounded to the dtype of ``uniform``, as PyTorch's are.
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
default_generator._lock = process_lock()
default_generator.seed()


class _Thread(threading.local):
    """What a thread draws from where no generator is named: the default one, or one of its own."""

    generator = default_generator


_thread = _Thread()


def _source(generator: Any) -> Generator:
    """Return the generator that is given, or the thread's for None."""
    if generator is None:
        return _thread.generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a Generator or None, got {generator!r}")
    return generator


def use_own_generator(seed: int) -> None:
    """Have this thread, from now on, draw from a generator that it shares with no other.

    What threads draw is then the same whichever of them comes first.
    """
    _thread.generator = Generator().manual_seed(seed)


# The default generator


def manual_seed(seed: int) -> Generator:
    """Start the default generator anew from ``seed``, and return it; see `Generator.manual_seed`.

    Examples
    --------
    >>> _ = manual_seed(0)
    >>> rand(2)
    tensor([0.4963, 0.7682])
    """
    return _thread.generator.manual_seed(seed)


def seed() -> int:
    """Start the default generator anew from a seed that the operating system draws; return it."""
    return _thread.generator.seed()


def initial_seed() -> int:
    """Return the seed the default generator started from."""
    return _thread.generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the default generator's state as a uint8 tensor."""
    return _thread.generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Continue the default generator from a state; see `Generator.set_state`."""
    _thread.generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Inside, draw as one likes; afterwards the default generator is where it was."""
    state = _thread.generator.get_state()
    try:
        yield
    finally:
        if enabled:
            _thread.generator.set_state(state)


# Filling arrays


def _in_memory_order(array: np.ndarray) -> np.ndarray:
    """Return a view whose last axis has the smallest stride."""
    return array.transpose(np.argsort([-abs(step) for step in array.strides], kind="stable"))


def _fill(array: np.ndarray, draw: Any, in_runs: bool = True) -> None:
    """Write what ``draw(count)`` returns, cast, into the elements in the order of memory."""
    ordered = array if array.flags.c_contiguous else _in_memory_order(array)
    with np.errstate(over="ignore"):
        if in_runs and ordered.flags.c_contiguous and array.size > _RUN:
            flat = ordered.reshape(-1)
            for start in range(0, array.size, _RUN):
                run = flat[start : start + _RUN]
                run[...] = draw(run.size)
        else:
            ordered[...] = draw(array.size).reshape(ordered.shape)


def _check_floating(function: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "fc":
        raise NotImplementedError(
            f'"{function}" draws floating-point numbers, not {_dtype.of(array.dtype)}'
        )


def fill_uniform(
    array: np.ndarray, low: float = 0.0, high: float = 1.0, generator: Generator | None = None
) -> None:
    """Write numbers from [low, high) into an array of a floating or complex dtype.

    Raises
    ------
    RuntimeError
        ``low`` is above ``high``.
    NotImplementedError
        The array has integers.
    """
    _check_floating("uniform_", array)
    low = checked_number("uniform_", low, "from", real=True)
    high = checked_number("uniform_", high, "to", real=True)
    if not low <= high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    array = real_parts(array) if array.dtype.kind == "c" else array
    generator = _source(generator)
    kind = np.float64 if array.dtype == np.float64 else np.float32
    first, last = kind(low), kind(high)
    span = float(last - first)

    def draw(count: int) -> np.ndarray:
        drawn = generator._uniform(count, np.dtype(kind))
        if first != 0 or span != 1.0:
            # The product is exact in float64, so it is the sum alone that is rounded.
            drawn = span * drawn.astype(np.float64) + float(first)
        drawn = drawn.astype(array.dtype)
        drawn[drawn == array.dtype.type(last)] = first  # where rounding reached the end
        return drawn

    with generator._lock:
        _fill(array, draw)


def fill_normal(
    array: np.ndarray, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> None:
    """Write normal numbers into an array of a floating or complex dtype.

    A complex number has the standard deviation ``std``, its parts std / sqrt(2) each.

    Raises
    ------
    RuntimeError
        ``std`` is negative.
    NotImplementedError
        The array has integers.
    """
    _check_floating("normal_", array)
    mean = checked_number("normal_", mean, "mean", real=array.dtype.kind == "f")
    std = checked_number("normal_", std, "std", real=True)
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if array.dtype.kind == "c":
        # Filled as real numbers around 0, and moved.
        fill_normal(real_parts(array), 0.0, std / np.sqrt(2.0), generator)
        array += mean
        return
    generator = _source(generator)
    in_blocks = array.size >= 16 and array.flags.c_contiguous

    def draw(count: int) -> np.ndarray:
        if in_blocks:
            drawn = generator._normal_blocks(count, array.dtype)
            if mean == 0.0 and std == 1.0:
                return drawn
            scale, shift = float(drawn.dtype.type(std)), float(drawn.dtype.type(mean))
            return scale * drawn.astype(np.float64) + shift
        return generator._normals(count) * std + mean

    with generator._lock:
        _fill(array, draw, in_runs=False)  # what comes last depends on the size of all


def fill_random(
    array: np.ndarray,
    low: int = 0,
    high: int | None = None,
    generator: Generator | None = None,
) -> None:
    """Write integers from [low, high) into an array of any real dtype.

    Without ``high`` they are all that the dtype holds exactly, from 0 on.

    Raises
    ------
    RuntimeError
        The range is empty, or reaches beyond the dtype.
    """
    if array.dtype.kind == "c":
        raise NotImplementedError(f'"random_" draws real numbers, not {_dtype.of(array.dtype)}')
    if high is None:
        low, high = 0, _count_of(array.dtype)
        is_long = array.dtype in (np.int64, np.float64)
    else:
        _check_range(array.dtype, low, high)
        is_long = high - low >= 2**28
    generator = _source(generator)
    span = np.uint64(high - low) if is_long else np.uint32(high - low)

    def draw(count: int) -> np.ndarray:
        words = generator._uint64(count) if is_long else generator._uint32(count)
        drawn = words % span
        if low == 0:
            return drawn
        return (drawn.astype(np.uint64) + np.uint64(low % 2**64)).astype(np.int64)

    with generator._lock:
        _fill(array, draw)


def _count_of(dtype: np.dtype) -> int:
    """Return how many integers from 0 on a dtype holds, as `random_` counts them."""
    if dtype.kind == "f":
        return 2 ** (np.finfo(dtype).nmant + 1) + 1
    return 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


def _check_range(dtype: np.dtype, low: int, high: int) -> None:
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    if dtype.kind == "b":
        least, most = 0, 1
    else:
        limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        least, most = limits.min, limits.max
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not least <= bound <= most:
            raise RuntimeError(f"{name} is out of bounds for {_dtype.of(dtype)}")


def fill_bernoulli(
    array: np.ndarray, p: float | np.ndarray = 0.5, generator: Generator | None = None
) -> None:
    """Write 1 with probability ``p`` and else 0 into an array of any dtype.

    Parameters
    ----------
    p : one probability, drawn with 53 bits; or an array of them that broadcasts, of which a
        float32 one is drawn with 24 bits.

    Raises
    ------
    RuntimeError
        A probability is not within [0, 1].
    """
    generator = _source(generator)
    if not isinstance(p, np.ndarray):
        if not 0.0 <= p <= 1.0:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        with generator._lock:
            _fill(array, lambda count: generator._uniform(count, np.dtype(np.float64)) < p)
        return
    if not np.all((p >= 0) & (p <= 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    order = np.argsort([-abs(step) for step in array.strides], kind="stable")
    ordered, chances = array.transpose(order), np.broadcast_to(p, array.shape).transpose(order)
    with generator._lock:
        drawn = generator._uniform(array.size, p.dtype)
    ordered[...] = drawn.reshape(ordered.shape) < chances


# Tensors of a size


def rand(
    *sizes: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uniform numbers from [0, 1); the size is several ints or one sequence of them."""
    check_device(device)
    array = np.empty(shape("rand", sizes, size), _dtype.as_numpy(dtype))
    fill_uniform(array, generator=generator)
    return leaf(array, requires_grad)


def randn(
    *sizes: Any,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers of mean 0 and variance 1; the size is ints or one sequence of them.

    Examples
    --------
    >>> _ = manual_seed(0)
    >>> randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    check_device(device)
    array = np.empty(shape("randn", sizes, size), _dtype.as_numpy(dtype))
    fill_normal(array, generator=generator)
    return leaf(array, requires_grad)


def randint(
    *limits: int,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return integers from [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Examples
    --------
    >>> _ = manual_seed(0)
    >>> randint(10, (4,))
    tensor([4, 9, 3, 0])
    """
    check_device(device)
    given = list(limits)
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if given:
        low = given.pop()
    if given or high is None or not isinstance(size, tuple | list):
        raise TypeError("randint() takes high and size, or low, high and size; size is a tuple")
    kind = _dtype.as_numpy(_dtype.int64 if dtype is None else dtype)
    array = np.empty(shape("randint", (size,)), kind)
    fill_random(array, int(low), int(high), generator)
    return leaf(array, requires_grad)


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the integers from 0 to n - 1 in a random order.

    Examples
    --------
    >>> _ = manual_seed(0)
    >>> randperm(4)
    tensor([0, 1, 3, 2])
    """
    check_device(device)
    (n,) = shape("randperm", (n,))
    generator = _source(generator)
    with generator._lock:
        words = generator._uint32(max(n - 1, 0))
    left = np.arange(n, 1, -1)
    partners = (np.arange(n - 1) + words % left).tolist() if n > 1 else []
    order = list(range(n))
    for place, partner in enumerate(partners):
        order[place], order[partner] = order[partner], order[place]
    kind = _dtype.as_numpy(_dtype.int64 if dtype is None else dtype)
    return leaf(np.array(order, kind), requires_grad)


def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return normal numbers of the given mean and standard deviation; nothing is recorded of it.

    Parameters
    ----------
    mean, std : numbers, with a ``size``; or at least one Tensor, and the size is theirs.

    Raises
    ------
    RuntimeError
        A standard deviation is negative.
    """
    check_device(device)
    tensors = [given for given in (mean, std) if isinstance(given, Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal() needs a size where mean and std are numbers")
        array = np.empty(shape("normal", (size,)), _dtype.as_numpy(dtype))
        fill_normal(array, mean, std, generator)  # type: ignore[arg-type]  # they are numbers
        return leaf(array, requires_grad)
    center, spread = (getattr(given, "_array", given) for given in (mean, std))
    if np.any(np.less(spread, 0)):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    drawn_shape = np.broadcast_shapes(*(given._array.shape for given in tensors))
    array = np.empty(drawn_shape, tensors[0]._array.dtype)
    if len(tensors) == 1:
        array = empty_preserving(tensors[0]._array, array.dtype)
    fill_normal(array, generator=generator)
    array *= spread
    array += center
    return leaf(array, requires_grad)


# Tensors like another


def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return uniform numbers from [0, 1) in the size, dtype and memory format of ``input``."""
    array = array_like("rand_like", input, dtype, device, memory_format)
    fill_uniform(array, generator=generator)
    return leaf(array, requires_grad)


def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return normal numbers in the size, dtype and memory format of ``input``."""
    array = array_like("randn_like", input, dtype, device, memory_format)
    fill_normal(array, generator=generator)
    return leaf(array, requires_grad)


def randint_like(
    input: Tensor,
    *limits: int,
    low: int = 0,
    high: int | None = None,
    generator: Generator | None = None,
    dtype: DtypeLike = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """Return integers from [low, high) in the size, dtype and memory format of ``input``.

    The limits are ``high``, or ``low, high``.
    """
    given = list(limits)
    if high is None and given:
        high = given.pop()
    if given:
        low = given.pop()
    if given or high is None:
        raise TypeError("randint_like() takes high, or low and high")
    array = array_like("randint_like", input, dtype, device, memory_format)
    fill_random(array, int(low), int(high), generator)
    return leaf(array, requires_grad)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Return 1 with the probability that ``input`` holds, and else 0, in its dtype.

    Parameters
    ----------
    p : one probability instead; ``input`` then gives size and dtype alone.

    Raises
    ------
    RuntimeError
        A probability is not within [0, 1].
    """
    array = array_like("bernoulli", input, None, None, preserve_format)
    if p is None:
        _check_floating("bernoulli", array)
    fill_bernoulli(array, input._array if p is None else p, generator)
    return wrap(array)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return indices drawn with probabilities proportional to the weights ``input``.

    Parameters
    ----------
    input : (K,) or (M, K) weights of a floating dtype, not negative, each row with a positive sum.
    num_samples : draws from each row.
    replacement : whether an index may come twice.

    Returns
    -------
    (num_samples,) or (M, num_samples) int64.  With replacement the draws are PyTorch's; without,
    they are where PyTorch does not use Intel's MKL.

    Raises
    ------
    RuntimeError
        A weight is negative or not finite, a row has no weight, or, without replacement, more
        indices are asked for than there are.
    """
    weights = input._array
    _check_floating("multinomial", weights)
    if not 1 <= weights.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    rows = np.atleast_2d(weights)
    if not (rows.sum(axis=1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    generator = _source(generator)
    draw = _draw_again if replacement else _draw_once
    drawn = draw(rows, num_samples, generator)
    return wrap(drawn if weights.ndim == 2 else drawn[0])


def _draw_again(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Look uniform numbers up in the cumulated weights of each row."""
    cumulated = np.cumsum(rows, axis=1)
    cumulated /= cumulated[:, -1:]
    with generator._lock:
        uniform = generator._uniform(len(rows) * count, np.dtype(np.float64))
    looked_up = [
        np.searchsorted(row, draws)
        for row, draws in zip(cumulated, uniform.reshape(-1, count), strict=True)
    ]
    return np.array(looked_up, np.int64).reshape(-1, count)


def _draw_once(rows: np.ndarray, count: int, generator: Generator) -> np.ndarray:
    """Take the largest ratios of weight to an exponential number.

    The one with the largest ratio is index i with probability w_i / sum(w), and the next one is so
    among the rest.
    """
    with generator._lock:
        uniform = generator._uniform(rows.size, np.dtype(np.float64)).reshape(rows.shape)
    waits = -np.log1p(-uniform)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(rows > 0, rows / waits, -1.0)
    return np.argsort(-ratios, axis=1, kind="stable")[:, :count]
