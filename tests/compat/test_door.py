"""Programs written for PyTorch run on convcore: imports, missing names, and the way back out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fork_server import ForkServer

pytestmark = pytest.mark.subprocess

# Interpreters that have loaded convcore under its own name, and no module of PyTorch's names.
SERVER = ForkServer("convcore.cli", "convcore.nn", "convcore.optim", "convcore.utils.data")


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    with SERVER:
        yield


def run(program: str, tmp_path: Path, *arguments: str) -> str:
    """Return what a program prints under ``convcore run``."""
    script = tmp_path / "program.py"
    script.write_text(program)
    done = SERVER.run("-P", "-m", "convcore", "run", script, *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(program: str) -> subprocess.CompletedProcess:
    """Run a program in an interpreter of its own."""
    return SERVER.run("-P", "-c", program)


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
print(torch.layout, torch.cuda.amp.GradScaler, torch.memory_format)
print("torch" in str(type(net)), torch.__version__ >= "2.0", isinstance(loss, torch.Tensor))
""",
        tmp_path,
        "--epochs",
        "5",
    )
    assert printed.splitlines() == [
        "True <class 'torch.Tensor'> torch.nn.modules.conv ['--epochs', '5'] __main__",
        "<class 'torch.layout'> <class 'torch.cuda.amp.GradScaler'> <class 'torch.memory_format'>",
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
    "torch.stft", "import torch.utils.benchmark", "from torch.distributed.rpc import a; a()",
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
    assert "`convcore bench` for layers" in words[1][2]
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
    assert printed.splitlines() == ["a tracer 4 6 False True", "False False True"]


def test_names_that_pytorchs_own_tests_import_are_there(tmp_path):
    printed = run(
        """
import torch.autograd._functions
from torch.autograd import SavedTensor, _calculate_shape, kineto_available
from torch.autograd import set_multithreading_enabled
from torch.autograd.profiler import emit_itt, emit_nvtx, profile, record_function
from torch.autograd.profiler_util import EventList, FunctionEvent, _format_time
from torch.profiler import itt
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

print(kineto_available(), itt.is_available(), torch.profiler.itt.is_available())
for call in (EventList, itt.mark, create_selective_checkpoint_contexts, SavedTensor):
    try:
        call("x")
    except Exception as error:
        print(type(error).__name__)
""",
        tmp_path,
    )
    assert printed.splitlines() == [
        *("False False False", "NotUsableError", "NotUsableError", "NotImplementedError"),
        "RuntimeError",
    ]


def test_iterating_over_a_stand_in_is_an_error_not_an_endless_loop(tmp_path):
    printed = run(
        """
import torch

for use in (lambda: list(torch.fx.Graph), lambda: "fbgemm" in torch.ao.engines):
    try:
        use()
    except RuntimeError as error:
        print(error)
""",
        tmp_path,
    ).splitlines()
    assert len(printed) == 2
    assert printed[0].startswith("torch.fx.Graph is out of scope for convcore")
    assert printed[1].startswith("torch.ao.engines is out of scope for convcore")


def test_a_dtype_that_is_a_stand_in_names_another_where_it_is_used(tmp_path):
    printed = run(
        """
import torch

x = torch.ones(2)
for use in (
    lambda: x.to(torch.float8_e4m3fn),
    lambda: torch.zeros(2, dtype=torch.float8_e5m2),
    lambda: x.to(torch.complex32),
):
    try:
        use()
    except RuntimeError as error:
        print(error)
""",
        tmp_path,
    )
    says = "torch.{} is missing: PyTorch has it, and convcore does not have it yet; use torch.{}"
    assert printed.splitlines() == [
        says.format("float8_e4m3fn", "bfloat16"),
        says.format("float8_e5m2", "bfloat16"),
        says.format("complex32", "complex64"),
    ]


def test_what_pytorch_has_not_either_is_no_stand_in(tmp_path):
    printed = run(
        """
import torch

try:
    from torch.onnx import dynamo_export
except ImportError as error:
    print(error)
import torch.onnx.symbolic_helper
print(hasattr(torch.onnx, "dynamo_export"), torch.onnx.JitScalarType)
""",
        tmp_path,
    )
    said, last = printed.splitlines()
    assert said.startswith("torch.onnx.dynamo_export is out of scope")
    assert last == "False <stand-in for torch.onnx.JitScalarType>"


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

parts = torch.tensor([[1, 2], [3, 4]]), torch.tensor(5)
flat = torch._utils._flatten_dense_tensors(parts)
back = torch._utils._unflatten_dense_tensors(flat, parts)
out = torch.empty(2)
print(torch.diagonal_copy(torch.eye(2), out=out) is out, out.tolist())
print(flat.tolist(), [part.tolist() for part in back], torch._utils._element_size(flat.dtype))
""",
        tmp_path,
    )
    assert printed.splitlines() == [
        *("mul", "[3.0, 3.0]", "2.0", "True [1.0, 1.0]"),
        "[1, 2, 3, 4, 5] [[[1, 2], [3, 4]], 5] 8",
    ]


def test_a_subclass_with_interception_disabled_computes_plain_tensors(tmp_path):
    printed = run(
        """
import torch

class Plain(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

print(type(torch.ones(2).as_subclass(Plain) + 1) is torch.Tensor)
""",
        tmp_path,
    )
    assert printed.strip() == "True"


def test_replacing_a_function_changes_what_modules_call(tmp_path):
    printed = run(
        """
import torch, torch.nn.functional as F
from unittest import mock
layers = {
    "max_pool2d": torch.nn.MaxPool2d(2), "relu": torch.nn.ReLU(), "softmax": torch.nn.Softmax(1),
    "conv2d": torch.nn.Conv2d(1, 1, 1), "conv_transpose2d": torch.nn.ConvTranspose2d(1, 1, 1),
    "dropout": torch.nn.Dropout(), "avg_pool2d": torch.nn.AvgPool2d(2),
}
for name, layer in layers.items():
    with mock.patch.object(F, name, wraps=getattr(F, name)) as counted:
        layer(torch.ones(1, 1, 2, 2))
    layer(torch.ones(1, 1, 2, 2))
    print(counted.call_count)
loss = torch.nn.MSELoss()
with mock.patch.object(F, "mse_loss", wraps=F.mse_loss) as counted:
    loss(torch.ones(2), torch.ones(2))
print(counted.call_count)
""",
        tmp_path,
    )
    assert printed.split() == ["1"] * 8


def test_a_module_runs_and_its_exit_code_is_the_commands(tmp_path):
    (tmp_path / "mine.py").write_text("import torch, sys\nprint(__name__)\nsys.exit(3)\n")
    command = ["-P", "-m", "convcore", "run"]
    done = SERVER.run(*command, "-m", "mine", "a", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "__main__\n")
    for wrong in ([], ["no_such_file.py"], ["-m"]):
        done = SERVER.run(*command, *wrong, cwd=tmp_path)
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


def test_a_module_that_is_kept_finds_those_below_it_after_the_context():
    done = python(
        """
import sys, types

import convcore
from convcore.compat import as_torch

with as_torch() as kept:
    pass
sys.modules["torch"] = types.ModuleType("torch")  # another's, from here on
sys.modules["torch.backends"] = types.ModuleType("torch.backends")
assert kept.backends.cpu.get_cpu_capability() == convcore.backends.cpu.get_cpu_capability()
assert kept.backends is kept.backends
assert kept.nn.functional.grad.conv2d_input is convcore.nn.grad.conv2d_input
print(kept.jit.is_scripting(), kept.fx.Graph, kept.ops.torchvision.nms.__name__)
"""
    )
    assert (done.stdout, done.stderr) == ("False <stand-in for torch.fx.Graph> nms\n", "")


def test_layers_are_in_the_files_that_pytorch_has_them_in(tmp_path):
    printed = run(
        """
from torch import nn
from torch.nn.modules.batchnorm import LazyBatchNorm2d
from torch.nn.modules.loss import CTCLoss, TripletMarginLoss, _Loss
from torch.nn.modules.pooling import MaxPool2d
print(CTCLoss is nn.CTCLoss, issubclass(TripletMarginLoss, _Loss), MaxPool2d is nn.MaxPool2d)
import torch.nn.modules.loss as loss
print(hasattr(loss, "relu"), hasattr(loss, "Loss"))
""",
        tmp_path,
    )
    assert printed == "True True True\nFalse False\n"


def test_nets_that_were_called_after_the_context_are_seen(tmp_path):
    (tmp_path / "nets.py").write_text("""
import torch
import torch.nn.functional as F

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3)
        self.last = torch.sigmoid

    def forward(self, x):
        return self.last(torch.log(F.relu(self.conv(x)) + 1))
""")
    done = python(f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import io
import convcore
from convcore import inspection
with convcore.compat.as_torch():
    import nets
net, x = nets.Net(), convcore.rand(1, 1, 5, 5)
expected = net(x)  # which looks the functions up
with inspection.capture(net) as found:
    net(x)
print(list(found))
with inspection.find_nan(net):
    try:
        net(x - float("inf"))
    except inspection.NonFiniteError as error:
        print(error.operation)
file = io.BytesIO()
convcore.save(net, file)
file.seek(0)
again = convcore.load(file, weights_only=False)
print(convcore.equal(again(x), expected), again.last is convcore.sigmoid)
""")
    assert done.returncode == 0, done.stderr
    seen = ["conv", "relu", "add", "log", "sigmoid", "output"]
    assert done.stdout.splitlines() == [str(seen), "conv2d", "True True"]


