"""Futures: values that come later."""

import pickle
import threading

import pytest

import convcore.futures  # noqa: F401  # PyTorch's is loaded with it


def test_a_value_is_waited_for(lib):
    future = lib.futures.Future()
    threading.Timer(0.05, future.set_result, (3,)).start()
    assert not future.done() and future.wait() == 3 and future.done() and future.value() == 3


def test_callbacks_are_called_once_done(lib):
    seen = []
    future = lib.futures.Future()
    chained = future.then(lambda done: done.value() + 1).then(lambda done: done.value() * 2)
    future.add_done_callback(lambda done: seen.append(done.value()))
    assert not seen and not chained.done()
    future.set_result(3)
    future.add_done_callback(lambda done: seen.append(done.wait()))
    assert seen == [3, 3] and chained.wait() == 8


def test_exceptions_are_raised_where_the_value_is_asked_for(lib):
    future = lib.futures.Future()
    future.set_exception(ValueError("here"))
    for ask in (future.wait, future.value, lib.futures.collect_all([future]).wait):
        with pytest.raises(ValueError, match="here"):
            ask()
    with pytest.raises(RuntimeError, match="running the callback: ValueError: here"):
        future.then(lambda done: done.value()).wait()


def test_several_are_waited_for(lib):
    first, second = lib.futures.Future(), lib.futures.Future()
    whole = lib.futures.collect_all([first, second])
    first.set_result(1)
    assert not whole.done()
    second.set_result(2)
    assert [future.value() for future in whole.wait()] == [1, 2]
    assert lib.futures.wait_all([first, second]) == [1, 2] and lib.futures.wait_all([]) == []


def test_misuse_is_an_error(lib):
    future = lib.futures.Future()
    with pytest.raises(RuntimeError):
        future.value()
    with pytest.raises(AssertionError, match="no is of type <class 'str'>, not an Exception"):
        future.set_exception("no")
    future.set_result(1)
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        future.set_result(1)
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(future)
    with pytest.raises(RuntimeError, match="Future can't be None"):
        lib.futures.wait_all([future, None])
