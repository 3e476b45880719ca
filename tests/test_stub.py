"""The stub says what Tensor has; type checkers read it, and the front door, as people use them."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

import make_stub
import pytest

import convcore
from convcore import _tensor

PACKAGE = Path(convcore.__file__).parent

PROGRAM = """
from typing import Any, assert_type

import convcore
import convcore as torch
from convcore import Tensor, nn, optim

x = torch.ones(2, 3, requires_grad=True)
assert_type(x, Tensor)
assert_type(x * 2, Tensor)
assert_type(2 - x, Tensor)
assert_type(x @ x.T, Tensor)
assert_type(-x, Tensor)
assert_type(x > 0, Tensor)
assert_type(x == x, Tensor)
assert_type(x[0, :2], Tensor)
assert_type(x.view(2, -1).sum(dim=0), Tensor)
assert_type(x.expand((4, 2, 3)).reshape(-1), Tensor)
assert_type(x.shape[0], int)
assert_type(x.shape, torch.Size)
assert_type(x.size(0), int)
assert_type(x.size(), torch.Size)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.grad, Tensor | None)
assert_type(x.requires_grad, bool)
assert_type(x.dtype, torch.dtype)
assert_type(x.type(), str)
assert_type(x.float().clamp_(0, 1), Tensor)
assert_type(torch.relu(x), Tensor)
assert_type(torch.sum(x, dim=0), Tensor)
assert_type(torch.cat([x, x], dim=0), Tensor)
assert_type(torch.zeros(2, dtype=torch.float64), Tensor)
assert_type(torch.float32, torch.dtype)
assert_type(torch.get_num_threads(), int)
values, indices = x.max(dim=1)
assert_type(values, Tensor)
n, c = x.shape
assert_type(n * c, int)
for row in x:
    assert_type(row, Tensor)
y = x.detach().clone()
y[0] = 1
y[1] += row.detach()
y *= 2
assert_type(y, Tensor)
assert_type(len(y) + int(y.sum()), int)
handle = x.register_hook(lambda grad: grad * 2)
handle.remove()
x.sum().backward()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.conv(x)).flatten(1)


net = Net()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
with torch.no_grad():
    for parameter in net.parameters():
        parameter.mul_(2)
optimizer.step()
net.conv.weight.data.zero_()
torch.manual_seed(0)
"""


@pytest.fixture
def check_types(tmp_path):
    """Return a function that gives what mypy says of a program, or skip without mypy."""
    pytest.importorskip("mypy")
    environment = dict(os.environ)
    if str(PACKAGE.parent) not in site.getsitepackages():
        environment["MYPYPATH"] = str(PACKAGE.parent)

    def check(program):
        path = tmp_path / "program.py"
        path.write_text(program)
        command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--strict"]
        done = subprocess.run(
            [*command, f"--cache-dir={tmp_path / 'cache'}", path],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.stdout + done.stderr

    return check


def test_stub_is_what_the_class_has():
    path = Path(_tensor.__file__).with_suffix(".pyi")
    assert path.read_text() == make_stub.stub(), (
        "the stub is not up to date: python tests/helpers/make_stub.py > convcore/_tensor.pyi"
    )


@pytest.mark.slow
@pytest.mark.subprocess
def test_program_has_the_types_that_it_should_have(check_types):
    assert "Success" in check_types(PROGRAM)


@pytest.mark.slow
@pytest.mark.subprocess
def test_wrong_program_is_found_to_be_wrong(check_types):
    found = check_types(
        "import convcore\nx = convcore.ones(2)\nx.viev(2)\nx.transpose(0)\nconvcore.zeroes(2)\n"
    )
    assert [line.rpartition("[")[2] for line in found.splitlines()[:-1]] == [
        "attr-defined]",
        "call-arg]",
        "attr-defined]",
    ]
