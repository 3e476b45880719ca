#!/usr/bin/env python
"""Calls of the engine on arrays, drawn by coverage, by atheris (`pip install atheris`, on Linux).

    python tests/fuzz/guided_engine.py FOLDER -runs=1000000 -max_len=256

`engine_calls.py` says what a call is made of.  FOLDER keeps what has reached something new, and
starts with what `seed_files.py` keeps; an input that fails is written to a file, which libFuzzer
names.
"""

from __future__ import annotations

import sys
import warnings

import atheris

with atheris.instrument_imports(include=["convcore.engine"]):
    import engine_calls
import seed_files


def main() -> None:
    warnings.simplefilter("ignore")
    engine_calls.limit_memory()
    seed_files.unpack("engine", sys.argv[1:])
    atheris.Setup(sys.argv, lambda content: engine_calls.call(content) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
