"""What tests of groups share: one of this process alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from convcore import distributed as dist


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A group of this process, as if mpi4py were not installed."""
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    dist.init_process_group("mpi")
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
