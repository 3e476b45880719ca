"""Memory of optimised inference beside ONNX Runtime: six nets, a batch and one image.

What a whole process holds after three calls, with nothing imported that the calls do not need, and
the most that it held on the way there.  The nets and inputs are those of ``convcore bench --nets``;
ONNX Runtime reads them as convcore exports them, and convcore reads the weights from an npz file
and optimises the net in place: neither keeps the net as it was.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

from children import conclude, run_child

from convcore.bench import nets
from convcore.engine.runtime.cpus import cpu_limit

LIMIT = 1.0
TASKS = (nets.RUN, nets.RUN_ONE)

_COMMON = """
import json, re, sys
import numpy as np

def report(call, x):
    for _ in range(3):
        call(x)
    with open("/proc/self/status") as status:
        kib = dict(re.findall(r"(VmRSS|VmHWM):\\s+(\\d+) kB", status.read()))
    print(kib["VmRSS"], kib["VmHWM"])

file, threads, shape = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
x = np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
"""

_CONVCORE = """
import convcore

def fast_net(x):
    net = getattr(convcore.models, sys.argv[4])(**json.loads(sys.argv[5]))
    weights = net.state_dict()
    with np.load(file) as saved, convcore.no_grad():
        for name in saved.files:
            weights[name].copy_(convcore.from_numpy(saved[name]))
    precision = sys.argv[6] or None
    return convcore.optimize_for_inference(net.eval(), x, precision=precision, inplace=True)

convcore.set_num_threads(threads)
x = convcore.from_numpy(x)
report(fast_net(x), x)
"""

_ONNX_RUNTIME = """
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
session = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
report(lambda x: session.run(None, {session.get_inputs()[0].name: x}), x)
"""

_SAVE = """
import sys
from pathlib import Path
from convcore.bench import nets

net, task, weights, file = nets.own_net(sys.argv[1]), *sys.argv[2:]
nets.save_weights(nets.make_net(nets.convcore, net), Path(weights))
if file:
    nets.export(net, task, Path(weights), Path(file))
"""


def measured(code: str, *arguments: str) -> list[float]:
    """Return what a process holds, and the most that it held, in MiB."""
    return [int(kib) / 1024 for kib in run_child(_COMMON + code, *arguments).split()]


def main() -> int:
    """Measure each cell in fresh processes, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nets", nargs="*", help="names, as ResNet-18 (default: all six)")
    parser.add_argument("--precision", choices=["bf16"], default="", help="of convcore's nets")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is exceeded")
    request = parser.parse_args()
    peer = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))
    threads, worst = str(cpu_limit()), 0.0
    print("MiB: held after three calls, and at most; of ONNX Runtime the same; the first's ratio")
    for net in map(nets.own_net, request.nets or [net.name for net in nets.NETS]):
        for task in TASKS:
            with tempfile.TemporaryDirectory() as folder:
                weights, file = (str(Path(folder, name)) for name in ("net.npz", "net.onnx"))
                run_child(_SAVE, net.name, task, weights, file if peer else "")
                shape, options = json.dumps(net.input_shape(task)), json.dumps(dict(net.options))
                given = net.function, options, request.precision
                ours = measured(_CONVCORE, weights, threads, shape, *given)
                theirs = measured(_ONNX_RUNTIME, file, threads, shape) if peer else []
            row = "".join(f"{mib:8.0f}" for mib in ours + theirs)
            ratio = ours[0] / theirs[0] if peer else 0.0
            print(f"{net.name:12}{task:18}{row}{ratio:8.2f}", flush=True)
            worst = max(worst, ratio)
    name = "the largest over ONNX Runtime's"
    return conclude(name, worst, LIMIT, " x", request.check) if peer else 0


if __name__ == "__main__":
    sys.exit(main())
