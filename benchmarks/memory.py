"""Peak memory of Conv2d(64, 3, 9), forward and both gradients, on (16, 64, 224, 224).

The layer that took 16.6 GB elsewhere, because its whole column matrix was built.  Each library
runs in a fresh process.  What it adds to the arrays that it is given is compared with the bytes of
what it returns: output, input gradient, weight gradient.
"""

from __future__ import annotations

import importlib.util
import sys

from children import check_requested, conclude, run_child

LIMIT = 1.3

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


def added(code: str) -> float:
    """Return a library's added peak over the bytes of its results, and print both."""
    peak, results = map(int, run_child(_COMMON + code).split())
    print(f"  peak added {peak / 2**20:.1f} MiB, results {results / 2**20:.1f} MiB")
    return peak / results


def main() -> int:
    """Measure convcore, and PyTorch where it is installed."""
    check = check_requested(__doc__)
    print("convcore")
    ours = added(_CONVCORE)
    if importlib.util.find_spec("torch"):
        print("PyTorch")
        print(f"  {added(_TORCH):.2f} x")
    return conclude("convcore's peak over its results", ours, LIMIT, " x", check)


if __name__ == "__main__":
    sys.exit(main())
