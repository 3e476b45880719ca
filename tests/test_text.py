"""Text from files is printed without control characters, and not without end."""

import pytest

from convcore._errors.text import printable

HOSTILE = ["\x1b]0;title\x07", "a\nb", "\r", "\u202egpj.exe", "\x9b31m", "\ud800", "\u2028", "\x00"]


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_nothing_that_controls_a_terminal_is_left(text):
    shown = printable(text)
    assert shown.isprintable() and "\\" in shown
    assert printable(shown) == shown


@pytest.mark.parametrize("text", ["", "plain", "größer 猫", r"C:\net.pt", "a b"])
def test_what_can_be_printed_stays(text):
    assert printable(text) == text


def test_a_long_text_keeps_its_ends():
    shown = printable("a" + "\x1b" * 10**6 + "z")
    assert shown[0] == "a" and shown[-1] == "z" and len(shown) < 1000
