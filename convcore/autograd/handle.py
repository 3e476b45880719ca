"""RemovableHandle, what every `register_..._hook` returns, and the mark for unpicklable hooks.

Hooks live in ordered dictionaries, keyed by the id of their handle. A handle refers to its
dictionary weakly: keeping a handle keeps neither a module nor a graph alive.
"""

from __future__ import annotations

import copyreg
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from convcore.engine.runtime._restoring import Restoring
from convcore.engine.runtime.locks import process_lock
from convcore.engine.runtime.restoring import Calls

__all__ = ["RemovableHandle", "unserializable_hook"]

Hook = TypeVar("Hook", bound=Callable)

_ids = process_lock()  # two threads may register at once, and an id used twice loses a hook


def _dead_reference() -> weakref.ref:
    """Return a weak reference whose object is gone."""
    return weakref.ref(OrderedDict())


class RemovableHandle(Restoring):
    """Remove one hook from the dictionary that it was registered in.

    Parameters
    ----------
    hooks_dict : OrderedDict
        Where the hook lives, or will live, under the key `handle.id`. Referred to weakly.
    extra_dict : OrderedDict or list of OrderedDict, optional
        Further dictionaries that say something about the hook under the same key; `remove`
        clears them too.

    Notes
    -----
    Ids grow over the whole process and are never used twice. `remove` may be called any number of
    times, also after the owner of the hooks is gone. As a context manager, a handle removes its
    hook when the block is left.

    Examples
    --------
    >>> from collections import OrderedDict
    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> len(hooks)
    0
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: OrderedDict, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        with _ids:
            self.id = RemovableHandle.next_id
            RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = ()
        elif isinstance(extra_dict, dict):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extra_dict)

    def remove(self) -> None:
        """Remove the hook; do nothing if it is gone already."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple) -> None:
        hooks_dict, self.id, extra = state
        # Without its dictionary a handle has nothing to remove, but still must not fail.
        self.hooks_dict_ref = _dead_reference() if hooks_dict is None else weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(hooks) for hooks in extra if hooks is not None)
        with _ids:
            RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]

    def _back(self) -> Calls:
        return ((self.remove, ()),)

    def _enter(self) -> RemovableHandle:
        return self


def add_hook(
    hooks: OrderedDict, hook: Callable, prepend: bool = False, options: tuple = ()
) -> RemovableHandle:
    """Add a hook behind those that are registered, or before them, and return its handle.

    Each option, (dictionary, is_set), is stored in its dictionary if it is set; the handle knows
    the dictionaries of all.
    """
    handle = RemovableHandle(hooks, extra_dict=[option for option, _ in options])
    hooks[handle.id] = hook
    for option, is_set in options:
        if is_set:
            option[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def unserializable_hook(hook: Hook) -> Hook:
    """Mark a tensor hook as one that may be dropped, without a warning, when its tensor is pickled.

    Parameters
    ----------
    hook : callable
        A function; it gets an attribute.

    Returns
    -------
    callable
        The same function, so that this can be used as a decorator.
    """
    # PyTorch's name for it: marked hooks stay marked.
    hook.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return hook
