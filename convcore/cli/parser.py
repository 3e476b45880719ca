"""The parser that every command is of: its errors are its own, and name what may be meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose commands refuse what they do not know, each under its own name.

    Half an option is not known: a misspelt one would start something else.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse; refuse what is left, which argparse would hand up to the whole command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self._refuse(rest)
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Exit with the message; where a word is missing that has choices, name them."""
        missing = "the following arguments are required: "
        if message.startswith(missing):
            names = message.removeprefix(missing).split(", ")
            for action in self._actions:
                if action.choices is not None and (action.metavar or action.dest) in names:
                    allowed = ", ".join(map(str, action.choices))
                    message += f"; {action.metavar or action.dest} is one of {allowed}"
        super().error(message)

    def _refuse(self, rest: Sequence[str]) -> NoReturn:
        known = set(re.findall(r"--[a-z][a-z-]*", self.format_help())) - {"--help"}
        hints = "".join(nearest(word.partition("=")[0], known) for word in rest[:1])
        hints = hints or self._option_of_numbers(rest) or self._option_of_name(rest[0])
        if not hints and any(action.dest == "program" for action in self._actions):
            hints = "; a program's own options stand after its name"
        self.error(f"unrecognized arguments: {' '.join(rest)}{hints}")

    def _option_of_numbers(self, rest: Sequence[str]) -> str:
        """Return a question that names the option for numbers such as 1,3,224,224, if it is one."""
        if all(map(str.isdecimal, rest)):
            return "; several numbers are one word, with commas and no spaces"
        for word in rest:
            if re.fullmatch(r"\d+(,\d+)+", word):
                fitting = [
                    next(name for name in action.option_strings if name.startswith("--"))
                    for action in self._actions
                    if action.option_strings and str(action.metavar).count(",") == word.count(",")
                ]
                return f"; did you mean {fitting[0]} {word}?" if len(fitting) == 1 else ""
        return ""

    def _option_of_name(self, word: str) -> str:
        """Return a question that names the options whose help speaks of a word."""
        found = [
            next(name for name in action.option_strings if name.startswith("--"))
            for action in self._actions
            if action.metavar and action.option_strings
            if re.search(rf"[\s(]{re.escape(word)}(?=[\s,);]|$)", action.help or "")
        ]
        return f"; did you mean {' or '.join(f'{one} {word}' for one in found)}?" if found else ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is no choice; argparse calls this for commands and options."""
        if action.choices is not None and value not in action.choices:
            allowed = ", ".join(map(str, action.choices))
            hint = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(action, f"{value!r} is none of {allowed}{hint}")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question that names the known word nearest to another; nothing if none is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
