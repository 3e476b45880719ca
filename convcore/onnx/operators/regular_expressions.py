"""Regular expressions of RE2's syntax, matched in a time linear in the text.

A pattern becomes a program of a nondeterministic automaton (Thompson's construction).  All its
states are followed at once, so that no pattern makes a text be read twice.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from convcore.onnx.errors import OnnxError
from convcore.onnx.naming import quoted

_MAX_REPEAT = 1000  # RE2's
_MAX_STATES = 20_000
_MAX_NESTING = 50  # groups in one another; RE2 has 1000
_MAX_SAVED = 10_000  # transitions of one pattern

_Test = Callable[[str], bool]

_ASCII = {
    "alnum": ("09", "AZ", "az"),
    "alpha": ("AZ", "az"),
    "ascii": ("\x00\x7f",),
    "blank": ("\t\t", "  "),
    "cntrl": ("\x00\x1f", "\x7f\x7f"),
    "digit": ("09",),
    "graph": ("!~",),
    "lower": ("az",),
    "print": (" ~",),
    "punct": ("!/", ":@", "[`", "{~"),
    "space": ("\t\r", "  "),
    "upper": ("AZ",),
    "word": ("09", "AZ", "az", "__"),
    "xdigit": ("09", "AF", "af"),
}
_PERL = {"d": ("09",), "s": ("\t\n", "\f\r", "  "), "w": _ASCII["word"]}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class _State(NamedTuple):
    """A state: reads a character that passes the test, or holds where the assertion does.

    A state of neither kind leads to all of ``nexts`` without reading.
    """

    nexts: tuple[int, ...]
    test: _Test | None = None
    assertion: str = ""


def _in_ranges(*ranges: str) -> _Test:
    return lambda c: any(each[0] <= c <= each[1] for each in ranges)


def _negated(test: _Test) -> _Test:
    return lambda c: not test(c)


def _any_of(tests: list[_Test]) -> _Test:
    return lambda c: any(test(c) for test in tests)


def _folded(test: _Test) -> _Test:
    """Return a test that ignores case."""
    return lambda c: test(c) or any(len(v) == 1 and test(v) for v in (c.lower(), c.upper()))


_is_word = _in_ranges(*_ASCII["word"])


class RegularExpression:
    """A regular expression of RE2's syntax.

    Raises
    ------
    OnnxError
        The pattern is not one of RE2's, is larger than a program of 20,000 states, or has a
        Unicode script (categories are supported).

    Examples
    --------
    >>> RegularExpression("(a|a)+").full_match("a" * 1000)
    True
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._at, self._depth = 0, 0
        self._flags = frozenset[str]()
        # State 0 is the end: built backwards, each part is given the state that follows it.
        self._states = [_State(())]
        self._begin = self._alternatives()(0)
        if self._at < len(pattern):
            raise self._error("unexpected )")
        self._asserts = any(state.assertion for state in self._states)
        self._saved: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def full_match(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        states, before = frozenset((self._begin,)), ""
        for c in text:
            key = (states, before, c)
            found = self._saved.get(key)
            if found is None:
                if len(self._saved) >= _MAX_SAVED:
                    self._saved.clear()
                reached = (self._states[k] for k in self._closure(states, before, c))
                found = frozenset(s.nexts[0] for s in reached if s.test is not None and s.test(c))
                self._saved[key] = found
            if not found:
                return False
            states, before = found, c if self._asserts else ""
        return 0 in self._closure(states, before, "")

    def _closure(self, states: frozenset[int], before: str, after: str) -> set[int]:
        """Return the states reached without reading, between two characters."""
        seen, rest = set(states), list(states)
        while rest:
            state = self._states[rest.pop()]
            if state.test is None and (not state.assertion or _holds(state, before, after)):
                new = [k for k in state.nexts if k not in seen]
                seen.update(new)
                rest += new
        return seen

    # Parsing: each part is a function from the state after it to its first state.

    def _error(self, reason: str) -> OnnxError:
        return OnnxError(f"regular expression {quoted(self.pattern)}: {reason} at {self._at}")

    def _add(self, *nexts: int, test: _Test | None = None, assertion: str = "") -> int:
        if len(self._states) >= _MAX_STATES:
            raise self._error(f"more than {_MAX_STATES} states")
        self._states.append(_State(nexts, test, assertion))
        return len(self._states) - 1

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        if self._at >= len(self.pattern):
            raise self._error("unexpected end")
        self._at += 1
        return self.pattern[self._at - 1]

    def _alternatives(self) -> _Part:
        flags, parts = self._flags, [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        self._flags = flags
        if len(parts) == 1:
            return parts[0]
        return lambda after: self._add(*[part(after) for part in parts])

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._at < len(self.pattern) and self.pattern[self._at] not in "|)":
            if self._take(r"\Q"):
                end = self.pattern.find(r"\E", self._at)
                end = len(self.pattern) if end < 0 else end
                parts += [self._character(_in_ranges(c + c)) for c in self.pattern[self._at : end]]
                self._at = min(end + 2, len(self.pattern))
                if parts:
                    parts[-1] = self._repeated(parts[-1])
                continue
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part))

        def build(after: int) -> int:
            for part in reversed(parts):
                after = part(after)
            return after

        return build

    def _atom(self) -> _Part | None:
        if self._counts() is not None:
            raise self._error("no argument for a repetition")
        c = self._next()
        if c == "(":
            return self._group()
        if c == "[":
            return self._character(self._set())
        if c == ".":
            return self._character(
                (lambda _: True) if "s" in self._flags else _negated(_in_ranges("\n\n"))
            )
        if c in "^$":
            return self._assertion(c if "m" in self._flags else {"^": "A", "$": "z"}[c])
        if c == "\\":
            if self.pattern[self._at : self._at + 1] in ("A", "z", "b", "B"):
                return self._assertion(self._next())
            test = self._escaped_class()
            if test is not None:
                return self._character(test)
            c = self._escaped()
        return self._character(_in_ranges(c + c))

    def _character(self, test: _Test) -> _Part:
        test = _folded(test) if "i" in self._flags else test
        return lambda after: self._add(after, test=test)

    def _assertion(self, kind: str) -> _Part:
        return lambda after: self._add(after, assertion=kind)

    def _group(self) -> _Part | None:
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                name = self.pattern[self._at :].partition(">")
                if not name[1] or not name[0] or not all(map(_is_word, name[0])):
                    raise self._error("invalid name of a group")
                self._at += len(name[0]) + 1
            else:
                flags, sign = set(self._flags), True
                while (c := self._next()) not in ":)":
                    if c == "-" and sign:
                        sign = False
                    elif c in "imsU":
                        (flags.add if sign else flags.discard)(c)
                    else:
                        raise self._error("invalid group or flag")
                if c == ")":
                    self._flags = frozenset(flags)
                    return None
                return self._rest_of_group(frozenset(flags))
        return self._rest_of_group(self._flags)

    def _rest_of_group(self, flags: frozenset[str]) -> _Part:
        before, self._flags = self._flags, flags
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise self._error(f"more than {_MAX_NESTING} groups in one another")
        part = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise self._error("missing )")
        self._flags = before
        return part

    def _repeated(self, part: _Part) -> _Part:
        """Return a part with the repetition that follows it."""
        counts = self._counts()
        if counts is None:
            return part
        self._take("?")  # the shortest match first: of the same texts
        if self._counts() is not None:
            raise self._error("a repetition of a repetition")
        low, high = counts

        def build(after: int) -> int:
            if high is None:
                loop = self._add()
                self._states[loop] = _State((part(loop), after))
                after = loop
            else:
                end = after
                for _ in range(high - low):
                    after = self._add(part(after), end)
            for _ in range(low):
                after = part(after)
            return after

        return build

    def _counts(self) -> tuple[int, int | None] | None:
        """Take a repetition; return the least and the greatest number, None for no limit."""
        for text, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(text):
                return counts
        text, end, _ = self.pattern[self._at :].partition("}")
        first, comma, last = text[1:].partition(",")
        numbers = [first, last] if comma and last else [first]
        if not end or text[:1] != "{" or not all(n.isascii() and n.isdigit() for n in numbers):
            return None
        self._at += len(text) + 1
        if any(len(n) > 4 or int(n) > _MAX_REPEAT for n in numbers):
            raise self._error(f"a repetition of more than {_MAX_REPEAT}")
        low, high = int(first), None if comma and not last else int(numbers[-1])
        if high is not None and high < low:
            raise self._error("an empty range of repetitions")
        return low, high

    def _set(self) -> _Test:
        is_negated, tests, is_first = self._take("^"), [], True
        while is_first or not self._take("]"):
            is_first = False
            if self._take("[:"):
                name, end, _ = self.pattern[self._at :].partition(":]")
                ranges = _ASCII.get(name.removeprefix("^"))
                if not end or ranges is None:
                    raise self._error("invalid class")
                self._at += len(name) + 2
                test = _in_ranges(*ranges)
                tests.append(_negated(test) if name.startswith("^") else test)
                continue
            first = self._next()
            if first == "\\":
                known = self._escaped_class()
                if known is not None:
                    tests.append(known)
                    continue
                first = self._escaped()
            last = first
            if self.pattern[self._at : self._at + 1] == "-" and self.pattern[
                self._at + 1 : self._at + 2
            ] not in ("]", ""):
                self._at += 1
                last = self._next()
                last = self._escaped() if last == "\\" else last
                if last < first:
                    raise self._error("an empty range of characters")
            tests.append(_in_ranges(first + last))
        test = _any_of(tests)
        if "i" in self._flags:
            test = _folded(test)
        return _negated(test) if is_negated else test

    def _escaped_class(self) -> _Test | None:
        r"""Take a class after a backslash, as in \d and \pL; return None where there is none."""
        c = self.pattern[self._at : self._at + 1]
        if c.lower() in _PERL:
            self._at += 1
            perl = _in_ranges(*_PERL[c.lower()])
            return perl if c.islower() else _negated(perl)
        if c not in ("p", "P"):
            return None
        self._at += 1
        name = self._next()
        if name == "{":
            name, end, _ = self.pattern[self._at :].partition("}")
            self._at += len(name) + len(end)
        is_negated = (c == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name not in _CATEGORIES:
            raise self._error("a Unicode class that is not supported")
        category = "" if name == "Any" else name
        return lambda c: unicodedata.category(c).startswith(category) != is_negated

    def _escaped(self) -> str:
        """Return the character that follows a backslash."""
        c = self._next()
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c == "x":
            digits = self._next()
            if digits == "{":
                digits, end, _ = self.pattern[self._at :].partition("}")
                self._at += len(digits) + len(end)
            else:
                digits += self._next()
            try:
                return chr(int(digits, 16))
            except (OverflowError, ValueError):
                raise self._error("an invalid character number") from None
        if c in "01234567":
            more = self.pattern[self._at : self._at + 2]
            more = more[: 2 - len(more.lstrip("01234567"))] if more[:1] in tuple("01234567") else ""
            if c != "0" and not more:
                raise self._error("references to groups are not supported")
            self._at += len(more)
            return chr(int(c + more, 8))
        if c.isascii() and not c.isalnum():
            return c
        raise self._error("an invalid escape sequence")


# From the state after a part to its first state.
_Part = Callable[[int], int]
_CATEGORIES = frozenset(
    (
        *(
            "Any",
            "C",
            "Cc",
            "Cf",
            "Co",
            "Cs",
            "L",
            "Ll",
            "Lm",
            "Lo",
            "Lt",
            "Lu",
            "M",
            "Mc",
            "Me",
            "Mn",
        ),
        *("N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"),
        *("S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    )
)


def _holds(state: _State, before: str, after: str) -> bool:
    """Return whether an assertion holds between two characters, '' at the text's ends."""
    match state.assertion:
        case "A":
            return not before
        case "z":
            return not after
        case "^":
            return before in ("", "\n")
        case "$":
            return after in ("", "\n")
        case "b":
            return _is_word_at(before) != _is_word_at(after)
    return _is_word_at(before) == _is_word_at(after)


def _is_word_at(c: str) -> bool:
    return bool(c) and _is_word(c)
