"""Programs with and without races that are known, for ThreadSanitizer to tell apart: see watch.py.

python tests/races/control.py barrier|no_barrier|one_array LIBRARY
"""

from __future__ import annotations

import ctypes
import sys
import threading

import convcore
from convcore.kernels.runtime import _threads
from convcore.nn import functional as F


def write_one_array() -> None:
    """Have two Python threads change one array in place, which a kernel does without the GIL."""
    _threads.set_limit(1, 0)
    # Small, for ThreadSanitizer compares each racy address with all that it knows of.
    x = convcore.ones(1 << 13)
    start = threading.Barrier(2)

    def change() -> None:
        start.wait()
        for _ in range(60):
            F.relu(x, inplace=True)

    other = threading.Thread(target=change)
    other.start()
    change()
    other.join()


def main() -> None:
    name, library = sys.argv[1:]
    if name == "one_array":
        write_one_array()
    else:
        ctypes.CDLL(library).neighbours(name == "barrier")


if __name__ == "__main__":
    main()
