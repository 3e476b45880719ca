"""How often Python was told the elements of a tensor: what it does next may depend on them."""

from __future__ import annotations

import threading


class _Reads(threading.local):
    """Counted for each thread by itself."""

    count = 0


reads = _Reads()
