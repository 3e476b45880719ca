"""What packages import from `torch.hub` besides its functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlparse as urlparse

try:
    from tqdm import tqdm  # type: ignore[import-untyped]
except ImportError:

    class tqdm:  # type: ignore[no-redef]
        """A progress bar that shows nothing."""

        def __init__(self, iterable: Any = (), *args: Any, **kwargs: Any):
            self._iterable = iterable

        def __iter__(self) -> Iterator:
            return iter(self._iterable)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def update(self, n: int = 1) -> None:
            """Do nothing."""


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
