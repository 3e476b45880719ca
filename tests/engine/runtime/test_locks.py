"""Locks of the process: reentrant, and free in a forked child."""

import os

import pytest

from convcore.engine.runtime.locks import process_lock


def test_a_thread_takes_its_lock_again():
    lock = process_lock()
    with lock, lock:
        pass
    assert lock.acquire(blocking=False)
    lock.release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.subprocess
def test_a_lock_that_another_thread_held_at_the_fork_is_free_in_the_child(run_child):
    out = run_child("""if True:
    import os, threading, warnings
    from convcore.engine.runtime.locks import process_lock

    lock, held, forked = process_lock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            forked.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
    pid = os.fork()
    if pid == 0:
        os._exit(0 if lock.acquire(timeout=20) else 1)
    status = os.waitpid(pid, 0)[1]
    assert not lock.acquire(blocking=False)  # the parent's is as it was
    forked.set()
    thread.join()
    print(os.waitstatus_to_exitcode(status))
    """)
    assert out.split() == ["0"]
