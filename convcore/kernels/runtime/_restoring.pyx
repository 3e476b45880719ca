"""The end of a `with` block, in one step: Ctrl-C comes before or after it, never within.

Python looks for signals as a function written in Python begins.  An `__exit__` in Python may so
raise KeyboardInterrupt before its first line, and what the block had set stays set.
"""


def undo(tuple calls):
    """Make the calls, (function, arguments) each."""
    for function, arguments in calls:
        function(*<tuple> arguments)


def put_back(variable, outer, str name):
    """Set a context variable to the object that it held before, or to None.

    Without memory for that, the object that it holds gets the earlier one's attribute of a name, or
    None.
    """
    try:
        variable.set(outer)
    except MemoryError:
        inner = variable.get()
        if inner is not None and inner is not outer:
            setattr(inner, name, None if outer is None else getattr(outer, name))


cdef class Restoring:
    """A context that puts back what it set: base class.  It may be entered again within itself.

    Subclasses have `_enter()`, which sets something and returns what ``with ... as`` gives, and
    `_back()`, which is called before it and returns what undoes it: (function, arguments) pairs,
    called in that order, also where `_enter()` was interrupted before it did anything.  So they
    write what was there before: not `list.pop`, but `list.__setitem__` of the list's whole slice.
    The functions are compiled ones; others would be interrupted as an `__exit__` in Python is.
    """

    cdef tuple _calls  # (calls of the innermost entry, what this was before), or None

    def __enter__(self):
        self._calls = (self._back(), self._calls)
        try:
            return self._enter()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, kind=None, error=None, traceback=None):
        """Undo the innermost entry; takes no memory where the calls take none."""
        if self._calls is None:
            raise RuntimeError("the context was not entered, or it has ended")
        calls, self._calls = self._calls
        undo(calls)
