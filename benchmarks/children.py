"""Helpers of these benchmarks: run code in a fresh process, check a result against a limit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from convcore.bench.process import worker_environment
from convcore.engine.runtime.cpus import cpu_limit


def run_child(code: str, *arguments: str, threads: int | None = None) -> str:
    """Run Python code in a process of its own, no library held back; return what it printed."""
    environment = worker_environment(os.environ, threads or cpu_limit())
    # An import that may not keep its bytecode compiles every time: that is not what users see.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    child = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return child.stdout


def check_requested(description: str) -> bool:
    """Read the command line: whether a number over its limit is to be a failure."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is exceeded")
    return parser.parse_args().check


def conclude(name: str, value: float, limit: float, unit: str, check: bool) -> int:
    """Print a number beside its limit; return the exit code."""
    within = value <= limit
    print(f"{name}: {value:.3g}{unit}, limit {limit:g}{unit}: {'ok' if within else 'OVER'}")
    return 1 if check and not within else 0
