"""Work in a forked child of the process that runs the tests."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable

SECONDS = 60


def in_fork(compute: Callable[[], str]) -> str:
    """Return what a forked child computes; one that fails or hangs ends, and says where."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: our subject
        child = os.fork()
    if child == 0:
        try:
            # Not dump_traceback_later(): pytest's is on, and its thread is not in this process.
            faulthandler.register(signal.SIGALRM, file=sys.__stderr__, chain=True)
            signal.alarm(SECONDS)
            os.write(writer, compute().encode())
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer
