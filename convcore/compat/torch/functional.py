"""Functions that PyTorch defines in Python, under their longer path."""

from convcore import *  # noqa: F403
