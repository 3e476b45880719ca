"""Whether parameters are of exactly the types that keys of caches are made of."""


cpdef bint is_plain(object value):
    """Return whether a value is an int, a str, or a tuple of such; of no subclass, such as bool.

    Tuples are equal where 1, True and 1.0 stand in them, so a cache would take one for the other.
    """
    if type(value) is int or type(value) is str:
        return True
    if type(value) is not tuple:
        return False
    for one in <tuple>value:
        if not is_plain(one):
            return False
    return True
