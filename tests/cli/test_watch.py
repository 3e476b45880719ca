"""`convcore watch`: a script's output as it is, and lines on standard error."""

import subprocess
import sys

import pytest

from convcore import cli

SCRIPT = """
import sys
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    net(torch.ones(3, 2)).square().mean().backward()
    optimizer.step()
print("hooks", sum(len(module._forward_hooks) for module in net.modules()))
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return str(path)


def watched(*arguments):
    """Return the end of a process that watches a script."""
    command = [sys.executable, "-P", "-m", "convcore", "watch", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.subprocess
def test_lines_go_to_standard_error_and_the_rest_is_the_scripts(script):
    done = watched("--every", "0", script, "5")
    lines = done.stderr.splitlines()
    assert done.returncode == 5 and done.stdout.startswith("hooks ")
    assert [line.split("  ")[0] for line in lines] == ["step 1", "step 3", "step 5"]
    assert "dead units" in lines[1] and lines[1].split("of ")[-1] == "4"


@pytest.mark.subprocess
def test_a_script_that_trains_nothing_is_said_to(script):
    done = watched(script, "0")
    assert (done.returncode, done.stdout) == (0, "hooks 0\n")
    assert done.stderr == "convcore watch: no optimizer made a step\n"


@pytest.mark.subprocess
@pytest.mark.parametrize("end", ["raise ValueError('full')", "import sys; sys.exit('full')"])
def test_of_a_script_that_failed_only_its_own_message_is_shown(end, tmp_path):
    (tmp_path / "train.py").write_text(end)
    done = watched(str(tmp_path / "train.py"))
    assert done.returncode == 1 and done.stderr.endswith("full\n")
    assert "convcore watch" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a script"),
        (["nowhere.py"], "nowhere.py: No such file"),
        (["net.onnx"], "'net.onnx' is no Python script: `convcore run-model` and"),
        (["--every", "-1", "x.py"], "--every takes seconds"),
        (["--every", "nan", "x.py"], "--every takes seconds"),
    ],
)
def test_usage_errors(arguments, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(b"\0")
    assert cli.main(["watch", *arguments]) == 2
    assert text in capsys.readouterr().err
