"""Programs written for PyTorch run on convcore: imports, missing names, and the way back out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.subprocess


def run(program: str, tmp_path: Path, *arguments: str) -> str:
    """Return what a program prints under ``convcore run``."""
    script = tmp_path / "program.py"
    script.write_text(program)
    command = [sys.executable, "-m", "convcore", "run", str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(program: str) -> subprocess.CompletedProcess:
    """Run a program in a new interpreter."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_program_trains_a_net_under_pytorchs_names(tmp_path):
    printed = run(
        """
import sys
import torch, torch.nn as nn, torch.nn.functional as F
import torch.backends.cudnn as cudnn
from torch import optim
from torch.autograd import Variable
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).to(device)
loader = DataLoader(TensorDataset(torch.rand(8, 1, 8, 8), torch.arange(8) % 3), batch_size=4)
optimizer = optim.SGD(net.parameters(), lr=0.1)
schedule = StepLR(optimizer, 1)
first = None
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        first = first or loss.item()
print(loss.item() < first, type(loss), nn.Conv2d.__module__, sys.argv[1:], __name__)
print("torch" in str(type(net)), torch.__version__ >= "2.0", isinstance(loss, torch.Tensor))
""",
        tmp_path,
        "--epochs",
        "5",
    )
    assert printed.splitlines() == [
        "True <class 'torch.Tensor'> torch.nn.modules.conv ['--epochs', '5'] __main__",
        "True True True",
    ]


def test_what_is_missing_says_so_as_one_kind_of_error(tmp_path):
    printed = run(
        """
import torch
from convcore.compat import NotInConvcoreError

def error(code):
    try:
        exec(code, {"torch": torch})
    except NotInConvcoreError as found:
        bases = (AttributeError, ImportError, RuntimeError)
        print(code, "|", *(b.__name__ for b in bases if isinstance(found, b)), "|", found)

for code in (
    "torch.stft", "import torch.utils.tensorboard", "from torch.distributed.rpc import a; a()",
    "from torch import no_such_name", "torch.ones(2).int_repr", "torch.fx.Graph()",
    "torch.nn.functional.no_such_name", "import torch.no_such_module",
):
    error(code)
print(hasattr(torch, "stft"), getattr(torch, "stft", 3), torch.fx.Graph)
""",
        tmp_path,
    ).splitlines()
    words = [line.split(" | ") for line in printed[:-1]]
    assert [word[1] for word in words] == [
        *("AttributeError", "ImportError", "RuntimeError", "ImportError"),
        *("AttributeError", "RuntimeError", "AttributeError", "ImportError"),
    ]
    assert words[0][2] == "torch.stft is out of scope for convcore: use numpy.fft on " + (
        "`tensor.numpy()`"
    )
    assert "use the package tensorboardX" in words[1][2]
    assert "there is no torch.no_such_name, neither in convcore nor in PyTorch" in words[3][2]
    assert "use ONNX Runtime" in words[4][2]
    assert printed[-1] == "False 3 <stand-in for torch.fx.Graph>"


def test_stand_ins_can_be_named_inherited_from_and_asked_about(tmp_path):
    printed = run(
        """
import torch
from torch import jit, fx
from torch.library import Library, register_fake
import torch._dynamo.config, torch.distributed as dist

class Tracer(fx.Tracer):
    def name(self) -> fx.Node | None:
        return "a tracer"

@torch.jit.script
def double(x):
    return 2 * x

@torch.compile(dynamic=True)
def triple(x):
    return 3 * x

torch._dynamo.config.suppress_errors = True
print(Tracer().name(), double(2), triple(2), isinstance(3, fx.Proxy), dist.is_available())
print(torch.jit.is_scripting(), torch.compiler.is_compiling(), jit.trace(double, 1) is double)
Library("mine", "DEF").define("f(Tensor x) -> Tensor")
""",
        tmp_path,
    )
    assert printed.splitlines() == ["a tracer 4 6 False False", "False False True"]


def test_a_stand_in_that_is_used_by_a_class_below_it_says_so(tmp_path):
    printed = run(
        """
import torch
from convcore.compat import NotInConvcoreError

class Tracer(torch.fx.Tracer):
    def __init__(self, names):
        super().__init__(names)

try:
    Tracer(["x"])
except NotInConvcoreError as found:
    print(found)
""",
        tmp_path,
    )
    assert printed.startswith("torch.fx.Tracer is out of scope for convcore")


def test_private_names_that_image_libraries_use_do_their_work(tmp_path):
    printed = run(
        """
import torch

class Boxes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(func.__name__)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

print((torch.ones(2).as_subclass(Boxes) * 3).tolist())
torch.manual_seed(0)
print(round(torch._sample_dirichlet(torch.ones(2, 3)).sum().item(), 5))
""",
        tmp_path,
    )
    assert printed.splitlines() == ["mul", "[3.0, 3.0]", "2.0"]


def test_replacing_a_function_changes_what_modules_call(tmp_path):
    printed = run(
        """
import torch, torch.nn.functional as F
from unittest import mock
with mock.patch.object(F, "max_pool2d", wraps=F.max_pool2d) as counted:
    torch.nn.MaxPool2d(2)(torch.ones(1, 1, 2, 2))
print(counted.call_count)
torch.nn.MaxPool2d(2)(torch.ones(1, 1, 2, 2))
print(counted.call_count)
""",
        tmp_path,
    )
    assert printed.split() == ["1", "1"]


def test_a_module_runs_and_its_exit_code_is_the_commands(tmp_path):
    (tmp_path / "mine.py").write_text("import torch, sys\nprint(__name__)\nsys.exit(3)\n")
    command = [sys.executable, "-m", "convcore", "run", "-m", "mine", "a"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "__main__\n")
    for wrong in ([], ["no_such_file.py"], ["-m"]):
        command = [sys.executable, "-m", "convcore", "run", *wrong]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.startswith("convcore run: ")


def test_as_torch_is_undone_by_its_context():
    done = python(
        """
import sys, convcore
from convcore.compat import as_torch
before = convcore.Tensor.__module__, convcore.relu
with as_torch() as torch:
    with as_torch() as again:
        assert again is torch
    import torch.nn.functional
    assert torch.Tensor is convcore.Tensor and convcore.Tensor.__module__ == "torch"
assert (convcore.Tensor.__module__, convcore.relu) == before
assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
with as_torch():
    import torch
    print(torch.ones(1))
"""
    )
    assert (done.stdout, done.stderr) == ("tensor([1.])\n", "")


def test_as_torch_refuses_where_pytorch_is_loaded():
    done = python(
        """
import sys, types
sys.modules["torch"] = types.ModuleType("torch")
from convcore.compat import as_torch
as_torch()
"""
    )
    assert done.stderr.endswith(
        "RuntimeError: as_torch() has to come before the first `import torch`: torch is loaded "
        "already, from somewhere\n"
    )
