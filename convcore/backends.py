"""Switches of the convolutions, and those of PyTorch's other backends, so that programs run.

``conv`` says which algorithms may be chosen; it is convcore's own.

Scripts commonly start with ``backends.cudnn.benchmark = True`` or ``... .deterministic = True``.
There is no such backend here: the switches can be set and read, and nothing else comes of it.
Results are the same bits in every run and for any number of threads whatever they say.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import EllipsisType
from typing import Any

from convcore.engine.conv.algorithms import NAMES
from convcore.engine.conv.algorithms.selection import current, select, selected

__all__ = ["conv", "cuda", "cudnn", "mkldnn", "mps"]


class _Convolutions:
    """Which algorithms the convolutions and their gradients may be computed by.

    Set the attributes for the whole process, or use `flags` for a while:

        convcore.backends.conv.strict = True
        with convcore.backends.conv.flags(algorithm="im2col"):
            ...

    Each of a convolution's three maps (forward, input gradient, weight gradient) is chosen for
    when it is computed, so a backward pass sees what is in force when it runs, not what was in
    force when the graph was recorded.  An algorithm that is forced is passed over by the maps that
    it cannot compute, and one that is forbidden is used where nothing else can compute the map:
    ``convcore plan`` and `convcore.engine.plan_conv` tell what is chosen, and why each of the
    others is not.
    """

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names that may be forced or forbidden, in order of preference."""
        return NAMES

    @property
    def algorithm(self) -> str | None:
        """The forced algorithm, taken for each map that it can compute; None leaves the choice."""
        return current().algorithm

    @algorithm.setter
    def algorithm(self, name: str | None) -> None:
        select(algorithm=name)

    @property
    def forbidden(self) -> frozenset[str]:
        """The algorithms that are not taken while another can compute the map."""
        return current().forbidden

    @forbidden.setter
    def forbidden(self, names: Iterable[str]) -> None:
        select(forbidden=names)

    @property
    def strict(self) -> bool:
        """Whether every result must be the sum of its own products: no Winograd.

        Winograd computes several outputs of a tile from sums and differences of its inputs.  It
        rounds more, by a few times, and a NaN or an infinity in one input may spread to all
        outputs of its tile, where a direct sum spoils only the outputs whose kernel touches it.
        Strict mode keeps to direct sums, for more time: float32 then has the error of float32
        summation alone.  float64 and complex convolutions are direct sums always.
        """
        return current().strict

    @strict.setter
    def strict(self, on: bool) -> None:
        select(strict=on)

    def flags(
        self,
        *,
        strict: bool | EllipsisType = ...,
        algorithm: str | EllipsisType | None = ...,
        forbidden: Iterable[str] | EllipsisType = ...,
    ) -> AbstractContextManager[None]:
        """Change what is given until the end of a ``with`` block, in this thread or task alone.

        Parameters
        ----------
        strict : bool, optional
        algorithm : str or None, optional
        forbidden : names, or one name, optional
            The attributes of the same names; what is not given stays as it is.

        Returns
        -------
        context manager
            Within it, setting an attribute lasts until its end.  Threads started within it do not
            see it; they see what is set for the process.

        Raises
        ------
        TypeError, ValueError
            On entry: no name out of `algorithms`, or an algorithm both forced and forbidden.

        Examples
        --------
        >>> with conv.flags(strict=True, forbidden="stride_decomposition"):
        ...     conv.strict, sorted(conv.forbidden)
        (True, ['stride_decomposition'])
        >>> conv.strict
        False
        """
        return selected(strict=strict, algorithm=algorithm, forbidden=forbidden)

    def __repr__(self) -> str:
        return (
            f"<convolutions: strict={self.strict}, algorithm={self.algorithm!r}, "
            f"forbidden={sorted(self.forbidden)}>"
        )


class _Absent:
    """A backend that is not there, with switches that switch nothing."""

    def __init__(self, name: str, **switches: Any):
        self._name = name
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        """Return False."""
        return False

    def is_built(self) -> bool:
        """Return False."""
        return False

    def version(self) -> None:
        """Return None."""

    def __repr__(self) -> str:
        return f"<backend '{self._name}', not available>"


conv = _Convolutions()
cudnn = _Absent("cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
cuda = _Absent("cuda", matmul=_Absent("cuda.matmul", allow_tf32=False))
mps = _Absent("mps")
mkldnn = _Absent("mkldnn", enabled=True)
