"""Peak memory of a large layer and of a training loop, each library in a fresh process.

The layer is Conv2d(64, 3, 9), forward and both gradients, on (16, 64, 224, 224), which took 16.6 GB
elsewhere, because its whole column matrix was built.  What it adds to the arrays that it is given
is compared with the bytes of what it returns: output, input gradient, weight gradient.

The loop trains a small net for several steps, so that whatever is kept between steps counts; what
it adds to the net and its input is compared with what PyTorch adds.
"""

from __future__ import annotations

import importlib.util
import sys

from children import check_requested, conclude, run_child

LIMIT = 1.3
LIMIT_OF_TRAINING = 1.0

# Linux keeps a process's largest resident size in VmHWM and its present one in VmRSS.  Elsewhere
# there is ru_maxrss only: the peak so far stands in for the present size.
_COMMON = """
import re
import resource
import sys

import numpy as np

def resident(field):
    try:
        with open("/proc/self/status") as status:
            return int(re.search(field + r":\\s+(\\d+) kB", status.read())[1]) << 10
    except OSError:
        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
"""

_ARRAYS = """
def draw(*shape):
    # Filled in place: a temporary array would raise the peak that is measured from.
    array = np.empty(shape, np.float32)
    np.random.default_rng(0).standard_normal(out=array, dtype=np.float32)
    return array

x, w, gy = draw(16, 64, 224, 224), draw(3, 64, 9, 9), draw(16, 3, 216, 216)
"""

_CONVCORE = """
from convcore import engine

before = resident("VmRSS")
y = engine.conv_forward(x, w)
gx = engine.conv_input_grad(gy, w, (224, 224))
gw = engine.conv_weight_grad(x, gy, (9, 9))
results = y.nbytes + gx.nbytes + gw.nbytes
print(resident("VmHWM") - before, results)
"""

_TORCH = """
import torch

torch.set_grad_enabled(False)
x, w, gy = (torch.from_numpy(a) for a in (x, w, gy))
backward = torch.ops.aten.convolution_backward.default
before = resident("VmRSS")
y = torch.nn.functional.conv2d(x, w)
steps = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
gx = backward(gy, x, w, None, *steps, [True, False, False])[0]
gw = backward(gy, x, w, None, *steps, [False, True, False])[1]
results = sum(t.numel() * t.element_size() for t in (y, gx, gw))
print(resident("VmHWM") - before, results)
"""

# In the names that both libraries have.
_TRAINING = """
import importlib

torch = importlib.import_module(sys.argv[1])
nn = torch.nn

def block(c_in, c_out):
    return nn.Conv2d(c_in, c_out, 3, padding=1), nn.ReLU()

net = nn.Sequential(
    *block(3, 64), *block(64, 64), nn.MaxPool2d(2),
    *block(64, 128), *block(128, 128), nn.MaxPool2d(2),
    *block(128, 256), nn.Flatten(), nn.Linear(256 * 32 * 32, 10),
)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x, target = torch.ones(8, 3, 128, 128), torch.tensor([0, 1, 2, 3, 4, 5, 6, 7])
before = resident("VmRSS")
for _ in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), target).backward()
    optimizer.step()
print(resident("VmHWM") - before)
"""


def added(code: str) -> float:
    """Return a library's added peak over the bytes of its results, and print both."""
    peak, results = map(int, run_child(_COMMON + _ARRAYS + code).split())
    print(f"  peak added {peak / 2**20:.1f} MiB, results {results / 2**20:.1f} MiB")
    return peak / results


def added_by_training(library: str) -> int:
    """Return the bytes that a library's training loop adds, and print them."""
    peak = int(run_child(_COMMON + _TRAINING, library))
    print(f"  {library}: peak added {peak / 2**20:.1f} MiB")
    return peak


def main() -> int:
    """Measure convcore, and PyTorch where it is installed."""
    check = check_requested(__doc__)
    has_torch = importlib.util.find_spec("torch") is not None
    print("convcore")
    ours = added(_CONVCORE)
    if has_torch:
        print("PyTorch")
        print(f"  {added(_TORCH):.2f} x")
    failed = conclude("convcore's peak over its results", ours, LIMIT, " x", check)
    print("a training loop")
    ours = added_by_training("convcore")
    if has_torch:
        ratio = ours / added_by_training("torch")
        name = "convcore's peak of training over PyTorch's"
        failed |= conclude(name, ratio, LIMIT_OF_TRAINING, " x", check)
    return failed


if __name__ == "__main__":
    sys.exit(main())
