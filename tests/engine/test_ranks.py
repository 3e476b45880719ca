"""One function under its names for 1, 2 and 3 axes: what a caller sees of each."""

from __future__ import annotations

import inspect
import pickle

import pytest

from convcore import engine
from convcore.engine.ranks import of_rank


def _gathered(rank: int, a: int, b: int = 2, *, c: str = "c") -> tuple:
    return rank, a, b, c


@of_rank(2, _gathered)
def gathered2d() -> None:
    """Gather in two dimensions."""


@of_rank(3, _gathered)
def gathered3d() -> None:
    """Gather in three dimensions."""


def test_the_rank_comes_first_and_arguments_follow():
    assert gathered2d(1) == (2, 1, 2, "c")
    assert gathered3d(1, b=5, c="d") == (3, 1, 5, "d")
    assert gathered3d(a=1) == (3, 1, 2, "c")


def test_the_signature_is_the_functions_without_the_rank():
    _, *rest = inspect.signature(_gathered).parameters.values()
    assert list(inspect.signature(gathered2d).parameters.values()) == rest
    assert inspect.signature(gathered2d).return_annotation == "tuple"


def test_name_docstring_and_file_are_the_stubs():
    assert gathered2d.__name__ == "gathered2d"
    assert gathered2d.__doc__ == "Gather in two dimensions."
    assert gathered2d.__module__ == __name__
    assert gathered2d.__code__.co_filename == _gathered.__code__.co_filename
    assert "Gather in two" in "".join(inspect.getsourcelines(gathered2d)[0])


def test_wrong_arguments_are_refused_under_the_new_name():
    with pytest.raises(TypeError, match=r"gathered2d\(\) missing 1 required .*'a'"):
        gathered2d()
    with pytest.raises(TypeError, match=r"gathered3d\(\) takes from 1 to 2 positional"):
        gathered3d(1, 2, 3)
    with pytest.raises(
        TypeError, match=r"gathered2d\(\) got an unexpected keyword argument 'rank'"
    ):
        gathered2d(1, rank=1)


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv_transpose3d"])
def test_a_function_is_pickled_by_its_name(name):
    function = getattr(engine, name)
    assert pickle.loads(pickle.dumps(function)) is function
