"""Functions that run other code for a while, and their own again in one step.

Ctrl-C comes before or after that step, never within: Python looks for signals only as functions
written in Python run.
"""


cdef class SwappedCode:
    """Functions whose code is exchanged while there is a holder.

    Every name under which a function is known calls the other code then.  Without a holder nothing
    is changed, and nothing is asked.
    """

    cdef list _own, _other
    cdef set _holders

    def __init__(self):
        self._own, self._other, self._holders = [], [], set()

    def is_empty(self):
        """Return whether it has no functions yet."""
        return not self._own

    def fill(self, list codes):
        """Take the functions, (function, code) each, unless it has some; holders may be there.

        The code takes ``*args, **kwargs`` and has the names of the function's free variables.
        """
        own = [(function, function.__code__) for function, _ in codes]
        if not self._own:
            self._own, self._other = own, codes
            if self._holders:
                _put(codes)

    def hold(self, token):
        """Exchange the code until this token and all others are given back."""
        cdef bint first = not self._holders
        self._holders.add(token)
        if first:
            try:
                _put(self._other)
            except BaseException:
                self.give_back(token)
                raise

    def give_back(self, token):
        """Forget a token, if it is held; after the last one the functions have their own code."""
        if token in self._holders:
            self._holders.remove(token)
            if not self._holders:
                _put(self._own)

    def holders(self):
        """Return the number of tokens that are held."""
        return len(self._holders)


cdef _put(list codes):
    for function, code in codes:
        function.__code__ = code
