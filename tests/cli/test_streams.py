"""Programs from standard input and pipes run as `python` runs them."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.subprocess

PROGRAM = b"import sys, torch\nprint(int(torch.ones(5).sum()), __name__, sys.argv)\n"
FAILING = b"def fails():\n    raise ValueError('no')\n\nfails()\n"


def launched(*words, **how):
    """Return what a command prints, and its errors, as text."""
    done = subprocess.run(
        [sys.executable, "-P", *words], capture_output=True, timeout=120, check=False, **how
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("command", ["run", "watch"])
@pytest.mark.parametrize(
    "name",
    ["-", pytest.param("/dev/stdin", marks=pytest.mark.skipif(os.name == "nt", reason="POSIX"))],
)
def test_a_program_is_read_from_standard_input(command, name):
    code, printed, _ = launched("-m", "convcore", command, name, "a", "-b", input=PROGRAM)
    assert (code, printed.split("\n")[0]) == (0, f"5 __main__ [{name!r}, 'a', '-b']")


@pytest.mark.skipif(os.name == "nt", reason="POSIX")
def test_a_program_is_read_from_a_pipe():
    read, write = os.pipe()
    os.write(write, PROGRAM)
    os.close(write)
    code, printed, _ = launched("-m", "convcore", "run", f"/dev/fd/{read}", pass_fds=[read])
    os.close(read)
    assert (code, printed[:10]) == (0, "5 __main__")


def test_its_errors_are_shown_as_pythons():
    code, _, told = launched("-m", "convcore", "run", "-", input=FAILING)
    assert code == 1
    assert [line for line in told.splitlines() if "File " in line] == [
        '  File "<stdin>", line 4, in <module>',
        '  File "<stdin>", line 2, in fails',
    ]
    code, _, told = launched("-m", "convcore", "run", "-", input=b"print(1\n")
    assert code == 1 and told.splitlines()[0] == '  File "<stdin>", line 1'
