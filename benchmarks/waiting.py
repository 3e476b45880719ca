"""How threads wait: the spin before they sleep, and several Python threads that call one net.

    python benchmarks/waiting.py spin       ms of small nets by spin, on a quiet machine
    python benchmarks/waiting.py callers    calls a second of an optimised MobileNetV2, by callers

Each cell runs in a process of its own, cells in turn, and the best median of all rounds counts.
Beside ONNX Runtime, where it is installed, for callers.
"""

from __future__ import annotations

import importlib.util
import json
import sys

from children import run_child

ROUNDS = 4
# (ns of an idle worker, ns of a caller, whether signs of a busy machine stop it)
SPINS = (
    (0, 0, 0),
    (100_000, 50_000, 1),
    (300_000, 50_000, 1),
    (300_000, 300_000, 1),
    (300_000, 50_000, 0),
    (1_000_000, 1_000_000, 0),
)
NETS = ("mobilenet_v2, one image", "lenet, training step", "lenet, training step, channels_last")

SPIN = """if True:
    import json, statistics, sys, time
    import convcore as torch
    from convcore import models, nn
    from convcore.engine.runtime import _threads

    _threads.set_spin(*json.loads(sys.argv[1]))

    def run_one():
        net, x = models.mobilenet_v2().eval(), torch.rand(1, 3, 224, 224)
        return lambda: net(x)

    def train(memory_format):
        net = models.lenet().to(memory_format=memory_format)
        x = torch.rand(64, 1, 28, 28).contiguous(memory_format=memory_format)
        target = torch.zeros(64, dtype=torch.int64)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

        def step():
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), target).backward()
            optimizer.step()

        return step

    def median(call, seconds=0.5):
        call(), call()
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return 1e3 * statistics.median(times)

    with torch.no_grad():
        medians = [median(run_one())]
    medians += [median(train(f)) for f in (torch.contiguous_format, torch.channels_last)]
    print(json.dumps(medians))
"""

CALLERS = """if True:
    import json, sys, tempfile, threading, time
    import convcore as torch
    from convcore import models

    library, callers, seconds = sys.argv[1], int(sys.argv[2]), 3
    net, x = models.mobilenet_v2().eval(), torch.rand(1, 3, 224, 224)
    if library == "onnxruntime":
        import onnxruntime
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            torch.onnx.export(net, x, file.name, input_names=["input"])
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = torch.get_num_threads()
            session = onnxruntime.InferenceSession(file.name, options)
        call = lambda: session.run(None, {"input": x.numpy()})
    else:
        planned = torch.optimize_for_inference(net, x)
        call = lambda: planned(x)
    call(), call()
    times, end = [], time.perf_counter() + seconds

    def work():
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(callers)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps([len(times) / (time.perf_counter() - begin), 1e3 * max(times)]))
"""


def spin() -> None:
    best = {}
    for _ in range(ROUNDS):
        for setting in SPINS:
            medians = json.loads(run_child(SPIN, json.dumps(setting)))
            best[setting] = [
                min(pair) for pair in zip(medians, best.get(setting, medians), strict=True)
            ]
    print("idle ns, join ns, adaptive:", ", ".join(NETS))
    for setting, medians in best.items():
        print(f"{setting}:", ", ".join(f"{median:.2f} ms" for median in medians))


def callers() -> None:
    libraries = ["convcore"]
    libraries += ["onnxruntime"] if importlib.util.find_spec("onnxruntime") else []
    for count in (1, 4, 16):
        for library in libraries:
            rate, longest = json.loads(run_child(CALLERS, library, str(count)))
            print(f"{count} callers, {library}: {rate:.0f} a second, longest {longest:.0f} ms")


if __name__ == "__main__":
    {"spin": spin, "callers": callers}[sys.argv[1]]()
