"""``convcore verify``: its table, its exit code, and what it refuses."""

import pytest

from convcore import cli
from convcore.verify import runner

CASE = "1,4,6,6,8,3,1,1,1,1 float32 contiguous/channels_last/strided normal 3"


@pytest.fixture
def found(monkeypatch):
    """Findings that the command prints, without workers."""
    findings = runner.Findings("base", 3, 40, 1, {"im2col": 1.25, "winograd": 3.5})
    monkeypatch.setattr(runner, "instruction_sets", lambda: ["base"])
    monkeypatch.setattr(runner, "verify", lambda *_: findings)
    return findings


def test_errors_are_a_table(found, capsys):
    assert cli.main(["verify"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["im2col", "1.25"] in [line.split() for line in lines]
    assert ["winograd", "3.50"] in [line.split() for line in lines]
    assert lines[-1].startswith("3 convolutions, 40 results, 1 forks")
    assert lines[-1].endswith("nothing wrong")


def test_a_failure_is_printed_with_its_command_and_exits_with_one(found, capsys):
    found.fail(CASE, "winograd, forward: error 13 eps, not 12")
    assert cli.main(["verify", "--seconds", "1"]) == 1
    printed = capsys.readouterr().out
    assert "WRONG  base  winograd, forward: error 13 eps, not 12" in printed
    assert f"convcore verify --isa base --case '{CASE}'" in printed
    assert printed.endswith("1 wrong\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seconds", "-1"], "--seconds must be a number from 0, got -1"),
        (["--isa", "avx2"], "has base"),
        (["--case", "1,2"], "5 words"),
    ],
)
def test_wrong_arguments_are_named(found, capsys, arguments, message):
    assert cli.main(["verify", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.subprocess
def test_one_case_is_checked_by_real_workers(capsys):
    assert cli.main(["verify", "--isa", "base", "--case", CASE]) == 0
    assert "1 convolutions" in capsys.readouterr().out
