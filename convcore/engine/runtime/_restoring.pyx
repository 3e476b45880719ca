"""The end of a `with` block, in one step: Ctrl-C comes before or after it, never within.

Python looks for signals as a function written in Python begins.  An `__exit__` in Python may so
raise KeyboardInterrupt before its first line, and what the block had set stays set.
"""

# Attempts at one undoing call.  A signal may interrupt a call written in Python; the next attempt
# finishes what was begun.
cdef enum:
    MAX_ATTEMPTS = 5


def undo(tuple calls):
    """Make the calls, (function, arguments) each: all of them, whatever some of them raise.

    A call that raises is repeated, up to four times: a signal may have interrupted it.  The first
    error is raised when all calls are done.
    """
    cdef int _attempt
    first = None
    for function, arguments in calls:
        for _attempt in range(MAX_ATTEMPTS):
            try:
                function(*<tuple> arguments)
                break
            except BaseException as error:
                if first is None:
                    first = error
    if first is not None:
        raise first


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
    Compiled functions are best; one written in Python is called again if it was interrupted, so
    that it has to finish what an earlier call began.
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


cdef class Ending(Restoring):
    """A `Restoring` with work left to do after everything is undone.

    Subclasses have `_ended(error)`, which is called with the exception of the block or of
    `_enter()`, or None.  It returns whether an exception of the block is suppressed.
    """

    def _ended(self, error):
        """Do nothing, and suppress nothing."""

    def __enter__(self):
        self._calls = (self._back(), self._calls)
        try:
            return self._enter()
        except BaseException as error:
            Restoring.__exit__(self)
            self._ended(error)
            raise

    def __exit__(self, kind=None, error=None, traceback=None):
        """Undo the innermost entry, and finish."""
        Restoring.__exit__(self)
        return self._ended(error)


def within(Restoring context, function, tuple arguments=(), dict keywords=None):
    """Return ``function(*arguments, **keywords)``, called inside a context.

    An exception before any instruction of the caller comes before the context is entered or after
    it has ended; in a `with` block there are instructions of the caller in between.
    """
    context.__enter__()
    try:
        result = function(*arguments, **(keywords or {}))
    except BaseException as error:
        if context.__exit__(type(error), error, None):
            return None
        raise
    context.__exit__()
    return result
