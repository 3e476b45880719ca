"""Weights of a net of convcore.models from a file: a state, or the checkpoint of a training."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Mapping
from typing import Any

from convcore._errors.hints import prefix_of
from convcore.cli.errors import UsageError
from convcore.cli.models.files import first_of, one_line


def load_weights(model: Any, name: str, file: str) -> None:
    """Load a file into the net of a name; refuse what does not fit, in one line."""
    import convcore

    own = list(model.state_dict())
    try:
        state = _state(convcore.load(file), own, file)
        model.load_state_dict(state)
    except (OSError, TypeError, ValueError, pickle.UnpicklingError) as error:
        raise UsageError(f"--weights: {one_line(error)}") from None
    except RuntimeError as error:
        # Of keys it is a wall of text.
        why = _difference(state, own, file, name) or one_line(error)
        raise UsageError(f"--weights: {why}") from None


def _state(found: Any, own: list[str], file: str) -> Any:
    """Return a net's state, of these keys, out of what a file holds.

    Their prefix, such as that of nn.DataParallel, is left out.
    """
    if not isinstance(found, Mapping):
        return found
    if not _is_like(found, own):
        states = {key: one for key, one in found.items() if _is_like(one, own)}
        if len(states) > 1:
            keys = ", ".join(map(repr, states))
            raise ValueError(f"{file} has several states, {keys}: save the one that is meant alone")
        found = next(iter(states.values()), found)
    prefix = prefix_of(own, list(found))
    return {key.removeprefix(prefix): value for key, value in found.items()}


def _is_like(state: Any, own: list[str]) -> bool:
    """Return whether something is a state that has some of these keys, or all with a prefix."""
    if not isinstance(state, Mapping):
        return False
    return not state.keys().isdisjoint(own) or bool(prefix_of(own, list(state)))


def _difference(state: Collection[str], own: Collection[str], file: str, name: str) -> str:
    """Say which keys a file and a net do not share; nothing if they have the same."""
    unexpected = [key for key in state if key not in own]
    missing = [key for key in own if key not in state]
    sides = ((file, unexpected), (name, missing))
    parts = [f"only {one} has {first_of(keys)}" for one, keys in sides if keys]
    return f"{file} is of another net than {name}: {'; '.join(parts)}" if parts else ""
