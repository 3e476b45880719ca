"""Batches under a memory bound, and a progress bar on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from convcore import nn
from convcore._tensor import Tensor
from convcore.autograd.observation import observed
from convcore.inspection.attribution._run import fresh

MEMORY = 1 << 30
"""Bytes that the results of one batch may take, by default: 1 GiB."""

# Bytes of a net's results over those of an image, where nothing is recorded; 35 in ResNet-18.
_RESULTS = 64
_WIDTH = 24
_LINE_SECONDS = 5.0


def images_at_once(
    model: nn.Module, input: Tensor, memory: int, most: int | None = None, copies: int = 2
) -> int:
    """Return how many images a batch may have: one image is run, and its results are counted.

    Parameters
    ----------
    model : Module
    input : (N, ...)
        The first image is run, unless a batch is to have only one anyway.
    memory : int
        Bytes that a batch's results and gradients may take; one image always may.
    most : int, optional
        The images that there are, N by default.
    copies : int
        How often a result takes its memory: itself, and for its gradient, at least.

    Raises
    ------
    ValueError
        ``memory`` is no positive number.
    """
    if isinstance(memory, bool) or not isinstance(memory, int | float) or memory <= 0:
        raise ValueError(f"memory must be a positive number of bytes, got {memory!r}")
    most = len(input) if most is None else most
    if most <= 1:
        return 1
    taken = 0

    def count(node: Any, inputs: tuple, outputs: Any) -> None:
        nonlocal taken
        for output in outputs if isinstance(outputs, tuple) else (outputs,):
            taken += 0 if output._view is not None else output.nbytes

    image = fresh(input[:1]).clone()
    with observed(count):
        model(image)
    taken = taken or _RESULTS * image.nbytes
    return min(most, max(1, int(memory // (copies * taken))))


def parts(n: int, size: int) -> Iterator[slice]:
    """Yield slices of ``size`` that make up n images."""
    for start in range(0, n, size):
        yield slice(start, min(n, start + size))


def by_chunks(
    explain: Callable[[Tensor, slice], Tensor], model: nn.Module, input: Tensor, memory: int
) -> Tensor:
    """Return ``explain(images, chosen)`` of a batch, made in parts that keep the memory bound."""
    import convcore

    size = images_at_once(model, input, memory)
    found = [explain(input[chosen], chosen) for chosen in parts(len(input), size)]
    return found[0].detach() if len(found) == 1 else convcore.cat(found).detach()


class Bar:
    """A progress bar: on a terminal a line that grows, else a line every few seconds.

    Parameters
    ----------
    text : str
    total : int
    shown : bool
        Nothing is written where it is false.
    """

    def __init__(self, text: str, total: int, shown: bool) -> None:
        self.text, self.total, self.shown = text, total, shown
        self.done = 0
        self.said = time.monotonic()
        self.terminal = shown and sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def advance(self, count: int, more: int = 0) -> None:
        """Note what was done, and what was found to be left besides."""
        self.done += count
        self.total += more
        if not self.shown:
            return
        share = self.done / max(1, self.total)
        if self.terminal:
            bar = ("=" * int(_WIDTH * share)).ljust(_WIDTH)
            print(f"\r{self.text} [{bar}] {share:4.0%}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self.said >= _LINE_SECONDS:
            self.said = time.monotonic()
            print(f"{share:4.0%} {self.text}", file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
