"""The compiled floor: private, called by convcore.engine alone."""

from importlib import import_module

try:
    import_module("convcore.kernels.runtime._threads")
except ModuleNotFoundError as error:
    # The usual cause is a clone: Python started there finds the source before what was installed.
    raise ImportError(
        f"convcore's kernels are not built in {__path__[0]}. If that is a source tree and convcore "
        "is installed, start Python in another folder; to build them in place, run "
        "'python setup.py build_ext --inplace'"
    ) from error
