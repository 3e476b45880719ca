"""Choice of the convolution algorithm and precision, and PyTorch's backend switches.

``conv`` forces or forbids algorithms, and allows products in bfloat16; it is convcore's own.

The modules are PyTorch's.  Scripts commonly start with ``backends.cudnn.benchmark = True`` or
``... .deterministic = True``.  There is no such backend here: the switches can be set and read, but
change nothing.  Results have the same bits in every run and for any number of threads anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from convcore._errors import calls as _calls
from convcore._errors import hinted, nearest
from convcore._errors import names as _names
from convcore.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp
from convcore.engine.conv.algorithms import NAMES
from convcore.engine.conv.selection import current, select, selected

__all__ = ["conv", "cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp"]


class _Convolutions:
    """The algorithms that convolutions and their gradients may use.

    Set the attributes for the whole process, or use `flags` in a ``with`` block:

        convcore.backends.conv.strict = True
        with convcore.backends.conv.flags(algorithm="im2col"):
            ...

    The algorithm of each pass of a convolution (forward, input gradient, weight gradient) is chosen
    when it is computed: a backward pass follows the switches at that time, not those at the time of
    recording.  A pass that the forced algorithm cannot compute uses another, and a forbidden one is
    used if no other can compute the pass.  ``convcore plan`` and `convcore.engine.plan_conv` tell
    which is chosen, and why each of the others is not.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(vars(type(self)).get(name), property):
            raise self._no_switch(name)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # which would find no misspelt names

        def __getattr__(self, name: str) -> Any:
            raise self._no_switch(name)

    def _no_switch(self, name: str) -> AttributeError:
        switches = [one for one, kind in vars(type(self)).items() if isinstance(kind, property)]
        meant = nearest(name, switches)
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(switches)}"
        return hinted(AttributeError(f"backends.conv has no switch {name!r}"), hint)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names that may be forced or forbidden, in order of preference."""
        return NAMES

    @property
    def algorithm(self) -> str | None:
        """The forced algorithm, used for each pass that it can compute; None chooses freely."""
        return current().algorithm

    @algorithm.setter
    def algorithm(self, name: str | None) -> None:
        select(algorithm=name)

    @property
    def forbidden(self) -> frozenset[str]:
        """The algorithms that are not used if another can compute the pass."""
        return current().forbidden

    @forbidden.setter
    def forbidden(self, names: Iterable[str]) -> None:
        select(forbidden=names)

    @property
    def strict(self) -> bool:
        """Whether every output must be the sum of its own products: no Winograd.

        Winograd computes the outputs of a tile from sums and differences of its inputs.  Its
        rounding error is a few times larger, and a NaN or an infinity in one input may spread to
        all outputs of its tile, where a direct sum spoils only the outputs whose kernel touches it.
        Strict mode uses direct sums, which take longer: float32 then has the error of float32
        summation alone.  float64 and complex convolutions are always direct sums.
        """
        return current().strict

    @strict.setter
    def strict(self, on: bool) -> None:
        select(strict=on)

    @property
    def fp32_precision(self) -> str:
        """What products of float32 convolutions may be computed in: PyTorch's name and values.

        With 'bf16' both factors of each product are rounded to bfloat16 (8 bits of precision, a
        relative error of 2**-9) where that is faster: on processors of AMD's with AVX512-BF16, in
        layers of many channels that Winograd's method in float32 does not do faster.  Sums are
        float32's.  'none' (default) and 'ieee' round nothing.  `strict` does without.
        """
        return current().precision

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        select(precision=precision)

    def flags(
        self,
        *,
        strict: bool | EllipsisType = ...,
        algorithm: str | EllipsisType | None = ...,
        forbidden: Iterable[str] | EllipsisType = ...,
        fp32_precision: str | EllipsisType = ...,
    ) -> AbstractContextManager[None]:
        """Change switches until the end of a ``with`` block, in this thread or task only.

        Parameters
        ----------
        strict : bool, optional
        algorithm : str or None, optional
        forbidden : names, or one name, optional
        fp32_precision : {'none', 'ieee', 'bf16'}, optional
            The attributes of the same names; those not given stay as they are.

        Returns
        -------
        context manager
            Within it, setting an attribute lasts until its end.  Threads started within it follow
            the switches of the process.

        Raises
        ------
        TypeError, ValueError
            On entry: a name that is not in `algorithms`, one both forced and forbidden, or no
            precision.

        Examples
        --------
        >>> with conv.flags(strict=True, forbidden="stride_decomposition"):
        ...     conv.strict, sorted(conv.forbidden)
        (True, ['stride_decomposition'])
        >>> conv.strict
        False
        """
        given: dict[str, Any] = {
            "strict": strict,
            "algorithm": algorithm,
            "forbidden": forbidden,
            "precision": fp32_precision,
        }
        return selected(**{name: value for name, value in given.items() if value is not ...})

    def __repr__(self) -> str:
        return (
            f"<convolutions: strict={self.strict}, algorithm={self.algorithm!r}, "
            f"forbidden={sorted(self.forbidden)}, fp32_precision={self.fp32_precision!r}>"
        )


_calls.hint_methods("backends.conv", (_Convolutions,))
conv = _Convolutions()

_names.explain_names(__name__)
