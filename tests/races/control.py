"""A race for watch.py to find: two Python threads change one array in place, without the GIL."""

from __future__ import annotations

import threading

import convcore
from convcore.engine.runtime import _threads
from convcore.nn import functional as F


def main() -> None:
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


if __name__ == "__main__":
    main()
