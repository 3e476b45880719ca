"""What is asked for, whatever is measured: suites, peers, rounds and the workers' environment."""

from __future__ import annotations

import argparse

from convcore.cli.errors import UsageError

QUICK_ROUNDS, ROUNDS = 5, 9
# Operations around the arithmetic, not layers: timed and shown in a way of its own.
OVERHEAD = "overhead"


def suites_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the suites asked for; quick if neither a suite nor a layer was."""
    from convcore.bench.suites import SUITES

    asked = tuple(dict.fromkeys(name for names in arguments.suite or () for name in names))
    for name in asked:
        if name not in SUITES and name != OVERHEAD:
            raise UsageError(f"--suite: {name!r} is none of {', '.join((*SUITES, OVERHEAD))}")
    return asked or (() if arguments.layer else ("quick",))


def peers_of(asked: tuple[str, ...] | None, quick: bool = False) -> tuple[str, ...]:
    """Return the peers asked for, or those that are installed and not too slow."""
    from convcore.bench.peers import PEERS, QUICK, SLOW, is_installed

    known = [name for name in PEERS if name != "convcore"]
    if asked is None:
        usual = QUICK if quick else [name for name in known if name not in SLOW]
        return tuple(filter(is_installed, usual))
    if asked == ("none",):
        return ()
    for name in asked:
        if name not in known:
            raise UsageError(f"--peers: {name!r} is none of {', '.join(known)}")
        if not is_installed(name):
            lacking = " and ".join(m for m in PEERS[name][0])
            raise UsageError(f"--peers: {name} is not installed (it needs {lacking})")
    return asked


def rounds_of(arguments: argparse.Namespace) -> int:
    """Return the number of samples of each thing that is timed."""
    return arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)


def keeps_environment(arguments: argparse.Namespace) -> bool:
    """Whether the workers get the environment as it was found."""
    return arguments.env == "keep"
