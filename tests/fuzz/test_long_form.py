"""The one command of the long form: it knows every script, and fails where one fails."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import fuzz_script

FOLDER = Path(__file__).resolve().parent
long_form = fuzz_script("__main__")


def test_every_script_is_in_it():
    files = {file for file in FOLDER.glob("*.py") if not file.name.startswith(("test_", "__"))}
    starts = re.compile(r"ArgumentParser\(|atheris\.Setup\(|SWEEP\.main\(")
    programs = {file.name for file in files if starts.search(file.read_text())}
    assert {line.split()[0] for line in long_form.LONG} == programs


def test_numbers_of_tries_are_scaled_and_seeds_are_not():
    found = [" ".join(words) for words in long_form.commands(FOLDER, 7, 0.01, "kills,checkpoints")]
    assert found[0] == "checkpoints.py --torch --count=1000 --seed=7"
    assert found[-1] == "kills.py --count=3 --seed=7"
    assert not re.search(r"\d_\d", "".join(found))


@pytest.mark.subprocess
def test_a_script_that_fails_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(long_form, "HERE", tmp_path)
    (tmp_path / "a.py").write_text("print('one', 'two'); raise SystemExit(3)")
    assert long_form.run(["a.py"], tmp_path / "log") == 3
    assert "exit code 3" in capsys.readouterr().out


@pytest.mark.subprocess
def test_the_command_runs_a_script():
    command = [sys.executable, str(FOLDER), "--only=kills", "--share=0.01"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 kills: 0 files lost" in done.stdout and "1 scripts, 0 failed" in done.stdout
