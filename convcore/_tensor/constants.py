"""Mathematical constants, such as `convcore.pi`, and `newaxis`."""

from math import e, inf, nan, pi

__all__ = ["e", "inf", "nan", "newaxis", "pi"]

newaxis = None  # in a subscript: a new axis of size 1
