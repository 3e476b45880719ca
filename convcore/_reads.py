"""A counter of data-dependent reads: `item`, `bool`, `numpy` and others that reveal elements.

What a program does next may depend on them; inference/plan_cache.py asks.
"""

from __future__ import annotations

import threading


class _Reads(threading.local):
    """One count for each thread."""

    count = 0


reads = _Reads()
