"""The versions of PyTorch whose names these are."""

from convcore.compat.torch import __version__ as __version__

cuda = hip = xpu = git_version = None
debug = False
