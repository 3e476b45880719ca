"""A training run as one file, from which another process goes on to the same bits."""

from __future__ import annotations

import copy
import operator
import os
import random as python_random
from collections.abc import Callable
from typing import Any

import numpy as np

from convcore._errors import hinted
from convcore._errors.text import printable
from convcore.random.generator import Generator
from convcore.random.states import (
    bits_state,
    check_global_states,
    get_global_states,
    plain_state,
    set_global_states,
    set_python_state,
)
from convcore.serialization.errors import CheckpointError
from convcore.serialization.load import load
from convcore.serialization.save import save
from convcore.utils.data import DataLoader

_KEYS = {"epoch", "step", "extra", "random", "parts"}


class TrainingState:
    """Save all that a training run needs to go on, and resume it: two calls.

    Parameters
    ----------
    **parts
        Under any names: the model, optimizers, schedules, DataLoaders, and whatever else has
        ``state_dict`` and ``load_state_dict``; generators of convcore, NumPy and Python.

    Attributes
    ----------
    epoch, step : int
        0 at first, for the program to count on.
    extra : dict
        Any data that the program wants to keep, as the best accuracy so far.

    Notes
    -----
    The states of the default generators of convcore, NumPy and Python are saved too. With a
    DataLoader among the parts, `save` within its ``for`` loop keeps order and position, and the
    loop goes on behind the batch at which it was saved; see `DataLoader.state_dict`. The resumed
    run then ends in the same bits as one that was never stopped, if it makes the same objects, is
    resumed after they are made, right before the loop, and draws from no other generators.

    Random numbers that worker threads draw from NumPy's and Python's default generators are in no
    order, with or without a stop; those of processes, and of convcore's, are.

    Examples
    --------
    >>> import os, tempfile, convcore
    >>> from convcore import nn, optim
    >>> from convcore.utils.data import DataLoader
    >>> file = os.path.join(tempfile.mkdtemp(), "run.pt")
    >>> net = nn.Linear(1, 1)
    >>> sgd = optim.SGD(net.parameters(), lr=0.1)
    >>> loader = DataLoader(convcore.rand(20, 1), batch_size=5, shuffle=True)
    >>> state = TrainingState(model=net, optimizer=sgd, loader=loader)
    >>> state.resume(file)
    False
    >>> while state.epoch < 2:
    ...     for batch in loader:
    ...         sgd.zero_grad()
    ...         net(batch).square().mean().backward()
    ...         sgd.step()
    ...         state.step += 1
    ...         state.save(file)
    ...     state.epoch += 1
    ...     state.save(file)
    >>> again = TrainingState(model=net, optimizer=sgd, loader=loader)
    >>> again.resume(file), again.epoch, again.step
    (True, 2, 8)
    """

    def __init__(self, *unnamed: Any, **parts: Any) -> None:
        if unnamed:
            kind = type(unnamed[0]).__name__
            raise TypeError(
                "TrainingState takes keyword arguments only, as in TrainingState(model=net, "
                f"optimizer=adam); got a positional {kind}"
            )
        self.epoch = self.step = 0
        self.extra: dict[Any, Any] = {}
        self._parts = {name: (part, *_access(name, part)) for name, part in parts.items()}
        for part in parts.values():
            if isinstance(part, DataLoader):
                part._kept_position()  # from here on it keeps its position

    def state_dict(self) -> dict[str, Any]:
        """Return the state of everything, as data.

        Raises
        ------
        TypeError
            ``epoch`` or ``step`` is no int.
        """
        counts = {"epoch": _count(self.epoch, "epoch"), "step": _count(self.step, "step")}
        parts = {name: get() for name, (_, get, _) in self._parts.items()}
        return {**counts, "extra": self.extra, "random": get_global_states(), "parts": parts}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned; if that fails, all stays as it was.

        Raises
        ------
        ValueError
            ``state_dict`` is something else, or of other parts.
        Exception
            Whatever a part's ``load_state_dict`` raises, with a note that names the part.
        """
        self._check(state_dict)
        before = copy.deepcopy(self.state_dict())
        try:
            self._set(state_dict)
        except BaseException:
            self._set(before)
            raise

    def _check(self, state: Any) -> None:
        if not isinstance(state, dict) or state.keys() != _KEYS:
            raise ValueError("it is no training state: expected what TrainingState.save wrote")
        if not isinstance(state["parts"], dict):
            raise ValueError("it is no training state: its parts are not by name")
        for name in ("epoch", "step"):
            if type(state[name]) is not int:
                raise ValueError(f"it is no training state: its {name} is {state[name]!r:.99}")
        has, needs = state["parts"].keys(), self._parts.keys()
        if has != needs:
            found = printable(", ".join(map(str, has)))
            raise ValueError(
                f"it is the training state of {found or 'nothing'}; this one has "
                f"{', '.join(needs) or 'nothing'}"
            )
        check_global_states(state["random"])
        for name, (part, _, _) in self._parts.items():
            _check_random(name, part, state["parts"][name])

    def _set(self, state: dict[str, Any]) -> None:
        for name, (part, _, set_state) in self._parts.items():
            try:
                set_state(state["parts"][name])
                if hasattr(part, "_opt_called"):  # else a schedule's step would warn
                    part._opt_called = True
            except Exception as error:
                hinted(error, f"it is the state of {name!r}")
                raise
        set_global_states(state["random"])
        self.epoch, self.step = state["epoch"], state["step"]
        self.extra = state["extra"]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a file; whenever the process is killed, the old or the new one is there, whole.

        Parameters
        ----------
        path : str or path
        """
        save(self.state_dict(), path, format="torch")

    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Continue from a file, if there is one; if that fails, all stays as it was.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        bool
            Whether there is such a file.

        Raises
        ------
        CheckpointError
            The file is damaged, or is no training state of these parts.
        Exception
            As by `load_state_dict`, as for a model of another shape.
        """
        try:
            state = load(path, format="torch")
        except FileNotFoundError:
            return False
        try:
            self._check(state)
        except ValueError as error:
            raise CheckpointError(f"{os.fspath(path)!r:.999}: {error}") from None
        self.load_state_dict(state)
        return True


def _count(value: Any, name: str) -> int:
    try:
        return operator.index(value)  # NumPy's integers too
    except TypeError:
        raise TypeError(f"{name}: expected an int, got {value!r:.99}") from None


def _check_random(name: str, part: Any, state: Any) -> None:
    """Raise ValueError if a part is a generator and ``state`` is not one of its states."""
    try:
        if isinstance(part, Generator):
            Generator().set_state(state)
        elif isinstance(part, python_random.Random):
            set_python_state(python_random.Random(), state)
        elif isinstance(part, np.random.Generator):
            bits_state(part.bit_generator, state)
    except (TypeError, ValueError, RuntimeError, LookupError, OverflowError) as error:
        refused = ValueError(f"{name!r} is no state of its generator: {error}")
        raise hinted(refused, f"it is the state of {name!r}") from None


def _access(name: str, part: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return the functions that get and set the state of a part."""
    if hasattr(part, "state_dict") and hasattr(part, "load_state_dict"):
        return part.state_dict, part.load_state_dict
    if isinstance(part, DataLoader):  # which under PyTorch's names has neither
        return part._get_position, part._set_position
    if isinstance(part, Generator):
        return part.get_state, part.set_state
    if isinstance(part, python_random.Random):
        return part.getstate, lambda state: set_python_state(part, state)
    if isinstance(part, np.random.Generator):
        bits = part.bit_generator
        return (
            lambda: plain_state(bits.state),
            lambda state: setattr(bits, "state", bits_state(bits, state)),
        )
    raise TypeError(
        f"{name}: expected something with state_dict() and load_state_dict(), or a generator, got "
        f"{type(part).__name__}"
    )
