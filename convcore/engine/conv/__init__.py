"""Convolutions on arrays: the three passes, their plans, algorithms and executables."""
