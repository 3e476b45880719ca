"""Tables that are kept: found again, and let go by bytes, first those not used for longest."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from convcore.engine.runtime import tables


class Made(NamedTuple):
    name: str
    table_bytes: int


@pytest.fixture(autouse=True)
def nothing_kept():
    tables.clear()
    yield
    tables.clear()


@tables.kept_tables
def made(name, size):
    return Made(name, size)


@tables.kept_tables
def others(name, size):
    return Made(name, size)


def test_what_was_made_is_found_again_by_maker_and_key():
    one = made("a", 10)
    assert made("a", 10) is one
    assert others("a", 10) is not one
    assert made("a", 11) is not one
    assert tables.kept_bytes() == 3 * tables.LEAST_BYTES
    made.cache_clear()
    assert tables.kept_bytes() == 0
    assert made("a", 10) is not one


def test_of_all_makers_what_was_not_used_for_longest_goes_first():
    third = tables.MOST_BYTES // 3
    a, b, c = made("a", third), others("b", third), made("c", third)
    assert made("a", third) is a
    d = others("d", third)
    assert tables.kept_bytes() == 3 * third
    assert [made("a", third) is a, made("c", third) is c, others("d", third) is d] == [True] * 3
    assert others("b", third) is not b


def test_what_is_larger_than_all_that_may_be_kept_lets_nothing_go():
    small, large = made("a", 1), made("b", tables.MOST_BYTES + 1)
    assert made("a", 1) is small
    assert made("b", tables.MOST_BYTES + 1) is not large


def test_small_ones_are_bounded_in_number():
    for name in range(3 * tables.MOST_BYTES // tables.LEAST_BYTES // 2):
        made(name, 0)
    assert tables.kept_bytes() == tables.MOST_BYTES
    assert len(tables._kept) == tables.MOST_BYTES // tables.LEAST_BYTES
