"""Every argument of a function of a wrong type: refused by its name; the short form.

The long form is ``python tests/fuzz/wrong_types.py``.
"""

import pytest
from scripts import fuzz_script

wrong_types = fuzz_script("wrong_types")


NAMES = ("cat", "masked_fill", "narrow", "quantile", "roll", "topk")


@pytest.mark.subprocess
def test_wrong_types_are_refused_by_the_name_of_the_argument(torch, tmp_path):
    assert wrong_types.SWEEP.hunt(",".join(NAMES), True, tmp_path) == []


def test_each_function_has_a_right_call():
    for name in NAMES:
        functions = {place.function for place in wrong_types.places(name)}
        assert functions
        assert all(wrong_types.right_call(function) is not None for function in functions)


def test_one_argument_alone_is_changed():
    (place,) = [one for one in wrong_types.places("roll") if str(one) == "roll(shifts)"]
    seed = wrong_types.right_call(place.function)
    _, right, _ = wrong_types._right(place.function, seed)
    _, wrong, _ = wrong_types._drawn(place, seed, "2")
    assert wrong[1] == "2" and right[1] != "2"
    assert wrong[0].array.tobytes() == right[0].array.tobytes()


@pytest.mark.parametrize(
    ("text", "is_unclear"),
    [
        ("'int' object is not iterable", True),
        ("'<' not supported between instances of 'str' and 'int'", True),
        ("roll(): argument 'shifts' must be tuple of ints, not str", False),
        ("expected Tensor as element 0 in argument 0, but got str", False),
        ("shifts and dimensions must align", False),
    ],
)
def test_texts_are_judged_by_whose_words_they_are(text, is_unclear):
    (place,) = [one for one in wrong_types.places("roll") if str(one) == "roll(shifts)"]
    assert bool(wrong_types._unclear(place, TypeError(text))) == is_unclear
