"""Contexts made of generator functions undo what they changed, whatever ends the block."""

from __future__ import annotations

import pytest

from convcore.engine.runtime.restoring import restoring, together


@restoring
def named(names, name, value):
    """Give a name to a value in a dict."""
    yield ((dict.pop, (names, name, None)),)
    names[name] = value
    return value


@restoring
def failing(names):
    """Raise in the middle of the changes."""
    yield ((dict.clear, (names,)),)
    names["half"] = 1
    raise KeyError("half")


@restoring
def twice():
    """Yield once more than a context may."""
    yield ()
    yield ()


def test_change_is_undone_at_the_end_and_after_an_error():
    names = {}
    with named(names, "a", 1) as value:
        assert value == 1
        assert names == {"a": 1}
    assert names == {}
    with pytest.raises(ZeroDivisionError), named(names, "a", 1):
        raise ZeroDivisionError
    assert names == {}


def test_change_that_raises_halfway_is_undone():
    names = {}
    with pytest.raises(KeyError, match="half"), failing(names):
        pass
    assert names == {}


def test_context_is_a_decorator_that_may_be_called_within_itself():
    names, seen = {}, []

    @named(names, "a", 1)
    def call(depth):
        seen.append(dict(names))
        if depth:
            call(depth - 1)

    call(1)
    assert seen == [{"a": 1}] * 2
    assert names == {}


def test_contexts_together_are_undone_last_first():
    order = []

    @restoring
    def noted(name):
        yield ((order.append, (name,)),)

    with together(noted("a"), noted("b")):
        assert order == []
    assert order == ["b", "a"]


def test_second_yield_is_an_error():
    with pytest.raises(RuntimeError, match="yields more than once"), twice():
        pass
