"""A short wait for other ranks does not sleep; a long one leaves the core to others."""

import time

import pytest

from convcore.distributed import faults


class Request:
    """A request that is done at a time."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def Test(self):
        return time.monotonic() >= self.end


@pytest.fixture
def sleeps(monkeypatch):
    own, found = time.sleep, []

    def sleep(seconds):
        found.append(seconds)
        own(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    return found


def test_a_short_wait_does_not_sleep(sleeps, monkeypatch):
    monkeypatch.setattr(faults, "_YIELDING_TIME", 60)
    faults.wait(Request(0.01), "a test", None, 60)
    assert sleeps == []


def test_a_long_wait_sleeps(sleeps):
    faults.wait(Request(faults._YIELDING_TIME + 0.1), "a test", None, 60)
    assert sleeps and set(sleeps) == {faults._SLEEP}


def test_a_wait_ends_at_its_limit():
    with pytest.raises(faults.DistBackendError, match=r"for more than 0\.2 s: a test at step"):
        faults.wait(Request(60), "a test", None, 0.2)
