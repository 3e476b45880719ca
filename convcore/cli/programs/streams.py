"""Programs from a stream, standard input or a pipe: read once, and run as ``__main__``."""

from __future__ import annotations

import importlib.util
import linecache
import os
import stat
import sys
from pathlib import Path
from types import ModuleType

STANDARD_INPUT = "-"


def is_stream(path: str) -> bool:
    """Return whether a program can be read only once, as `runpy` does not read one."""
    if path == STANDARD_INPUT:
        return True
    mode = os.stat(path).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def run_stream(path: str) -> None:
    """Run a program that is read from a stream, with Python's names for where it came from."""
    is_input = path == STANDARD_INPUT
    source = sys.stdin.buffer.read() if is_input else Path(path).read_bytes()
    name = "<stdin>" if is_input else path
    code = compile(source, name, "exec", dont_inherit=True)
    # Tracebacks cannot open the stream again.
    lines = importlib.util.decode_source(source).splitlines(keepends=True)
    linecache.cache[name] = (len(source), None, lines, name)
    main = ModuleType("__main__")
    if not is_input:
        main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, main.__dict__)
