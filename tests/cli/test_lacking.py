"""The command line where the machine lacks something: one sentence and the right code."""

import os
import re
import resource
import subprocess
import sys

import pytest

from convcore.cli.errors import UsageError, lacking, require_place

pytestmark = pytest.mark.subprocess

COMMAND = [sys.executable, "-P", "-m", "convcore"]
LAYER = "2,64,56,56,64,3,1,1"


def run(*arguments, **options):
    """Run the command; return its process with what it wrote to standard error."""
    given = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "timeout": 120}
    return subprocess.run([*COMMAND, *arguments], **given | options, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["plan", LAYER], ["info"], [], ["--help"]])
def test_a_full_disk_under_standard_output_is_one_sentence(arguments, unbuffered):
    with open("/dev/full", "w") as full:
        done = run(*arguments, stdout=full, env=os.environ | {"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr == "convcore: standard output: No space left on device\n"


def test_a_full_disk_under_a_program_is_one_sentence(tmp_path):
    (tmp_path / "a.py").write_text("print('x')")
    with open("/dev/full", "w") as full:
        done = run("run", tmp_path / "a.py", stdout=full, env=os.environ | {"PYTHONUNBUFFERED": ""})
    assert done.returncode == 1
    assert done.stderr == "convcore: standard output: No space left on device\n"


@pytest.mark.parametrize("command", ["info", "bench"])
def test_instructions_that_are_not_there_are_one_sentence(command):
    done = run(command, env=os.environ | {"CONVCORE_ISA": "mmx"})
    assert done.returncode == 2
    assert re.fullmatch(rf"convcore {command}: CONVCORE_ISA=mmx: .*\n", done.stderr)


def test_a_file_that_must_not_be_written_is_named_before_anything_runs(tmp_path, monkeypatch):
    kept, file = tmp_path / "kept", tmp_path / "old.html"
    kept.mkdir()
    file.touch()
    refused = {str(kept), str(file)}  # os.access: root may write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in refused)
    for path in (kept / "new.html", file):
        with pytest.raises(UsageError, match=re.escape(f"--output: {path}: Permission denied")):
            require_place("--output", path)
    require_place("--output", tmp_path / "new.html")


@pytest.mark.parametrize(
    "arguments", [["inspect", "lenet", "-o", "a.html"], ["bench", "--json", "a.json"]]
)
def test_a_current_directory_that_is_gone_is_named(tmp_path, arguments):
    pytest.importorskip("rich")
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'rmdir "$PWD" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *COMMAND, *arguments],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("the current directory is gone\n")
    assert len(done.stderr.splitlines()) == 1


def limited(kind, most):
    return lambda: resource.setrlimit(kind, (most, most))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_out_of_memory_is_one_sentence():
    done = run("plan", LAYER, preexec_fn=limited(resource.RLIMIT_AS, 150_000 << 10))
    assert done.returncode == 1
    assert done.stderr.startswith("convcore plan: out of memory")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors of Linux are counted")
def test_descriptors_that_are_exhausted_are_one_sentence():
    pytest.importorskip("rich")
    bench = ["bench", "--layer", "1,2,5,5,3,3", "--peers", "none", "--rounds", "1"]
    done = run(*bench, preexec_fn=limited(resource.RLIMIT_NOFILE, 14))
    assert done.returncode == 1
    assert done.stderr == "convcore bench: Too many open files\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_streams_that_are_closed_change_nothing(closed):
    command = f'exec "$@" {closed}'
    check = [*COMMAND, "verify", "--seconds", "0"]
    done = subprocess.run(
        ["sh", "-c", command, "sh", *check], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and not done.stderr
    assert closed == ">&-" or "nothing wrong" in done.stdout


def test_a_worker_whose_parent_is_killed_ends_without_a_word():
    code = (
        "from convcore.bench.process import serve_standard_streams as serve\n"
        "class Worker:\n"
        "    def answer(self): return 'x' * 100_000\n"
        "serve(lambda name, threads: Worker())"
    )
    reading, writing = os.pipe()
    os.close(reading)
    asked = '{"command": "answer", "arguments": {}}\n' * 2
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "a", "1"],
        input=asked,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.stderr == "" and done.returncode == 0


def test_errors_of_a_command_itself_are_not_the_machines():
    assert lacking(ValueError("x")) is None and lacking(OSError("x")) is None
    assert lacking(MemoryError()) == "out of memory"
    assert lacking(PermissionError(13, "x", "a.txt")) == "Permission denied: a.txt"
