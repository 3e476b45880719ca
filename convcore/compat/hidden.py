"""Methods of convcore's own that PyTorch's programs ask for, to tell another class by them.

PyTorch's DataLoader has no ``state_dict``; torchdata's has one, for use at any time.  Lightning
asks every loader with one amid an iteration, which convcore's cannot answer if nobody asked before.
`TrainingState` saves and resumes loaders all the same.
"""

from __future__ import annotations

from collections.abc import Callable

from convcore.utils.data import DataLoader

_METHODS: dict[type, tuple[str, ...]] = {DataLoader: ("state_dict", "load_state_dict")}
_kept: list[tuple[type, str, Callable]] = []


def hide() -> None:
    """Take the methods out of their classes."""
    for owner, methods in _METHODS.items():
        for name in methods:
            _kept.append((owner, name, vars(owner)[name]))
            delattr(owner, name)


def show() -> None:
    """Put them back."""
    while _kept:
        setattr(*_kept.pop())
