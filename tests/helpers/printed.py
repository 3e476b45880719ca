"""What two runs of a program printed: texts and integers alike, floats within rounding."""

from __future__ import annotations

import re

# Rounding differs in the last digits, and grows with the steps: floats may differ by this part of
# the larger one, or by one in the last place that is printed.  All else is equal.
RTOL = 1e-4
FLOAT = re.compile(r"[-+]?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)")


def assert_same_numbers(ours: str, theirs: str) -> None:
    """Compare what two runs printed: floats within rounding, integers and texts exactly."""
    assert "".join(FLOAT.sub("#", ours).split()) == "".join(FLOAT.sub("#", theirs).split())
    for a, b in zip(FLOAT.findall(ours), FLOAT.findall(theirs), strict=True):
        places = min(last_place(a), last_place(b)), RTOL * max(abs(float(a)), abs(float(b)))
        assert abs(float(a) - float(b)) <= 1.01 * max(places), f"{a} is not {b}\n{ours}\n{theirs}"


def last_place(number: str) -> float:
    """Return what one in the last place of a printed number is worth."""
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
