"""Commands on the site's pages print what the pages say.

Blocks are of three kinds: lines of Python with what they print, which doctest runs; commands, which
run here; and files, in whose folder the page's commands run.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fork_server import ForkServer

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(
    page for room in ("start", "howto", "explanations") for page in (DOCS / room).glob("*.rst")
)
README = DOCS.parent / "README.md"
MARKDOWN = [README, *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(
    r"^(?P<indent> *)\.\. code-block:: (?P<kind>\S+)\n(?: +:caption: (?P<file>\S+)\n)?\n"
    r"(?P<text>(?:(?P=indent) {2,4}.*\n|\n)+)",
    re.MULTILINE,
)
# A fence, or lines that are indented after an empty one.
MARKDOWN_BLOCK = re.compile(
    r"^```(?P<kind>\S*).*\n(?P<fence>(?s:.*?))^```$|(?<=\n\n)(?P<indented>(?: {4}.*\n)+)",
    re.MULTILINE,
)
FILE = re.compile(r"(?:tests|benchmarks|wheels)/[\w/]+\.(?:py|md)")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

# Commands that install, build or measure, and what runs them.
ELSEWHERE = {
    "pip install": ".ci/run, job clean",
    "git clone": ".ci/run, every job",
    "pip wheel": ".ci/run, job poor",
    "wheels/": ".ci/run wheels",
    "mpiexec": "tests/distributed/test_page.py",
    "python name_tag.py": "tests/onnx/test_name_tag.py",
    "python with_": "tests/docs/test_many_machines.py",
    "sbatch": "a cluster; tests/distributed/test_page.py reads the script",
    "convcore bench --quick": ".ci/run, job first",
    "python benchmarks/ranks.py": "tests/bench/test_ranks.py",
    "convcore bench --suite": "nothing: minutes of a quiet machine; its record is in benchmarks/",
    "convcore run tests/programs/tools/": "tests/compat/test_tools.py",
}


def blocks(page):
    """Yield (kind, file, text) of each code block of a page."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield found["kind"], found["file"], textwrap.dedent(found["text"]).strip("\n") + "\n"


def commands(text):
    """Yield (command, what it prints) of a block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


@pytest.fixture(scope="module")
def server():
    with ForkServer("convcore.cli", "convcore.nn", "convcore.optim", "convcore.compat") as server:
        yield server


def run(command, folder, server):
    """Run a command of this Python in a folder; return what it prints."""
    words = shlex.split(command)
    settings = {name: value for name, value in (word.split("=") for word in words if "=" in word)}
    program, *arguments = words[len(settings) :]
    words = ["-P", *{"convcore": ["-m", "convcore"], "python": []}[program], *arguments]
    if settings:  # which libraries read as they load
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=120,
        )
    else:
        done = server.run(*words, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.subprocess
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_commands_print_what_the_page_says(page, tmp_path, server):
    for kind, file, text in blocks(page):
        if file:
            (tmp_path / file).write_text(text)
            continue
        if text.startswith(">>> "):  # which doctest runs
            continue
        assert kind == "console", f"a block of {kind} has no caption: nothing would run it"
        for command, printed in commands(text):
            if not command.startswith(tuple(ELSEWHERE)):
                got = run(command, tmp_path, server)
                assert doctest.OutputChecker().check_output(printed, got, OPTIONS), got


def test_every_command_that_runs_elsewhere_is_on_a_page():
    found = [
        command
        for page in PAGES
        for kind, _, text in blocks(page)
        if kind == "console"
        for command, _ in commands(text)
    ]
    assert [start for start in ELSEWHERE if not any(c.startswith(start) for c in found)] == []


def test_no_block_escapes():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("code-block::") == len(list(blocks(page))), page
        assert "::\n\n" not in re.sub(r"\.\. (code-block|math)::", "", text), page


# What Markdown's pages show besides lines of Python, by its first words, and what runs it.
ELSEWHERE_IN_MARKDOWN = {
    "pip install": ".ci/run, jobs main, suite and clean; mpiexec in tests/distributed",
    "python benchmarks/": "nothing: minutes of a quiet machine",
}


def test_no_block_of_markdown_escapes(pytestconfig):
    run_as_doctests = {DOCS.parent / path for path in pytestconfig.getini("testpaths")}
    used = set()
    for page in MARKDOWN:
        for found in MARKDOWN_BLOCK.finditer(page.read_text(encoding="utf-8")):
            text = textwrap.dedent(found["fence"] or found["indented"] or "")
            if text.startswith(">>> "):
                assert page in run_as_doctests, page
            elif found["kind"] != "{include}":
                known = [start for start in ELSEWHERE_IN_MARKDOWN if text.startswith(start)]
                assert known, f"nothing runs this block of {page}: {text}"
                used.update(known)
    assert used == set(ELSEWHERE_IN_MARKDOWN)


def test_files_that_pages_name_are_there():
    named = {
        name
        for page in DOCS.rglob("*.rst")
        if not {"generated", "auto_tutorials"} & set(page.parts)
        for name in re.findall(
            r"(?:tests|benchmarks|wheels)/[\w/]+\.(?:py|md)", page.read_text("utf-8")
        )
    }
    assert len(named) > 5
    assert [name for name in sorted(named) if not (DOCS.parent / name).exists()] == []