def test_a_loader_is_pytorchs_which_has_no_state(tmp_path):
    # By which Lightning, for one, would take it for torchdata's.
    printed = run(
        """
from torch.utils.data import DataLoader
from convcore.serialization import TrainingState

loader = DataLoader(list(range(6)), batch_size=2)
print(hasattr(loader, "state_dict"), hasattr(DataLoader, "load_state_dict"))
state = TrainingState(loader=loader)
for batch in loader:
    if batch[0] == 2:
        saved = state.state_dict()
        break
other = DataLoader(list(range(6)), batch_size=2)
TrainingState(loader=other).load_state_dict(saved)
print([batch.tolist() for batch in other])
""",
        tmp_path,
    )
    assert printed.splitlines() == ["False False", "[[4, 5]]"]
    done = python(
        """
import convcore
from convcore.compat import as_torch

with as_torch():
    pass
print(convcore.utils.data.DataLoader([1]).state_dict()["taken"])
"""
    )
    assert done.stdout == "None\n", done.stderr


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


def test_tools_find_what_they_ask_for(tmp_path):
    printed = run(
        """
import torch, warnings
from torch.autograd import forward_ad
from torch.nn.parallel.scatter_gather import scatter
from torch.serialization import DEFAULT_PROTOCOL
from torch.utils._pytree import SUPPORTED_NODES, _get_node_type
from torch.utils._python_dispatch import TorchDispatchMode

class Seen(TorchDispatchMode):
    pass

layer = torch.nn.Linear(2, 3)
print(isinstance(layer, torch.jit.ScriptModule), issubclass(torch.jit.TracerWarning, Warning))
print(torch.torch is torch, torch.Future.__name__, torch.xpu.is_available(), DEFAULT_PROTOCOL)
print(torch._C._nn._parse_to(torch.float64, True), torch._C._nn._parse_to("cpu")[0])
print(forward_ad.unpack_dual(torch.ones(2)).tangent, torch.float32 in (torch.complex32,))
print(SUPPORTED_NODES[_get_node_type([1, 2])].flatten_fn([1, 2])[0], _get_node_type(3).__name__)
print(torch.range(1, 2, 0.5).tolist(), torch.range(3).dtype, torch._shape_as_tensor(layer.weight))
with torch.backends.__allow_nonbracketed_mutation():
    torch.backends.cudnn.deterministic = True
torch._assert_async(torch.tensor(1))
torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
for use in (
    lambda: torch._assert_async(torch.tensor(0), "zero"), lambda: torch._check(False, lambda: "no"),
    lambda: Seen().__enter__(), lambda: scatter(1, [0]),
):
    try:
        use()
    except RuntimeError as error:
        print(str(error).partition(";")[0])
""",
        tmp_path,
    )
    assert printed.splitlines() == [
        "False True",
        "True Future False 2",
        "(None, torch.float64, True, None) cpu",
        "None False",
        "[1, 2] int",
        "[1.0, 1.5, 2.0] torch.float32 tensor([3, 2])",
        "zero",
        "no",
        "torch.utils._python_dispatch.TorchDispatchMode is out of scope for convcore: nothing is "
        "below autograd",
        "torch.nn.parallel.scatter_gather.scatter is out of scope for convcore: processes are "
        "MPI's",
    ]


