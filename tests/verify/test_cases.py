"""Cases of the self-check: the same again from their text, and of every kind."""

import itertools

import numpy as np
import pytest

from convcore.verify.cases import DTYPES, LAYOUTS, VALUES, draw_cases, parse_case


def drawn(count, seed=0):
    return list(itertools.islice(draw_cases(seed), count))


def test_a_case_is_made_again_from_its_text():
    for case in drawn(300):
        again = parse_case(case.text)
        assert again.text == case.text
        assert again.layer.geometry == case.layer.geometry
    first, second = drawn(170)[-1].operands(), parse_case(drawn(170)[-1].text).operands()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
        assert array.strides == second[name].strides


def test_every_kind_is_drawn_and_seeds_differ():
    cases = drawn(500)
    assert {case.dtype for case in cases} == set(DTYPES)
    assert {case.values for case in cases} == set(VALUES)
    assert {layout for case in cases for layout in case.layouts} == set(LAYOUTS)
    assert any(case.layer.groups > 1 for case in cases)
    assert [case.text for case in cases] == [case.text for case in drawn(500)]
    assert [case.text for case in cases[-9:]] != [case.text for case in drawn(500, seed=1)[-9:]]


def test_operands_lie_as_their_layouts_say():
    text = "2,4,5,6,3,3 float64 unaligned/reversed/strided normal 7"
    arrays = parse_case(text).operands()
    plain = parse_case(text.replace("unaligned/reversed/strided", "/".join(["contiguous"] * 3)))
    assert not arrays["input"].flags.aligned
    assert arrays["weight"].strides[-1] == -8
    assert arrays["grad_output"].strides[-1] == 16
    for name, array in plain.operands().items():
        np.testing.assert_array_equal(arrays[name], array)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,3,4,4,4,2 float32", "5 words"),
        ("1,3,4,4,4,2 float16 strided/strided/strided normal 1", "got 'float16'"),
        ("1,3,4,4,4,2 float32 strided/strided normal 1", "a layout for each of"),
        ("1,3,4,4,4,2 float32 strided/odd/strided normal 1", "got 'odd'"),
        ("1,3,4,4,4,2 float32 strided/strided/strided normal -1", "seed must be"),
        ("1,3,4,4,4,9 float32 strided/strided/strided normal 1", "ernel size"),
    ],
)
def test_a_wrong_text_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        parse_case(text)
