"""What counts as an int where one is asked for."""

import numpy as np
import pytest

import convcore
from convcore.engine.integers import as_dim, as_int, as_ints


@pytest.mark.parametrize("value", [3, np.int16(3), np.array(3), convcore.tensor(3)])
def test_what_stands_for_an_int_becomes_a_plain_one(value):
    for found in (as_int(value), as_dim(value), *as_ints([value, value])):
        assert found == 3 and type(found) is int


@pytest.mark.parametrize("value", [True, 3.0, "3", None, [3], np.float32(3)])
def test_others_are_refused(value):
    for read in (as_int, lambda value: as_ints([value])):
        with pytest.raises(TypeError):
            read(value)
    with pytest.raises(TypeError, match=f"'dim' must be int, not {type(value).__name__}"):
        as_dim(value)


def test_of_several_only_the_first_may_not_be_a_bool():
    assert as_ints([2, True]) == (2, 1) and as_ints([]) == ()
    with pytest.raises(TypeError, match="'bool' object cannot be interpreted"):
        as_ints([True, 2])