def test_what_convcores_own_modules_import_is_not_there(tmp_path):
    printed = run(
        """
import torch, torch.nn.functional as F
print([n for n in ("np", "warnings", "names", "F", "Callable", "of_a_method", "_foreach_nothing_")
       if hasattr(torch, n)], hasattr(F, "np"))
print(all(hasattr(torch, n) for n in ("nn", "zero_", "permute_copy", "rms_norm", "batch_norm",
                                      "layer_norm", "_foreach_add_", "backends")))
print(F.grad.conv2d_input is torch.nn.grad.conv2d_input)
""",
        tmp_path,
    )
    assert printed.splitlines() == ["[] False", "True", "True"]


def test_export_to_onnx_can_be_named_without_the_package_it_needs(tmp_path):
    printed = run(
        """
import inspect
import sys

sys.modules["onnx"] = None  # as if it were not installed
import torch
from torch.onnx import export, is_in_onnx_export, symbolic_opset11 as opset
from torch.onnx.utils import export as older

class Net(torch.nn.Module):
    def forward(self, x):
        return x if torch.onnx.is_in_onnx_export() else 2 * x

print(Net()(torch.ones(1)), is_in_onnx_export(), opset, hasattr(torch.onnx, "nothing"))
print(isinstance(Net(), torch.onnx.ONNXProgram), "onnx" in dict(inspect.getmembers(torch)))
for call in (export, older, torch.onnx.ONNXProgram):
    try:
        call(Net(), torch.ones(1), "net.onnx")
    except ModuleNotFoundError as error:
        print(error)
""",
        tmp_path,
    )
    needed = "convcore.onnx.{} needs the package 'onnx': pip install 'convcore[onnx]'"
    assert printed.splitlines() == [
        "tensor([2.]) False <stand-in for torch.onnx.symbolic_opset11> False",
        "False True",
        *(needed.format(name) for name in ("export", "export", "ONNXProgram")),
    ]


