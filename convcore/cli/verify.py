"""``convcore verify``: check every convolution algorithm on this machine against the oracle."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from convcore.bench.process import ISAS
from convcore.cli.errors import UsageError, seed
from convcore.cli.machine import cpu_name
from convcore.cli.terminal import fitted

if TYPE_CHECKING:
    from convcore.verify.runner import Findings

_SHORT, _LONG = 36.0, 3600.0


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``verify`` to the parser."""
    parser = commands.add_parser(
        "verify",
        help="check every algorithm on this machine against a float64 oracle",
        description="Compute drawn convolutions and both their gradients by every algorithm, for "
        "each instruction set that this build and processor have. Errors are compared with the "
        "oracle's float64; bits between numbers of threads, settings of BLAS, and a forked child. "
        "Prints the largest error of each algorithm, and for each failure the command that shows "
        "it again. Exit code 1 if anything is wrong.",
    )
    parser.add_argument("--long", action="store_true", help="an hour instead of under a minute")
    parser.add_argument("--seconds", type=float, metavar="S", help="so long, in all")
    parser.add_argument("--seed", type=seed, default=0, help="of the drawn cases; default 0")
    parser.add_argument("--isa", choices=ISAS[1:], help="only this instruction set")
    parser.add_argument("--case", metavar="TEXT", help="only this case, as a failure prints it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what is checked, the largest errors and the failures."""
    from convcore.verify import cases, runner

    available = runner.instruction_sets()
    if arguments.isa and arguments.isa not in available:
        raise UsageError(f"this build on this processor has {', '.join(available)}")
    isas = [arguments.isa] if arguments.isa else available
    print(f"{cpu_name()}; instruction sets: {', '.join(isas)}", flush=True)
    start = time.monotonic()
    if arguments.case is not None:
        try:
            case = cases.parse_case(arguments.case)
        except ValueError as error:
            raise UsageError(str(error)) from None
        found = [runner.verify_cases(isa, [case]) for isa in isas]
    else:
        seconds = _seconds(arguments) / len(isas)
        found = [runner.verify(isa, seconds, arguments.seed, _progress) for isa in isas]
    print(fitted("\n".join(_lines(found, time.monotonic() - start))))
    return int(any(findings.failures for findings in found))


def _seconds(arguments: argparse.Namespace) -> float:
    seconds = arguments.seconds
    if seconds is None:
        return _LONG if arguments.long else _SHORT
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"--seconds must be a number from 0, got {seconds:g}")
    return seconds


def _progress(findings: Findings) -> None:
    """Show on a terminal how far an instruction set has come."""
    if sys.stderr.isatty():
        end = "\r" if not findings.failures else "\n"
        print(f"  {findings.isa}: {findings.cases} cases", end=end, file=sys.stderr, flush=True)


def _lines(found: list[Findings], seconds: float) -> Iterator[str]:
    """Yield the table of errors, the failures, and how much was checked."""
    yield "\nLargest error, in eps of the dtype, out of the largest sum of absolute products."
    yield "Where all numbers have one sign, errors grow with the root of the number of terms.\n"
    yield f"{'':32}{''.join(f'{findings.isa:>9}' for findings in found)}"
    for row in sorted(set().union(*(findings.largest for findings in found))):
        errors = (findings.largest.get(row) for findings in found)
        yield f"{row:32}" + "".join(f"{'-' if e is None else f'{e:.2f}':>9}" for e in errors)
    failures = [failure for findings in found for failure in findings.failures]
    for failure in failures:
        yield f"\nWRONG  {failure.isa}  {failure.what}\n       {failure.command}"
    cases, results, forks = (
        sum(getattr(findings, name) for findings in found) for name in ("cases", "results", "forks")
    )
    yield (
        f"\n{cases:,} convolutions, {results:,} results, {forks:,} forks, {seconds:.0f} s: "
        + (f"{len(failures)} wrong" if failures else "nothing wrong")
    )
