"""PyTorch's errors in the tests that compare whole texts, as `torch_errors.json` records them.

The file names the version of PyTorch that raised them. Where that version runs, each text is
compared with what it raises; with another version the recorded text is what convcore must say.
`pytest -m torch --renew-errors` writes the file anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_suffix(".json")


class Errors:
    """The recorded errors by test, each (name of the class, text), in the order of its calls."""

    def __init__(self) -> None:
        found = json.loads(RECORD.read_text(encoding="utf-8"))
        self.version: str = found["version"]
        self.by_test: dict[str, list[list[str]]] = found["errors"]
        self.renewed: dict[str, list[list[str]]] | None = None
        self.test, self.count = "", 0

    def of(self, torch: Any, raised: Callable[[], tuple[str, str]]) -> tuple[str, str]:
        """Return the error of this call: ``raised`` tells what PyTorch raises now."""
        test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
        self.count = self.count + 1 if test == self.test else 0
        self.test = test
        version = torch.__version__.partition("+")[0]
        if self.renewed is not None:
            self.version = version
            told = raised()
            self.renewed.setdefault(test, []).append(list(told))
            return told
        recorded = [tuple(error) for error in self.by_test.get(test, [])]
        known = recorded[self.count] if self.count < len(recorded) else None
        if known and version != self.version:
            return known
        told = raised()
        assert told == known or version != self.version, (
            f"{RECORD.name} has {known}, not {told}: pytest -m torch --renew-errors writes it anew"
        )
        return told

    def renew(self) -> None:
        """Record the errors of this run."""
        self.renewed = {}

    def save(self) -> None:
        """Write what was renewed, beside what is recorded of tests that did not run."""
        if self.renewed:
            errors = sorted((self.by_test | self.renewed).items())
            lines = ",\n".join(f"{json.dumps(test)}: {json.dumps(told)}" for test, told in errors)
            text = f'{{"version": "{self.version}", "errors": {{\n{lines}\n}}}}\n'
            RECORD.write_text(text, encoding="utf-8")


errors = Errors()
