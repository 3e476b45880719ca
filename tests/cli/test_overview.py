"""What one meets first: overview, help, slips of the pen, completion, pipes, narrow terminals."""

import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import convcore
from convcore import cli
from convcore.cli import terminal
from convcore.cli.overview import _EXAMPLES, overview

SUBJECTS = {
    "digits": {"--output", "--epochs", "--seed", "--scale"},
    "maps": {"--output", "--weights", "--seed", "--scale"},
    "training": {"--distributed", "--output", "--epochs", "--seed"},
}


def helped(capsys, *arguments):
    """Return what --help prints."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


def words_of(text):
    return set(text.split())


def test_without_a_command_it_says_what_one_can_do(capsys):
    assert cli.main([]) == 0
    said = capsys.readouterr()
    assert not said.err
    assert convcore.__version__ in said.out and "convcore bench --quick" in said.out


def test_every_command_of_the_overview_is_one(capsys):
    parser = cli._parser()
    for examples in _EXAMPLES.values():
        for command, _ in examples:
            assert callable(parser.parse_args(shlex.split(command)).run)


@pytest.mark.parametrize(
    ("words", "shown"),
    [(["help"], "usage: convcore "), (["help", "plan"], "usage: convcore plan ")],
)
def test_help_is_a_word_too(words, shown, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(shown)


@pytest.mark.parametrize("words", [["--version"], ["-v"], ["version"]])
def test_version(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"convcore {convcore.__version__}\n"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_demos_help_lists_its_own_options_alone(subject, capsys):
    option = re.compile(r"^  (?:-\w(?: FILE)?, )?(--\w+)", re.MULTILINE)
    listed = set(option.findall(helped(capsys, "demo", subject)))
    assert listed - {"--help"} == SUBJECTS[subject]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["bnech"], "did you mean bench?"),
        (["demo", "dijits"], "did you mean digits?"),
        (["bench", "--pears", "torch"], "convcore bench: error: unrecognized arguments: --pears"),
        (["bench", "--pears", "torch"], "did you mean --peers?"),
        (["bench", "--isa", "avx"], "did you mean avx2?"),
        (["summary", "lenet", "1,1,28,28"], "did you mean --input 1,1,28,28?"),
        (["summary", "lenet", "--shape", "1,1,28,28"], "did you mean --input 1,1,28,28?"),
        (["plan", "1", "3", "32"], "several numbers are one word, with commas and no spaces"),
        (["bench", "lenet"], "did you mean --suite lenet or --nets lenet?"),
        (["demo", "maps", "--weight=x", "--epoch", "3"], "convcore demo maps: error"),
    ],
)
def test_a_slip_is_told_what_may_be_meant(arguments, meant, capsys):
    with pytest.raises(SystemExit) as refusal:
        cli.main(arguments)
    assert refusal.value.code == 2
    assert meant in " ".join(capsys.readouterr().err.split())


def test_what_resembles_nothing_gets_no_proposal(capsys):
    with pytest.raises(SystemExit):
        cli.main(["xyzzy"])
    said = capsys.readouterr().err
    assert "'xyzzy' is none of run, watch, bench, " in said and "did you mean" not in said


def test_help_is_not_what_an_unknown_option_meant(capsys):
    with pytest.raises(SystemExit):
        cli.main(["demo", "maps", "--lr", "3"])
    said = capsys.readouterr().err
    assert "unrecognized arguments: --lr" in said and "did you mean" not in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, capsys):
    pytest.importorskip("shtab")
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("bench", "digits", "weights", "compiled", "avx512"):
        assert word in script, word


def test_bash_completes_commands_options_and_files(capsys, tmp_path):
    pytest.importorskip("shtab")
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    assert cli.main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "script.py").touch()
    for words, proposed in (
        ("convcore be", "bench"),
        ("convcore demo maps --we", "--weights"),
        ("convcore bench --json scr", "script.py"),
        ("convcore run scr", "script.py"),
    ):
        asked = f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_convcore"
        program = f"{script}\n{asked}; echo ${{COMPREPLY[*]}}"
        done = subprocess.run(
            ["bash"], input=program, text=True, cwd=tmp_path, capture_output=True, check=False
        )
        assert done.stdout.split() == [proposed], (words, done.stderr)


@pytest.mark.subprocess
@pytest.mark.parametrize("command", ["", "--help", "summary lenet"])
def test_a_pipe_that_nobody_reads_is_a_quiet_end(command):
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "convcore", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # argparse itself keeps silent about a pipe that breaks as it writes, unbuffered
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    ) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def test_a_broken_pipe_of_a_programs_own_is_no_quiet_end(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("raise BrokenPipeError('a socket')")
    from convcore import compat

    monkeypatch.setattr(compat, "as_torch", lambda: None)
    monkeypatch.setattr(sys, "argv", ["convcore"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(cli, "reader_is_gone", lambda: False)
    with pytest.raises(BrokenPipeError, match="a socket"):
        cli.main(["run", str(script)])


# --- narrow terminals -----------------------------------------------------------------------------

TABLE = """\
Module             Output shape          Parameters
---------------------------------------------------
layer1.0.conv1     [1, 64, 56, 56]           36,864
  because          F(4x4, 3x3): 4.00 times fewer multiplications than by definition
/a/path/that/is/longer/than/any/terminal/is/wide.so"""


@pytest.mark.parametrize("width", range(40, 81, 10))
def test_lines_fit_and_no_word_is_broken(width):
    fitted = terminal.fitted(TABLE, width)
    rules = re.compile("-+")
    assert {w for w in words_of(fitted) if not rules.fullmatch(w)} == {
        w for w in words_of(TABLE) if not rules.fullmatch(w)
    }
    assert all(len(line) <= width or " " not in line.strip() for line in fitted.split("\n"))


def test_wide_lines_stay_as_they_are():
    assert terminal.fitted(TABLE, 0) == TABLE == terminal.fitted(TABLE, 200)
    assert terminal.fitted("convolution      3", 18) == "convolution      3"


@pytest.mark.parametrize("width", range(40, 121, 10))
def test_overview_fits(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = overview().split("\n")
    assert max(map(len, lines)) <= width
    assert ("  convcore info  " in overview()) == (width >= 80)


@pytest.mark.parametrize("width", [40, 60])
@pytest.mark.parametrize("command", ["info", "summary lenet", "plan 1,3,9,9,8,3"])
def test_commands_fit(command, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    assert cli.main(command.split()) == 0
    narrow = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "500")
    cli.main(command.split())
    wide = capsys.readouterr().out
    if not command.startswith("summary"):  # which leaves out types, to keep its columns
        assert {w for w in words_of(narrow) if "--" not in w} == {
            w for w in words_of(wide) if "--" not in w
        }
    assert all(len(line) <= width or len(line.split()) == 1 for line in narrow.split("\n"))


def test_help_fits(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    narrow = words_of(helped(capsys, "bench"))
    monkeypatch.setenv("COLUMNS", "500")
    assert words_of(helped(capsys, "bench")) - {"[-h]"} <= narrow