def test_convcore_in_pytorchs_place_is_not_taken_for_pytorchs_own(tmp_path):
    printed = run(
        """
import torch

try:
    torch.nn.Linear(2, 2)(torch.float32)
except TypeError as error:
    print(error)
""",
        tmp_path,
    )
    assert printed == "linear(): argument 'input' (position 1) must be Tensor, not dtype\n"


def test_each_module_of_pytorchs_is_there_or_its_import_is_explained(tmp_path):
    printed = run(
        """
import importlib, warnings
from convcore._errors import pytorch as names
from convcore.compat import NotInConvcoreError

warnings.simplefilter("ignore")
for module in sorted(names.public()["modules"] | names.public()["private"]):
    try:
        importlib.import_module(module)
    except NotInConvcoreError:
        pass
    except Exception as error:
        print(module, repr(error))
""",
        tmp_path,
    )
    assert not printed


def test_a_package_that_a_module_needs_is_named(tmp_path):
    printed = run(
        """
import sys
import torch

sys.modules["tensorboardX"] = None  # as if it were not installed
print(hasattr(torch.utils, "tensorboard"))
try:
    from torch.utils.tensorboard import SummaryWriter
except ModuleNotFoundError as error:
    print(error)
""",
        tmp_path,
    )
    needed = "convcore.utils.tensorboard needs the package 'tensorboardX': pip install tensorboardX"
    assert printed.splitlines() == ["False", needed]


def test_misspelt_keywords_of_quick_functions_get_a_hint_here(tmp_path):
    printed = run(
        """
import torch
import torch.nn.functional as F

x = torch.ones(1, 1, 3, 3)
for call in (lambda: F.conv2d(x, x, strides=2), lambda: F.relu(x, inplac=True)):
    try:
        call()
    except TypeError as error:
        print(str(error).splitlines()[-1])
""",
        tmp_path,
    )
    if sys.version_info < (3, 13):  # which suggests a name itself
        lines = printed.splitlines()
        assert [line.removeprefix("Hint: ") for line in lines] == [
            "did you mean 'stride'?",
            "did you mean 'inplace'?",
        ]
