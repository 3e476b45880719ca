"""Errors of programs that a command runs are shown as `python` shows them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.subprocess

BROKEN = """
import torch

def fails():
    raise ValueError("no")

fails()
"""
HIDDEN = ("convcore", "runpy")


def shown(folder, text, *command):
    """Return the lines that a program's error is shown in."""
    (folder / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "convcore", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    return [line for line in done.stderr.splitlines() if not line.startswith("convcore watch: ")]


@pytest.mark.parametrize(
    "command", [("run", "program.py"), ("run", "-m", "program"), ("watch", "program.py")]
)
def test_a_traceback_begins_with_the_program(tmp_path, command):
    lines = shown(tmp_path, BROKEN, *command)
    assert lines[0] == "Traceback (most recent call last):"
    assert "program.py" in lines[1] and lines[-1] == "ValueError: no"
    assert not any(word in line for line in lines for word in HIDDEN)


@pytest.mark.parametrize("command", ["run", "watch"])
def test_a_program_that_cannot_be_compiled_is_shown_alone(tmp_path, command):
    lines = shown(tmp_path, "import torch\nprint(1\n", command, "program.py")
    assert lines[0].lstrip().startswith('File "program.py", line 2')
    assert lines[-1] == "SyntaxError: '(' was never closed" and len(lines) == 4
    lines = shown(tmp_path, "\0", command, "program.py")
    assert lines[-1] == "Hint: is 'program.py' a program in Python?"
    assert not any(word in line for line in lines for word in HIDDEN)


def test_a_package_beside_pytorch_that_is_not_there_has_a_hint(tmp_path):
    lines = shown(tmp_path, "import torch\nimport torchaudio.missing\n", "run", "program.py")
    assert lines[-2].startswith("ModuleNotFoundError: No module named 'torchaudio")
    assert lines[-1].startswith("Hint: read sounds with scipy.io.wavfile")
    without = "import sys\nsys.modules['torchvision'] = None\nimport torchvision\n"
    lines = shown(tmp_path, without, "run", "program.py")
    assert "pip install --no-deps torchvision pillow; or take convcore.models" in lines[-1]


def test_a_program_may_show_its_errors_itself(tmp_path):
    own = "import sys\nsys.excepthook = lambda *error: print('mine', file=sys.stderr)\n"
    assert shown(tmp_path, own + BROKEN, "run", "program.py") == ["mine"]
